"""What belongs to the images of a data set, written beside them: COCO, Pascal VOC, YOLO, and folders of masks."""
