"""W8: one image at a time, beside Pillow's operations and torchvision's pipelines on Pillow images."""
