"""Numbers of convolutions, whose integer weights ``native/lowering/kernel_weights.cpp`` computes."""

from __future__ import annotations

# Fraction bits: of a full kernel's weights, and of the half of a separable one's; and of levels between its two passes.
# A sum of two levels with LEVEL_BITS, and a weight, each fit into 16 bits; any number of products into 32.
WEIGHT_BITS = 14
LEVEL_BITS = 6
# Of the amount of an unsharp mask.
AMOUNT_BITS = 8
