"""Samples that a program has in its hands: arrays and lists of images (``arrays``), data sets (``dataset``)."""
