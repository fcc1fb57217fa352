"""One pass over a source: every image is read and decoded once, by all cores, and measured."""
