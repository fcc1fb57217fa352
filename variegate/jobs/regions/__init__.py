"""One image on many devices: bands of lines of each pass are tasks of an engine."""
