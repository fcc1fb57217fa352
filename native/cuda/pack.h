// Fused programs as bytes that GPU kernels read: see variegate/executors/cuda/layout.py.
#pragma once
#include "../coords.h"

namespace vg {

// The program of one row.
struct DeviceRow {
  const DeviceProgram *all;
  i64 row;

  // Slots are counted over all rows in what kernels read.
  i64 first_slot() const { return row * all->slots; }
  i64 at(i64 slot) const { return first_slot() + slot; }
  int opcode(i64 k) const { return all->opcode[at(k)]; }
  int flags(i64 k) const { return all->flags[at(k)]; }
  const f64 *args(i64 k) const { return all->args + at(k) * NUM_ARGS; }
  const u8 *fill(i64 k) const { return all->fill + at(k) * 3; }
  const i32 *out_size(i64 k) const { return all->out_size + at(k) * 2; }
  const i32 *window(i64 k) const { return all->window + at(k) * 4; }
  const i32 *pass(i64 p) const { return all->passes + (row * all->max_passes + p) * PASS_FIELDS; }
  const i32 *in_shape() const { return all->in_shape + row * 3; }
  MapSlots map_slots() const {
    return map_slots_of(all->opcode + at(0), args(0), all->flags + at(0), window(0), out_size(0));
  }
  i64 length() const { return all->length[row]; }
  i64 num_passes() const { return all->num_passes[row]; }
  bool is_blended() const { return all->outputs > 0; }
};

// True if an instruction draws random numbers for each pixel.
VG_INLINE bool draws_noise(const DeviceRow &row, i64 k) {
  const int op = row.opcode(k);
  if (op == Op::ERASE) return row.args(k)[2] != 0;
  return KIND_OF[op] == Kind::POSITION && NOISE_ARG[op] >= 0;
}

// Weights per output of a resize, at most.
struct Taps {
  i64 x, y;
};
// Of a RESIZED_CROP with these arguments and flags.
Taps count_taps(const f64 *args, int flags);

// Pixels of the two images that a row's passes write in turn. The last pass writes its result elsewhere, unless rows
// are blended. Rounded up to four, so that the memory behind an image is aligned.
struct CanvasSizes {
  i64 first, second;
};
CanvasSizes canvas_sizes(const DeviceRow &row);

// The memory of a section, of which `offset` is a part.
template <class T> VG_INLINE T *section(const PackCall &call, int which, i64 offset = 0) {
  return (T *)(call.memory + call.program->at[which]) + offset;
}

// The headers of all passes, and the lists of rows and launches that go with them.
void write_headers(const PackCall &call);
// What kernels need to join rows: a header for each output, and the entries of the blend.
void write_blend(const PackCall &call);
// The instructions, and source columns and lines of maps that are tables.
void write_code(const PackCall &call);
// Records of maps, to which the instructions of these maps are pointed: after write_code.
void write_maps(const PackCall &call);

}  // namespace vg
