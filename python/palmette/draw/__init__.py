"""Shared SVG elements of all pictures: document header, text, colours."""
