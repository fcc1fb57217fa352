// Finished rows into their result.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

// Stores row `y`.
void store_row(Planes planes, i64 y, const Target &target);

// `count` bytes as floats, bytes * scale + bias; past the caches if `streams`.
void store_scaled(const u8 *bytes, i64 count, f32 scale, f32 bias, bool streams, f32 *to);
// The same of `count` interleaved pixels of three channels, each with its scale and bias.
void store_scaled_pixels(const u8 *bytes, i64 count, const f32 *scale, const f32 *bias, f32 *to);

// Outputs that went past the caches become visible to other threads.
VG_INLINE void finish_streams() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace vg::VG_LEVEL
