// Single images: one call draws, lowers and runs the program. See variegate/executors/cpu/single.py.
#include "../constants.h"

VG_EXPORT i64 VG_ENTRY(vg_lower)(Lowering *all);
VG_EXPORT i64 VG_ENTRY(vg_draw)(const DrawCall *call);
VG_EXPORT i64 VG_ENTRY(vg_run)(const RunCall *call);

namespace vg::VG_LEVEL {

// A call that returns a SingleStatus may be repeated after the caller has handled it, and continues from there.
VG_EXPORT i64 VG_ENTRY(vg_make_one)(SingleCall *call) {
  Lowering *lowering = call->lowering;
  if (!call->is_lowered) {
    const i64 failure = call->draw ? VG_ENTRY(vg_draw)(call->draw) : OK;
    if (failure) return failure;
    lowering->records = call->records;
    lowering->composed = call->composed;
    const i64 status = VG_ENTRY(vg_lower)(lowering);
    if (status != OK) return status;
    if (lowering->num_kernel_values > lowering->kernel_values) return SingleStatus::NO_ROOM_FOR_WEIGHTS;
    call->is_lowered = 1;
  }
  const i32 *last_pass = lowering->passes + (lowering->num_passes[0] - 1) * PASS_FIELDS;
  const i64 height = last_pass[PassField::HEIGHT], width = last_pass[PassField::WIDTH];
  if (height != call->height || width != call->width) {
    call->height = height;
    call->width = width;
    return SingleStatus::OTHER_SIZE;
  }
  call->batch->streams = call->streams;
  const RunCall run = {call->batch, call->scratch, 0, 1};
  return VG_ENTRY(vg_run)(&run);
}

}  // namespace vg::VG_LEVEL
