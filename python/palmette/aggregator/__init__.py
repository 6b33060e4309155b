"""The aggregation service as its operators see it: keys, tokens, status."""
