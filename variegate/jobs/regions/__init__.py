"""One image on many devices: bands of lines of each pass are an engine's tasks."""
