"""Images with masks and boxes: Variegate beside AlbumentationsX."""
