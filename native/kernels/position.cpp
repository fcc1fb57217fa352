// Operations that depend on a pixel's position. GPU counterpart: `apply_position` in executors/cuda/kernels/values.py;
// definition: tests/oracle/position.py.
#include "noise.h"
#include "overlay.h"
#include "scratch.h"

namespace vg::VG_LEVEL {

template <class Element> void apply_position(const Row &row, i64 slot, i64 y, i64 width, i64 channels, Scratch &s) {
  const PlanesOf<Element> planes = s.row.planes<Element>();
  switch ((PositionOp)row.opcode[slot]) {
    case PositionOp::GAUSSIAN_NOISE:
    case PositionOp::SALT_AND_PEPPER:
    case PositionOp::SHOT_NOISE: return add_noise(row, slot, y * width, width, channels, planes);
    case PositionOp::ERASE: return erase_row(row, slot, y, width, channels, planes);
    case PositionOp::OVERLAY:
      if constexpr (HAS_LEVELS<Element>) overlay_row(row, slot, y, width, channels, s);
  }
}

#define VG_COMPILE_ALL(Element) VG_COMPILE(apply_position, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
