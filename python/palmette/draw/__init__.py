"""What all pictures share: how an SVG document begins, its text, its colours."""
