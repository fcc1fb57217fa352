"""Pixels as they are, in files that are mapped to memory: what ``variegate pack --format raw`` writes."""
