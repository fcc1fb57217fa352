"""Constants of convolutions. ``native/lowering/kernel_weights.cpp`` computes their weights.

They are integers for uint8 images. Weights of deep images are float32 in the same units, in two numbers of the table.
"""

from __future__ import annotations

# Weights of a full kernel sum to 1 << WEIGHT_BITS, as do the weights of one half of a symmetric, separable kernel.
# LEVEL_BITS are fraction bits of values between the two passes of a separable kernel. A weight, and a sum of two such
# values, fit into 16 bits; sums of their products fit into 32.
WEIGHT_BITS = 14
LEVEL_BITS = 6
# Fraction bits of an unsharp mask's amount.
AMOUNT_BITS = 8
