"""How results are shown: tables, pictures, charts and their colours, for the text, pages and SVG of all commands."""
