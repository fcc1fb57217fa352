"""Readers of annotated images: COCO, Pascal VOC, YOLO, and folders of masks."""
