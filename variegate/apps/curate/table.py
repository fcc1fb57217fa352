"""The table of a check: a row per image, with every measure and every finding."""

from __future__ import annotations

import pyarrow as pa

_FINDING = pa.struct([("finding", pa.string()), ("measure", pa.float64()), ("group", pa.int64()), ("why", pa.string())])

# Measures of pixels are null where ``error`` is not. Luminance is (299 R + 587 G + 114 B) / 1000, 0 to 1.
SCHEMA = pa.schema(
    [
        ("split", pa.string()),  # train, test; beside, beside_test: images beside their class folders
        ("index", pa.int64()),  # in its source
        ("file", pa.string()),  # its name there; relative to the folder, where the source is one
        ("label", pa.int64()),  # -1: none, or one that is no class
        ("class", pa.string()),
        ("error", pa.string()),  # why it does not decode
        ("warning", pa.string()),  # what its decoder complains of, though it makes an image of it
        ("bytes", pa.int64()),  # of the file; of the pixels, where they are stored as such
        ("kind", pa.string()),  # Pillow's name of the format: JPEG, PNG, ...; null for pixels
        ("mode", pa.string()),  # Pillow's, as stored: RGB, L, P, CMYK, I;16, ...
        ("orientation", pa.int8()),  # EXIF, 1 to 8
        ("is_truncated", pa.bool_()),
        ("height", pa.int32()),  # upright
        ("width", pa.int32()),
        ("mean", pa.list_(pa.float64())),  # by channel of RGB, 0 to 1
        ("std", pa.list_(pa.float64())),
        ("brightness", pa.float64()),  # mean luminance
        ("dark_end", pa.float64()),  # the luminance below which 5 % of the pixels are
        ("bright_end", pa.float64()),  # ... 95 % of the pixels are
        ("contrast", pa.float64()),  # standard deviation of luminance
        ("entropy", pa.float64()),  # of the histogram of luminance, in bits
        ("sharpness", pa.float64()),  # see variegate/apps/curate/measures/pixels.py
        ("pixel_hash", pa.binary(16)),  # of size and pixels
        ("look_hash", pa.uint64()),  # perceptual
        ("mirror_hash", pa.uint64()),  # the perceptual hash of the mirrored image
        ("signature", pa.binary()),  # a finer description, which says whether two images with near hashes are alike
        ("findings", pa.list_(_FINDING)),
    ]
)
