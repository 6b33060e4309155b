"""Recordings in the formats of other tools: one module each, over one reader of calls (`selection`)."""
