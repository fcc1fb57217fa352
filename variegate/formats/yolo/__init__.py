"""YOLO: a text file of objects for each image, and ``data.yaml``."""
