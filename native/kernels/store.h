// Storing of finished rows to the result. GPU counterpart: executors/cuda/kernels/store.py.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

// Stores row `y`.
template <class Element> void store_row(PlanesOf<Element> planes, i64 y, const Target &target);

// Stores `count` values as floats, values * scale + bias; bypasses the caches if `streams`.
template <class Element>
void store_scaled(const Element *values, i64 count, f32 scale, f32 bias, bool streams, f32 *to);
// The same of `count` interleaved pixels of three channels, each with its scale and bias.
template <class Element>
void store_scaled_pixels(const Element *values, i64 count, const f32 *scale, const f32 *bias, f32 *to);

// Makes stores that bypassed the caches visible to other threads.
VG_INLINE void finish_streams() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace vg::VG_LEVEL
