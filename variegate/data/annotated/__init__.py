"""Images with annotations beside them: COCO, Pascal VOC, YOLO, and folders of masks."""
