"""The machine model: its tree, topology.json, placements of ranks."""
