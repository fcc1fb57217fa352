"""Integer records by which interpolating maps of a chain are read: their fields, which ``native/coords.cpp`` writes.

``tests/oracle/places.py`` has the meaning. A grid of displacements cuts a chain, and so does a map that folds what lies
beyond its image: maps before it are functions of the coordinates that it has moved, joined anew from there; steps of
their records are taken per fraction of a coordinate, ``step >> bits``.
"""

from __future__ import annotations

# Coordinates are not told apart beyond so many pixels, of which 16.16 numbers fit into 64 bits. An interpolating map
# that reaches farther shows nothing, or if it folds, the first pixel.
MAX_COORD = 2.0**46

# Fields of a record, int64[RECORD]. U, V and DEPTH are three numbers each: what a column adds, what a line adds, and
# the value where both are 0. U and V are distances from a side of the window, times the depth.
U = 0
V = 3
DEPTH = 6
(
    SPAN_U,  # inside is 0 <= u < SPAN_U depth; where the depth is negative, 0 >= u > SPAN_U depth
    SPAN_V,
    SHIFT,  # u and v are shifted right by so much to become places; under perspective, the depth before it divides
    EXPONENT,  # a quotient is multiplied by this power of two to become a place; 0: no perspective
    ORIGIN_U,  # the place at u = 0; and whether places grow with u or, as in a mirror, fall: 1 or -1
    SIGN_U,
    ORIGIN_V,
    SIGN_V,
    # Whether the depth is negative anywhere, a grid moves places or they fold: whether what is inside may have gaps.
    BEHIND,
    GRID,  # of a grid: where its nodes begin, and 1 more; else 0
    FOLD,  # the PadMode of what lies beyond the window: if it is not 0, nothing is outside
) = range(9, 20)
# What the first fields of a grid's record say. SPAN_U and SPAN_V are the sides of the image that it makes; sums of
# nodes, weighed, are shifted right by SHIFT to become distances between places. ORIGIN and SIGN lead to the source.
# TWICE: whether blends with the fill multiply by the weight of the image twice.
STEP_X, STEP_Y, COLUMNS, SWAPS, TWICE = range(5)
RECORD = 20
# Steps are nodes per pixel; node 0 lies at the center of pixel 0. Weights of nodes have WEIGHT_BITS. A node's
# displacement counts in 2**(unit - NODE_BITS) pixels, the unit no greater than MAX_UNIT and no less than -MAX_UNIT.
STEP_BITS, WEIGHT_BITS, NODE_BITS, MAX_UNIT = 26, 14, 6, 6
# How the source lies to what a grid was made for: from the right, from below, and with columns and lines swapped.
FAR_X = 1
FAR_Y = 2
SWAPPED = 4
# A further bit of that argument: within a pixel of the border, bilinear places blend the image with the fill by the
# weight of the image, which torchvision's elastic applies twice: w (w image) + (1 - w) fill.
WEIGHS_TWICE = 8

# Fraction bits of places.
BILINEAR_BITS = 15
BICUBIC_BITS = 14
# Numerators are shifted by so much before they are divided.
NUMERATOR_SHIFT = 31
