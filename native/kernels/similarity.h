// How much two small pictures differ: see variegate/apps/check/fingerprint.py.
#pragma once
#include "../constants.h"

namespace vg::VG_LEVEL {

// The part of small picture `other` (a signature, u8[SIGNATURE_BYTES]) that `one`, flipped and fitted to it, does not
// explain: the standard deviation of the difference, divided by that of `other` where they are compared; 0 to about 1,
// or UNLIKE where colors or contrasts exclude that they are alike. `flip`: 1 left to right, + 2 upside down.
f64 unlikeness(const u8 *one, const u8 *other, int flip);

}  // namespace vg::VG_LEVEL
