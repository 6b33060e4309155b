"""Text and JSON of the physical lower bound of a collective: its terms, and which of them decides."""
