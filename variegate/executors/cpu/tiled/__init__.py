"""One image, rectangle by rectangle: the pixels of the whole image's run, to the bit, of images that fit no memory.

A fused program is a chain of *stages*, one for each pass. A stage can be asked for any rectangle of the image that it
makes. It works out which rectangle of the stage before it that is made of, asks for it, and makes its own; so a tile of
the result walks the program backwards to the source (``areas.py``, ``chain.py``). What a stage would need too much of
at a time, it makes in halves, however far its maps reach; so no rectangle is ever larger than some MiB, whatever the
sizes of image and tile. What lies around a filter's rectangle is made again for the next: nothing is kept in between.

Pixels are made by the kernel of whole images, ``run_rows``. To it, a rectangle of the source is an image and one of the
result its output; its program is the whole image's with numbers moved (``workspace.py``):

- nearest maps are whole numbers in 16.16 fixed point, so that a move is exact (``stages.py``);
- interpolating maps are 64-bit integers, linear in columns and lines (``program/places.py``). They are worked out for
  the whole image, and begin at the tile's first pixel instead of the image's;
- statistics are counted over the stage before them, rectangle by rectangle, in the order of the program; then they are
  tables like any other (``statistics.py``), and so are the tiles of CLAHE;
- filters see as much more around a rectangle as their kernels reach. Beyond the image's own border the kernel does what
  it always does; at other borders that is wrong, and cut off;
- noise, erased rectangles and grids of displacements know where the tile lies (``workspace.py``): the kernel calls what
  it does of these by address, and is given others;
- a resize is two stages, one for each axis, and a JPEG one of whole blocks (``chain.py``).

Coordinates of rectangles have 64 bits, or count from a rectangle's own first pixel. So there is no limit to the sides
of an image but that of the numbers in its program.
"""
