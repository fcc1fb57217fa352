"""What is measured of an image, when it is decoded: its file, its pixels, its fingerprint."""
