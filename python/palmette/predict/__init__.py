"""Predicted times of algorithms: the question, its answer as text and JSON, and as curves."""
