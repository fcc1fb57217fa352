"""What the parts of this folder are told of a tile: numbers behind the last of ``SideTables.points``, in int64.

First the records of the maps that the pass reads through (``program/places.py``), as they are for the whole image, then
a header.
"""

from __future__ import annotations

# Fields of the header, the last numbers of all.
HEADER = 8
(
    TILE_X,  # where the tile begins in the image that the pass makes
    TILE_Y,
    IMAGE_WIDTH,  # of that image
    IMAGE_HEIGHT,
    SOURCE_X,  # where the rectangle that is read begins in its image
    SOURCE_Y,
    MAPS,  # how many records there are
) = range(7)
