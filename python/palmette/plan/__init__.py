"""Plans for people: stages in text, counts in a table, a picture, the list of algorithms."""
