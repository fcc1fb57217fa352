// Types that all kernels use: a row of a batch, a pass's input image and target, and a thread's buffers.
#pragma once
#include "../coords.h"
#include "element.h"

namespace vg::VG_LEVEL {

template <class Element> struct ImageOf {
  const Element *pixels;  // [height, width, channels]
  i64 height, width, channels;

  i64 bytes() const { return height * width * channels * (i64)sizeof(Element); }
};
using Image = ImageOf<u8>;

// The output of a pass.
struct Target {
  u8 *at;
  int storage;  // a Storage; BYTES_* hold elements, FLOATS_* float32
  i64 height, width, channels;
  bool streams;  // stores bypass the caches
  const f32 *scale, *bias;  // [channels], for FLOATS_*

  bool is_float() const { return storage >= Storage::FLOATS_CHW; }
};

// A row of pixels with one plane per channel. An image in planes is a sequence of such rows.
template <class Element> struct PlanesOf {
  Element *at;
  i64 stride;  // elements from channel to channel

  Element *operator[](i64 channel) const { return at + channel * stride; }
};
using Planes = PlanesOf<u8>;

// One program: arrays by slot, and the batch whose tables the slots refer to. In the oracle, an instruction of it is
// Instruction in tests/oracle/instruction.py.
struct Row {
  const i16 *opcode;
  const f64 (*args)[NUM_ARGS];
  const i16 *flags;  // interpolation and border of a map
  const u8 (*fill)[3];
  const i32 (*out_size)[2];  // height, width after the instruction
  const i32 (*window)[4];  // top, left, bottom, right
  i64 slots;
  u64 id;
  u32 key_low, key_high;  // the stream key; with the id, it seeds the image's noise
  const Batch *batch;

  int kind(i64 slot) const { return KIND_OF[opcode[slot]]; }
  MapSlots map_slots() const { return {opcode, args, flags, window, out_size}; }
  const u8 *lut(i64 slot) const { return batch->luts + 768 * (i64)args[slot][0]; }  // [3, 256]
  const f64 *curves(i64 slot) const { return batch->curves + 768 * (i64)args[slot][0]; }  // [3, 256]
};

VG_INLINE Row row_of(const Batch *batch, i64 r) {
  const i64 first = r * batch->slots;
  return {batch->opcode + first,
          (const f64(*)[NUM_ARGS])(batch->args + first * NUM_ARGS),
          batch->flags + first,
          (const u8(*)[3])(batch->fill + first * 3),
          (const i32(*)[2])(batch->out_size + first * 2),
          (const i32(*)[4])(batch->window + first * 4),
          batch->slots,
          batch->ids[r],
          batch->key[2 * r],
          batch->key[2 * r + 1],
          batch};
}

VG_INLINE const i32 *pass_of(const Batch *batch, i64 r, i64 p) {
  return batch->passes + (r * batch->max_passes + p) * PASS_FIELDS;
}

// Buffers for an output row and its source positions. All have room for the widest row and one block more.
struct RowScratch {
  i64 stride = 0;  // elements of a plane's row: the widest side, padded
  i64 element_bytes = 0;  // size of the widest element that fits
  Buffer<u8> pixels;  // [3, stride] elements
  Buffer<u8> spare;  // [3, stride] elements
  Buffer<u8> interleaved;  // [4 * stride]
  Buffer<i32> words;  // [4 * stride], and room for seven rows of elements
  Buffer<i32> column, line;  // coordinates in the source
  Buffer<i32> offset;  // bytes into the source
  Buffer<i32> stage;  // the slot of the map at which a pixel left the image, -1 inside

  template <class Element = u8> PlanesOf<Element> planes() { return {(Element *)pixels.at, stride}; }
  template <class Element = u8> PlanesOf<Element> spare_planes() { return {(Element *)spare.at, stride}; }
  // Allocates rows of `side` pixels. False if there is no memory.
  bool reserve(i64 side, i64 bytes_of_element);
};

// Tables of statistics and fill colors of maps, by slot.
struct TableScratch {
  Buffer<u8> luts;  // [slots, 3, 256]: tables of statistics
  Buffer<u8> fills;  // [slots, 3] elements: final colors of pixels outside the image of a slot's map
  Buffer<i32> map_slots;  // the slots of a pass's maps, in order

  u8 *lut(i64 slot) { return luts.at + 768 * slot; }
  template <class Element = u8> Element *fill(i64 slot) { return (Element *)fills.at + 3 * slot; }
  bool reserve(i64 slots, i64 element_bytes);
};

}  // namespace vg::VG_LEVEL
