// Which passes these kernels run, for as long as others are run elsewhere.
#pragma once
#include "executor.h"

namespace vg {
namespace VG_LEVEL {

VG_INLINE bool supports_source(int source) {
  switch (source) {
    case PassSource::DIRECT:
    case PassSource::STRETCH:
    case PassSource::RESAMPLE:
    case PassSource::FILTER:
    case PassSource::FIXED:
    case PassSource::CHAIN:
    case PassSource::TABLE:
    case PassSource::INTERPOLATED:
    case PassSource::FOLDED:
      return true;
    default:
      return false;
  }
}

VG_INLINE bool supports_op(int op) {
  switch (op) {
    case Op::LUT:
    case Op::SHARPNESS:
    case Op::MEDIAN:
    case Op::MORPHOLOGY:
    case Op::CLAHE:
    case Op::ZOOM_BLUR:
    case Op::ABERRATION:
    case Op::SCATTER:
    case Op::JPEG:
    case Op::CONVOLVE:
    case Op::MIX:
    case Op::HUE:
    case Op::PERMUTE:
    case Op::COLOR_MATRIX:
    case Op::POINT:
    case Op::CONTRAST:
    case Op::AUTOCONTRAST:
    case Op::EQUALIZE:
    case Op::GAUSSIAN_NOISE:
    case Op::SHOT_NOISE:
    case Op::SALT_AND_PEPPER:
    case Op::ERASE:
    case Op::OVERLAY:
      return true;
    default:
      return KIND_OF[op] == Kind::GEOMETRY || KIND_OF[op] == Kind::RESAMPLE;  // its source decides
  }
}

VG_INLINE bool supports(const Row &row, const i32 *pass) {
  if (!supports_source(pass[PassField::SOURCE])) return false;
  for (i64 k = pass[PassField::BEGIN]; k < pass[PassField::END]; k++)
    if (!supports_op(row.opcode[k])) return false;
  return true;
}

}  // namespace VG_LEVEL
}  // namespace vg
