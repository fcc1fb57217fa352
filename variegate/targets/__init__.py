"""What belongs to an image goes where the image goes: key points, boxes and masks through the maps of a ``Program``."""
