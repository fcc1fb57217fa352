"""Running programs over whole data sets."""
