"""COCO: one JSON file of instances and key points for a folder of images."""
