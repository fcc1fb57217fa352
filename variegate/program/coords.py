"""Fields of the integer records that describe interpolating maps to kernels. ``native/coords.cpp`` writes the records.

``tests/oracle/places.py`` is the reference. A chain of linear maps is composed into one record. Displacement grids and
maps with a border mode other than a constant end a composition, because they are not linear. Maps before them start a
new record, whose input is the displaced coordinate with its fraction bits: its steps are applied as ``step >> bits``.
"""

from __future__ import annotations

# Largest coordinate in pixels: larger 16.16 fixed-point numbers would not fit into 64 bits. An interpolating map that
# exceeds it outputs the fill color, or with a border mode the first pixel.
MAX_COORD = 2.0**46

# Fields of a record, int64[RECORD]. U, V and DEPTH are linear functions of the output pixel, three numbers each: the
# step per column, the step per row, and the value at (0, 0). DEPTH is the denominator of perspective maps. U and V are
# distances from an edge of the source window, times the depth.
U = 0
V = 3
DEPTH = 6
(
    SPAN_U,  # a pixel is inside if 0 <= u < SPAN_U * depth, or for a negative depth 0 >= u > SPAN_U * depth
    SPAN_V,
    SHIFT,  # right shift from u and v to source positions; with perspective, right shift of the depth before dividing
    EXPONENT,  # power of two that scales a quotient to a source position; 0: no perspective
    ORIGIN_U,  # source position at u = 0
    SIGN_U,  # 1 if source positions increase with u, -1 if they decrease (mirrored)
    ORIGIN_V,
    SIGN_V,
    # 1 if the pixels inside a row need not be contiguous: the depth is negative somewhere, or positions are displaced
    # or folded.
    BEHIND,
    GRID,  # for a grid, 1 + the index of its first node; else 0
    FOLD,  # the PadMode for positions outside the window; if not 0, no position counts as outside
) = range(9, 20)
# Meaning of the first fields in a grid's record. SPAN_U and SPAN_V are the grid's output size; weighted sums of nodes,
# shifted right by SHIFT, are displacements; ORIGIN and SIGN map to the source. TWICE: see WEIGHS_TWICE.
STEP_X, STEP_Y, COLUMNS, SWAPS, TWICE = range(5)
RECORD = 20
# STEP_X and STEP_Y are nodes per pixel, with STEP_BITS fraction bits; node 0 is at the center of pixel 0. Weights of
# nodes have WEIGHT_BITS. A node's displacement is in units of 2**(unit - NODE_BITS) pixels, |unit| <= MAX_UNIT.
STEP_BITS, WEIGHT_BITS, NODE_BITS, MAX_UNIT = 26, 14, 6, 6
# Orientation of the source relative to the image that the grid was made for: mirrored in x or y, or transposed.
FAR_X = 1
FAR_Y = 2
SWAPPED = 4
# A further bit of the orientation: within a pixel of the border, bilinear interpolation blends with the fill as
# torchvision's elastic does, which multiplies by the image's weight twice: w * (w * image) + (1 - w) * fill.
WEIGHS_TWICE = 8

# Fraction bits of source positions.
BILINEAR_BITS = 15
BICUBIC_BITS = 14
# Left shift of numerators before the division by the depth.
NUMERATOR_SHIFT = 31
