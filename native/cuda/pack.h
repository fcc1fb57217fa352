// Packing of fused programs for GPU kernels: see variegate/executors/cuda/layout.py.
#pragma once
#include "../coords.h"

namespace vg {

// The program of one row.
struct DeviceRow {
  const DeviceProgram *all;
  i64 row;

  // Kernels count slots over all rows.
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

// Maximal weights per output of a resize, along x and y.
struct Taps {
  i64 x, y;
};
// The taps of a RESIZED_CROP with these arguments and flags.
Taps count_taps(const f64 *args, int flags);

// Pixels of the two canvases to which a row's passes write alternately. The last pass writes to the result instead,
// unless rows are blended. Rounded up to four, so that the next image is aligned.
struct CanvasSizes {
  i64 first, second;
};
CanvasSizes canvas_sizes(const DeviceRow &row);

// The address of element `offset` of a section.
template <class T> VG_INLINE T *section(const PackCall &call, int which, i64 offset = 0) {
  return (T *)(call.memory + call.program->at[which]) + offset;
}

// Writes the headers of all passes, and the lists of rows and launches.
void write_headers(const PackCall &call);
// Writes the data of the blend: a header for each output, and the entries.
void write_blend(const PackCall &call);
// Writes the instructions, and source columns and lines of table maps.
void write_code(const PackCall &call);
// Writes records of maps, and their offsets to the maps' instructions. Call after write_code.
void write_maps(const PackCall &call);

}  // namespace vg
