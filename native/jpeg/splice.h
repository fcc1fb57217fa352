// A crop cut out of the coded file: only the first DC coefficients of its rows are coded anew.
#pragma once
#include "entries.h"

namespace vg::jpeg {

// Writes a JPEG that holds at least `box`, in pixels, to be decoded at a scale of 1 by `divisor`. `box` becomes that of
// the JPEG: top, left, and height and width in place of bottom and right. Returns its size in bytes; 0: none can be
// made, or there is no memory.
i64 splice(Bytes file, const Entries &entries, i64 divisor, Rectangle *box, Buffer<u8> *scratch, u8 *out, i64 capacity);

}  // namespace vg::jpeg
