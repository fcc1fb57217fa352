"""Formats of samples, a room for each: reader and writer."""
