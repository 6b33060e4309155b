"""How results are shown: tables, pictures, charts and their colors, for the text, pages and SVG of all commands."""
