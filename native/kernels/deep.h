// Operations on values of uint16 and float32: computed for each value, where images of 256 levels have tables.
// Arguments on levels are in units of uint8, of which white is 255.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

// Runs the per-channel or statistic operation at `slot` on values of channel `c`. `measured`: of all slots, 768 bytes
// each, what measure_statistics wrote.
template <class Element> void change_channel(const Row &row, i64 slot, i64 c, const u8 *measured, i64 count,
                                             Element *values);
// Measures the image that each statistic of a pass sees, for `change_channel`.
template <class Element>
void measure_statistics(const Row &row, const i32 *pass, const ImageOf<Element> &image, Scratch &s);
// HUE; `turn`: the share of a full turn.
template <class Element> void turn_hue(PlanesOf<Element> planes, Range columns, f32 turn);

}  // namespace vg::VG_LEVEL
