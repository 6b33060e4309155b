"""What a machine looks like: its tree, topology.json, placements of ranks on it."""
