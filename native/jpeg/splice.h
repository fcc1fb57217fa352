// A crop cut out of the coded file: only the first DC coefficients of its rows are coded anew.
#pragma once
#include "entries.h"

namespace vg::jpeg {

// Top and left, then bottom and right or height and width.
struct Box {
  i64 top, left, bottom, right;
};

// Writes a JPEG that holds at least `box`, in pixels, to be decoded at a scale of 1 by `divisor`. `box` becomes that of
// the JPEG: top, left, height, width. Returns its size in bytes; 0: none can be made, or there is no memory.
i64 splice(Bytes file, const Entries &entries, i64 divisor, Box *box, Buffer<u8> *scratch, u8 *out, i64 room);

}  // namespace vg::jpeg
