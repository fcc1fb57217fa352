// Blends rows into outputs, plane by plane: weighted sums, or rectangles and alpha masks over each other. GPU
// counterpart: `blend_rows` in executors/cuda/kernels/store.py; definition: tests/oracle/executor.py.
#include "blend.h"
#include "lanes.h"
#include "scratch.h"
#include "store.h"
#include "values.h"

namespace vg::VG_LEVEL {
namespace {

// An output, or a plane of it, with `step` adjacent values per pixel.
struct Plane {
  i64 height, width, step;
  i64 offset;  // its begin in the canvases, in elements

  i64 line() const { return width * step; }
  i64 size() const { return height * line(); }
};

// A box of a plane: a range of lines, and a range of elements in each.
struct Box {
  Range lines, values;
};

Box box_of(const BlendCall &call, i64 entry, const Plane &plane) {
  const i32 *box = call.box + 4 * entry;
  const Range lines = {box[0], min_of<i64>(box[2], plane.height)};
  return {lines, {box[1] * plane.step, min_of(box[3] * plane.step, plane.line())}};
}

bool covers(const BlendCall &call, i64 entry, const Plane &plane) {
  const i32 *box = call.box + 4 * entry;
  return box[0] == 0 && box[1] == 0 && box[2] >= plane.height && box[3] >= plane.width;
}

template <class Element> const Element *canvas_of(const BlendCall &call, i64 entry, const Plane &plane) {
  return (const Element *)call.canvases[call.row[entry]] + plane.offset;
}

// Copies a rectangle; full-width lines in one copy.
template <class Element> void paste(const Element *canvas, const Box &box, const Plane &plane, Element *to) {
  if (box.values.is_empty() || box.lines.is_empty()) return;
  const i64 at = box.lines.first * plane.line() + box.values.first;
  if (box.values.size() == plane.line()) {
    copy_values(to + at, canvas + at, plane.line() * box.lines.size());
    return;
  }
  for (i64 line = 0; line < box.lines.size(); line++)
    copy_values(to + at + line * plane.line(), canvas + at + line * plane.line(), box.values.size());
}

// below + (above - below) * share / 255, rounded to the nearest. GPU counterpart: `_alpha_blend` in
// executors/cuda/kernels/store.py.
template <class Element> VG_INLINE Element over(Element below, Element above, u8 share) {
  using Sum = SumOf<Element>;
  const Sum total = (Sum)below * (Sum)(255 - share) + (Sum)above * (Sum)share;
  return (Element)((total + (IS_FLOAT<Element> ? 0 : 127)) / 255);
}
VG_INLINE u8 over(u8 below, u8 above, u8 share) {
  const u16 total = (u16)(below * (255 - share) + above * share + 128);
  return (u8)((u16)(total + (total >> 8)) >> 8);
}

// Composites a rectangle within the image by `alpha` / 255, one value per pixel.
template <class Element>
void alpha_blend(const Element *canvas, const Box &box, const Plane &plane, const u8 *alpha, Element *output) {
  const i64 columns = box.values.size() / plane.step, step = plane.step;
  for (i64 line = 0; line < box.lines.size(); line++) {
    const i64 at = (box.lines.first + line) * plane.line() + box.values.first;
    const Element *__restrict above = canvas + at;
    const u8 *__restrict shares = alpha + line * columns;
    Element *__restrict to = output + at;
    if (step == 1) {
      for (i64 x = 0; x < columns; x++) to[x] = over(to[x], above[x], shares[x]);
    } else {
      for (i64 x = 0; x < columns; x++)
        for (i64 i = x * step; i < (x + 1) * step; i++) to[i] = over(to[i], above[i], shares[x]);
    }
  }
}

template <class Element> void join_rectangles(const BlendCall &call, i64 output, const Plane &plane, Element *to) {
  for (i64 entry = call.begins[output]; entry < call.begins[output + 1]; entry++) {
    const Box box = box_of(call, entry, plane);
    const Element *canvas = canvas_of<Element>(call, entry, plane);
    if (call.alpha_at[entry] < 0) paste(canvas, box, plane, to);
    else alpha_blend(canvas, box, plane, call.alpha + call.alpha_at[entry], to);
  }
}

// Computes start + weight * value + ..., summed in this order, for `size` values. `start` rounds integers; floats may be
// outside black and white.
template <class Element> void sum_values(f32 start, const BlendTerm *terms, i64 count, i64 size, Element *to) {
  i64 i = 0;
  if constexpr (!HAS_LEVELS<Element>)
    for (; i + LANES <= size; i += LANES) {
      Floats sum = all_floats(IS_FLOAT<Element> ? 0 : start);
      for (i64 t = 0; t < count; t++) sum += terms[t].weight * load_floats((const Element *)terms[t].at + i);
      store_values(to + i, sum);
    }
  for (; i < size; i++) {
    f32 sum = IS_FLOAT<Element> ? 0 : start;
    for (i64 t = 0; t < count; t++) sum += terms[t].weight * (f32)((const Element *)terms[t].at)[i];
    if constexpr (IS_FLOAT<Element>) to[i] = sum;
    else to[i] = truncate_value<Element>(sum);
  }
}

// The same for 2 * LANES bytes from index i on.
VG_INLINE Halves add_terms(f32 start, const BlendTerm *term, i64 count, i64 i) {
  Floats low = all_floats(start), high = low;
  for (i64 t = 0; t < count; t++) {
    const Floats weight = all_floats(term[t].weight);
    const u8 *bytes = (const u8 *)term[t].at + i;
    low += weight * to_floats(load_bytes(bytes));
    high += weight * to_floats(load_bytes(bytes + LANES));
  }
  return pack(truncate_to_byte(low), truncate_to_byte(high));
}

// The same for `size` bytes, with `terms` terms, or `count` if `terms` is 0. The last vectors overlap the ones before.
template <i64 terms> void sum_terms(f32 start, const BlendTerm *term, i64 count, i64 size, u8 *to) {
  constexpr i64 HALF = 2 * LANES;
  if (terms != 0) count = terms;
  if (size >= 2 * HALF) {
    for (i64 i = 0; i < size; i += 2 * HALF) {
      const i64 at = min_of(i, size - 2 * HALF);
      store_packed(to + at, add_terms(start, term, count, at), add_terms(start, term, count, at + HALF));
    }
  } else if (size >= HALF) {
    store_packed(to, add_terms(start, term, count, 0));
    store_packed(to + size - HALF, add_terms(start, term, count, size - HALF));
  } else {
    sum_values<u8>(start, term, count, size, to);
  }
}
void sum_values(f32 start, const BlendTerm *terms, i64 count, i64 size, u8 *to) {
  if (count == 2) sum_terms<2>(start, terms, count, size, to);
  else sum_terms<0>(start, terms, count, size, to);
}

template <class Element>
void sum_all(const BlendCall &call, i64 output, const Plane &plane, BlendTerm *terms, Element *to) {
  i64 count = 0;
  for (i64 entry = call.begins[output]; entry < call.begins[output + 1]; entry++)
    terms[count++] = {canvas_of<Element>(call, entry, plane), call.weight[entry]};
  sum_values(call.start[output], terms, count, plane.size(), to);
}

// Blends a line in segments. A segment is completely inside or outside of each box.
template <class Element>
void sum_line(const BlendCall &call, i64 output, const Plane &plane, i64 y, BlendTerm *terms, Element *to) {
  const i64 line = y * plane.line();
  for (i64 x = 0, end; x < plane.line(); x = end) {
    i64 count = 0;
    end = plane.line();
    for (i64 entry = call.begins[output]; entry < call.begins[output + 1]; entry++) {
      const Box box = box_of(call, entry, plane);
      if (y < box.lines.first || y >= box.lines.end || x >= box.values.end) continue;
      if (x < box.values.first) {
        end = min_of(end, box.values.first);
        continue;
      }
      end = min_of(end, box.values.end);
      terms[count++] = {canvas_of<Element>(call, entry, plane) + line + x, call.weight[entry]};
    }
    sum_values(call.start[output], terms, count, end - x, to + line + x);
  }
}

template <class Element>
void join(const BlendCall &call, i64 output, const Plane &plane, BlendTerm *terms, Element *to) {
  if (call.pastes[output]) return join_rectangles(call, output, plane, to);
  bool covers_all = true;
  for (i64 entry = call.begins[output]; entry < call.begins[output + 1]; entry++)
    covers_all &= covers(call, entry, plane);
  if (covers_all) return sum_all(call, output, plane, terms, to);
  for (i64 y = 0; y < plane.height; y++) sum_line(call, output, plane, y, terms, to);
}

// Stores a plane of an output as floats.
template <class Element> void store_plane(const Element *values, const Plane &plane, i64 number, const Target &target) {
  f32 *to = (f32 *)target.at + number * plane.size();
  if (plane.step == 1)
    store_scaled(values, plane.size(), target.scale[number], target.bias[number], target.streams, to);
  else store_scaled_pixels(values, plane.height * plane.width, target.scale, target.bias, to);
}

Target target_of(const BlendCall &call, i64 output) {
  const Batch *batch = call.batch;
  const i64 r = call.row[call.begins[output]], length = batch->length[r];
  const i32 *shape = batch->in_shape + 3 * r;
  const i32 *size = length > 0 ? batch->out_size + 2 * (r * batch->slots + length - 1) : shape;
  const i64 channels = shape[2], of_channels = channels == 1 ? 0 : 3;
  return {call.targets[output],       (int)call.storage,        size[0], size[1], channels, call.streams != 0,
          batch->scale + of_channels, batch->bias + of_channels};
}

template <class Element> Status blend_output(const BlendCall &call, i64 output, Scratch &s) {
  const Target target = target_of(call, output);
  const bool is_planar = target.storage == Storage::FLOATS_CHW || target.storage == Storage::BYTES_CHW;
  Plane plane = {target.height, target.width, is_planar ? 1 : target.channels, 0};
  if (!s.blend.terms.reserve(call.begins[output + 1] - call.begins[output])) return OUT_OF_MEMORY;
  if (target.is_float() && !s.blend.elements.reserve(plane.size() * (i64)sizeof(Element))) return OUT_OF_MEMORY;
  for (i64 number = 0; number < target.channels / plane.step; number++) {
    plane.offset = number * plane.size();
    Element *to = target.is_float() ? (Element *)s.blend.elements.at : (Element *)target.at + plane.offset;
    join(call, output, plane, s.blend.terms.at, to);
    if (target.is_float()) store_plane((const Element *)to, plane, number, target);
  }
  if (target.is_float()) {
    const i64 r = call.row[call.begins[output]];
    erase_normalized(row_of(call.batch, r), 0, call.batch->length[r], target, {0, target.height});
  }
  return OK;
}

template <class Element> Status blend_outputs(const BlendCall &call) {
  auto &scratch = *(Scratch *)call.scratch;
  for (i64 output = call.begin; output < call.end; output++) {
    const Status status = blend_output<Element>(call, output, scratch);
    if (status != OK) return status;
  }
  finish_streams();
  return OK;
}

}  // namespace

// Blends the rows of each output.
VG_EXPORT i64 VG_ENTRY(vg_blend)(const BlendCall *call) {
  switch (call->batch->depth) {
    case Depth::UINT16: return blend_outputs<u16>(*call);
    case Depth::FLOAT32: return blend_outputs<f32>(*call);
    default: return blend_outputs<u8>(*call);
  }
}

}  // namespace vg::VG_LEVEL
