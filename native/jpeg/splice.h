// Cuts a crop out of a JPEG without decoding: only the first DC differences of each row are coded again.
#pragma once
#include "entries.h"

namespace vg::jpeg {

// Writes a JPEG that contains at least `box`, in pixels, for decoding at a scale of 1 / `divisor`. Sets `box` to the
// JPEG's: top, left, and height and width instead of bottom and right. Returns its size in bytes; 0 if it cannot be cut
// or there is no memory.
i64 splice(Bytes file, const Entries &entries, i64 divisor, Rectangle *box, Buffer<u8> *scratch, u8 *out, i64 capacity);

}  // namespace vg::jpeg
