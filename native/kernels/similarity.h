// Dissimilarity of two small pictures: see variegate/apps/check/fingerprint.py.
#pragma once
#include "../constants.h"

namespace vg::VG_LEVEL {

// Fits `one`, flipped, to `other`, both signatures u8[SIGNATURE_BYTES]. Returns the standard deviation of the residual
// divided by that of `other`, both over the compared pixels: 0 to about 1. Returns UNLIKE if colors or contrasts
// exclude a match. `flip`: 1 left to right, + 2 upside down.
f64 unlikeness(const u8 *one, const u8 *other, int flip);

}  // namespace vg::VG_LEVEL
