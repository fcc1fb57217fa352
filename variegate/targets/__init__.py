"""Targets of an image go where the image goes: key points, boxes and masks through the maps of a ``Program``."""
