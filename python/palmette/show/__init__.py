"""Shows a topology.json: as a tree in text, as a picture, as JSON; equal groups are folded into one."""
