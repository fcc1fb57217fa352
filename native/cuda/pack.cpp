// Packs a fused program into one buffer, for a single copy to the device.
#include "pack.h"

namespace vg {
namespace {

void copy(const PackCall &call, int which, const void *from, i64 size) {
  if (size) memcpy(section<u8>(call, which), from, (size_t)size);
}

void copy_tables(const PackCall &call) {
  const DeviceProgram &program = *call.program;
  copy(call, Section::ARGS, program.args, program.rows * program.slots * NUM_ARGS * (i64)sizeof(f64));
  copy(call, Section::LUTS, program.luts, program.luts_size);
  copy(call, Section::MATRICES, program.matrices, program.matrices_size);
  copy(call, Section::KERNELS, program.kernels, program.kernels_size);
  copy(call, Section::RECTANGLES, program.rectangles, program.rectangles_size);
  copy(call, Section::GRIDS, program.grids, program.grids_size);
  f32 *constants = section<f32>(call, Section::CONSTANTS);
  memcpy(constants, program.scale_and_bias, SCALES_AND_BIASES * sizeof(f32));
  if (program.draws_noise) memcpy(constants + SCALES_AND_BIASES, program.segments, (size_t)program.segments_size);
}

}  // namespace

// Writes all sections of a program after vg_plan_buffer, and its launches. UNSUPPORTED if a row reads an image that is
// not in the batch.
VG_EXPORT i64 vg_pack(const PackCall *call) {
  const DeviceProgram &program = *call->program;
  for (i64 r = 0; r < program.rows; r++)
    if (program.source[r] < 0 || program.source[r] >= call->images) return UNSUPPORTED;
  memset(call->launches, 0, (size_t)(2 + program.depth) * LAUNCH_FIELDS * sizeof(i64));
  write_headers(*call);
  write_code(*call);
  write_maps(*call);
  copy_tables(*call);
  if (program.outputs) write_blend(*call);
  return OK;
}

}  // namespace vg
