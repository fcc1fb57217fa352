// Operations on values of uint16 and float32. They are computed for each value; uint8 images use tables instead.
// Arguments that are pixel values are in units of uint8: white is 255.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

// Runs the per-channel or statistic operation at `slot` on values of channel `c`. `measured`: the output of
// measure_statistics, 768 bytes per slot.
template <class Element>
void change_channel(const Row &row, i64 slot, i64 c, const u8 *measured, i64 count, Element *values);
// Measures the input image of each statistic of a pass, for `change_channel`.
template <class Element>
void measure_statistics(const Row &row, const i32 *pass, const ImageOf<Element> &image, Scratch &s);
// MIX: blends pixels with their gray.
template <class Element> void change_saturation(PlanesOf<Element> planes, Range columns, f32 factor);
// HUE. `turn`: rotation as a fraction of a full turn.
template <class Element> void turn_hue(PlanesOf<Element> planes, Range columns, f32 turn);

}  // namespace vg::VG_LEVEL
