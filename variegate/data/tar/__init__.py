"""WebDataset shards: tar archives of images and labels."""
