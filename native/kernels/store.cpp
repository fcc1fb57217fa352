// Finished rows into their result, as uint8 or float32, interleaved or planar.
#include "store.h"

namespace vg {
namespace VG_LEVEL {
namespace {

void store_bytes(Planes planes, i64 y, const Target &target) {
  const i64 width = target.width, channels = target.channels;
  for (i64 c = 0; c < channels; c++) {
    const u8 *from = planes[c];
    const bool is_planar = target.storage == Storage::BYTES_CHW || channels == 1;
    u8 *to = target.at + (is_planar ? (c * target.height + y) * width : channels * y * width + c);
    const i64 step = is_planar ? 1 : channels;
    for (i64 x = 0; x < width; x++) to[x * step] = from[x];
  }
}

void store_floats(Planes planes, i64 y, const Target &target) {
  const i64 width = target.width, channels = target.channels;
  const bool is_planar = target.storage == Storage::FLOATS_CHW || channels == 1;
  for (i64 c = 0; c < channels; c++) {
    const u8 *from = planes[c];
    f32 *to = (f32 *)target.at + (is_planar ? (c * target.height + y) * width : channels * y * width + c);
    const i64 step = is_planar ? 1 : channels;
    const f32 scale = target.scale[c], bias = target.bias[c];
    for (i64 x = 0; x < width; x++) to[x * step] = (f32)from[x] * scale + bias;
  }
}

}  // namespace

void store_row(Planes planes, i64 y, const Target &target) {
  if (target.is_float()) store_floats(planes, y, target);
  else store_bytes(planes, y, target);
}

}  // namespace VG_LEVEL
}  // namespace vg
