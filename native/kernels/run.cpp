// Runs the rows of a batch, pass by pass. For every row of pixels: read the source, apply value operations, fill pixels
// outside, apply operations that depend on position, store. GPU counterpart: `run_pass` in
// executors/cuda/kernels/fused.py; definition: tests/oracle/executor.py.
#include "../coords.h"
#include "deep.h"
#include "reader.h"
#include "store.h"
#include "values.h"

namespace vg::VG_LEVEL {

bool RowScratch::reserve(i64 side, i64 bytes_of_element) {
  const i64 wanted = max_of(stride, round_up(side, BLOCK) + BLOCK), bytes = max_of(element_bytes, bytes_of_element);
  if (wanted == stride && bytes == element_bytes) return true;
  stride = element_bytes = 0;
  const i64 row_words = bytes == 4 ? 7 : 4;
  bool ok = pixels.reserve(3 * wanted * bytes) && spare.reserve(3 * wanted * bytes) &&
            interleaved.reserve(4 * wanted) && words.reserve(row_words * wanted) && column.reserve(wanted) &&
            line.reserve(wanted) && offset.reserve(wanted) && stage.reserve(wanted);
  if (!ok) return false;
  stride = wanted;
  element_bytes = bytes;
  return true;
}

bool TableScratch::reserve(i64 slots, i64 element_bytes) {
  return luts.reserve(768 * slots) && fills.reserve(3 * slots * element_bytes) && map_slots.reserve(slots);
}

namespace {

// The largest image, in bytes, that fits into a second-level cache in addition to the current one.
constexpr i64 PREFETCHED = 1 << 18;

// Lines between a copied line and the one that is prefetched with it.
constexpr i64 LINES_AHEAD = 4;

// Prefetches the next image while the current one is computed, because reads out of order would wait for each of its
// lines.
struct NextImage {
  const void *pixels;
  i64 bytes;
};

NextImage next_image(const Batch *batch, i64 r, i64 end, i64 element_bytes) {
  if (r >= end) return {nullptr, 0};
  const i32 *shape = batch->in_shape + 3 * r;
  const i64 bytes = (i64)shape[0] * shape[1] * shape[2] * element_bytes;
  return {batch->sources[r], bytes <= PREFETCHED ? bytes : 0};
}

// One read of an image and one write of another: a pass, or the part of a pass before its filter.
template <class Element> struct Step {
  const i32 *pass;
  ImageOf<Element> image;
  Target target;
};

// Describes the operations before a filter or an interpolating map as a pass: tables, and at most one map.
void describe_input(const Row &row, const i32 *pass, i32 *input) {
  memset(input, 0, PASS_FIELDS * sizeof(i32));
  const i32 begin = pass[PassField::BEGIN], end = pass[PassField::FIRST];
  int source = PassSource::DIRECT;
  i32 first = begin, maps_end = begin;
  for (i32 k = begin; k < end; k++) {
    if (row.kind(k) != Kind::GEOMETRY) continue;
    first = k;
    maps_end = k + 1;
    source = source_of_map(row.opcode[k], row.args[k]);
  }
  input[PassField::SOURCE] = source;
  input[PassField::FIRST] = first;
  input[PassField::MAPS_END] = maps_end;
  input[PassField::BEGIN] = input[PassField::VALUES] = begin;
  input[PassField::END] = input[PassField::POSITION] = end;
  input[PassField::STATISTICS] = input[PassField::STATISTICS_END] = end;
}

// Finds the maps of a step and their fill colors; prepares tables and weights, for lines `y` only if that saves work.
template <class Element>
Status prepare(const Row &row, const Step<Element> &step, Range y, Scratch &s, Reader &reader) {
  const i32 *pass = step.pass;
  const i64 height = step.target.height, width = step.target.width;
  reader = reader_of(row, pass, s);
  for (i64 i = 0; i < reader.num_maps; i++) {
    const i64 k = s.tables.map_slots[i];
    color_after(row, k, pass[PassField::POSITION], step.image.channels, s, s.tables.fill<Element>(k));
  }
  bool has_memory = prepare_reader(row, pass, step.image, height, width, s, reader);
  if (reader.source == PassSource::FILTER)
    has_memory = prepare_filter<Element>(row, reader.slot, height, width, step.image.channels, s);
  if (reader.source == PassSource::RESAMPLE)
    has_memory = prepare_resize(row, reader.slot, step.image, height, width, y, s);
  return has_memory ? OK : OUT_OF_MEMORY;
}

// Reads row `y` of a step to the planes; returns the columns inside if they are one range.
template <class Element> Range read_row(const Row &row, const Step<Element> &step, const Reader &reader, i64 y,
                                        PlanesOf<Element> planes, Scratch &s) {
  const ImageOf<Element> &image = step.image;
  const i64 width = step.target.width, slot = reader.slot;
  const Range all = {0, width};
  switch (reader.source) {
    case PassSource::DIRECT: copy_pixels(image, y * width, width, false, planes, 0); return all;
    case PassSource::ROW_COPY: {
      RowCopy copy = row_copy(image.width, row.args[slot], row.window[slot], y, width);
      // Hardware prefetchers do not follow lines in reverse order.
      if (row.args[slot][4] < 0 && image.bytes() > PREFETCHED)
        prefetch(image.pixels + image.channels * (copy.first_pixel - LINES_AHEAD * image.width),
                 image.channels * copy.columns.size() * (i64)sizeof(Element));
      copy_pixels(image, copy.first_pixel, copy.columns.size(), copy.is_mirrored, planes, copy.columns.first);
      return copy.columns;
    }
    case PassSource::FIXED: return read_fixed_row(image, row.args[slot], row.window[slot], y, width, planes, s);
    case PassSource::CHAIN: find_chain_row(reader.num_maps, y, width, s); break;
    case PassSource::TABLE: read_table_row(image, slot, y, width, planes, s); return all;
    case PassSource::INTERPOLATED:
      if ((row.flags[slot] & INTERPOLATION_MASK) != Interpolation::NEAREST)
        return read_interpolated_row(row, image, slot, reader.num_maps, reader.is_range, y, width, s);
      find_real_nearest_row(row, slot, y, width, s);
      break;
    case PassSource::FOLDED: find_folded_row(reader.num_maps, y, width, s); break;
    case PassSource::FILTER:
      read_filtered_row<Element>(row, slot, step.target.height, width, image.channels, y, s);
      return all;
    default: read_resized_row(row, slot, image, y, width, s); return all;
  }
  read_coordinates(image, y, width, s);
  return all;
}

// Computes lines `y` of a step's target.
template <class Element>
Status run_step(const Row &row, const Step<Element> &step, Range y, NextImage next, Scratch &s) {
  Reader reader;
  const Status status = prepare(row, step, y, s, reader);
  if (status != OK) return status;
  const Target &target = step.target;
  const i64 end = step.pass[PassField::END], position = step.pass[PassField::POSITION];
  const i64 prefetched = y.is_empty() ? 0 : (next.bytes / y.size() + 64) / 64 * 64;
  for (i64 line = y.first; line < y.end; line++) {
    const i64 done = (line - y.first) * prefetched;
    prefetch((const u8 *)next.pixels + done, min_of(prefetched, next.bytes - done));
    PlanesOf<Element> planes = s.row.planes<Element>();
    // In place, which works for a filter's input: it has no chain of maps.
    if (target.storage == Storage::PLANES)
      planes = {(Element *)s.filter.first + 3 * line * s.filter.stride, s.filter.stride};
    Range inside = read_row(row, step, reader, line, planes, s);
    for (i64 k = step.pass[PassField::VALUES]; k <= end; k++) {
      if (k == position) {
        if (reader.is_range)
          fill_outside(planes, target.channels, (const Element *)s.tables.fill<Element>(reader.slot), inside,
                       target.width);
        else if (reader.num_maps > 0) fill_by_stage<Element>(reader.num_maps, target.width, s);
        inside = {0, target.width};
      }
      if (k == end) break;
      if (row.kind(k) == Kind::POSITION) apply_position<Element>(row, k, line, target.width, target.channels, s);
      else apply_value(row, k, target.channels, s.tables.luts.at, planes, inside);
    }
    if (target.storage != Storage::PLANES) store_row(planes, line, target);
  }
  if (target.is_float() && position < end) erase_normalized(row, position, end, target, y);
  return OK;
}

bool has_input(const i32 *pass) {
  const i32 source = pass[PassField::SOURCE];
  return source == PassSource::FILTER ||
         (source == PassSource::INTERPOLATED && pass[PassField::FIRST] > pass[PassField::BEGIN]);
}

// Computes lines `y` of the input of a pass's filter, to the planes of the scratch; or of the image after tables that
// the pass's map reads, to `tabled`. `target`: target of the pass.
template <class Element> Status make_input(const Row &row, const i32 *pass, const ImageOf<Element> &image,
                                           const Target &target, Range y, u8 *tabled, NextImage next, Scratch &s) {
  i32 input[PASS_FIELDS];
  describe_input(row, pass, input);
  Step<Element> step = {input, image, target};
  if (pass[PassField::SOURCE] == PassSource::FILTER) step.target.storage = Storage::PLANES;
  else step.target = {tabled, Storage::BYTES_HWC, image.height, image.width, image.channels, false, nullptr, nullptr};
  return run_step(row, step, y, next, s);
}

// Runs a pass. First computes the full input of its filter, or of an interpolating map after tables.
template <class Element> Status run_pass(const Row &row, const i32 *pass, const ImageOf<Element> &source,
                                         const Target &target, NextImage &next, Scratch &s) {
  ImageOf<Element> image = source;
  if constexpr (HAS_LEVELS<Element>)
    if (pass[PassField::QUALITY] != 0 && !code_jpeg(image, pass[PassField::QUALITY], s)) return OUT_OF_MEMORY;
  if (pass[PassField::NEEDS] != 0) measure_statistics(row, pass, image, s);
  if (has_input(pass)) {
    const i64 slot = pass[PassField::FIRST];
    const bool is_filter = pass[PassField::SOURCE] == PassSource::FILTER;
    const bool has_memory = is_filter ? reserve_filter<Element>(row, slot, target.height, target.width, s)
                                      : s.tabled.reserve(image.bytes() + BLOCK);
    if (!has_memory) return OUT_OF_MEMORY;
    const Range all = {0, is_filter ? target.height : image.height};
    const Status status = make_input(row, pass, image, target, all, s.tabled.at, next, s);
    if (status != OK) return status;
    next.bytes = 0;
    if (!is_filter) image.pixels = (const Element *)s.tabled.at;
  }
  const Status status = run_step<Element>(row, {pass, image, target}, {0, target.height}, next, s);
  next.bytes = 0;
  return status;
}

// The longest side of the images and results of a row's slots, plus the margins of filters.
i64 longest_side(const Row &row, const i32 *shape, i64 length) {
  i64 side = max_of(shape[0], shape[1]), margin = 0;
  for (i64 k = 0; k < length; k++) {
    side = max_of<i64>(side, max_of(row.out_size[k][0], row.out_size[k][1]));
    if (row.kind(k) == Kind::NEIGHBORHOOD) margin = max_of(margin, filter_margin(row, k));
  }
  return side + 2 * margin;
}

// The target of a pass: the row's result for the last pass, else interleaved elements.
Target target_of(const Batch *batch, const i32 *pass, u8 *at, i64 channels, bool is_last) {
  Target target = {
      at, Storage::BYTES_HWC, pass[PassField::HEIGHT], pass[PassField::WIDTH], channels, false, nullptr, nullptr};
  if (!is_last) return target;
  const i64 of_channels = channels == 1 ? 0 : 3;
  target.storage = (int)batch->storage;
  target.streams = batch->streams != 0;
  target.scale = batch->scale + of_channels;
  target.bias = batch->bias + of_channels;
  return target;
}

bool reserve_row(const Row &row, i64 r, i64 element_bytes, Scratch &s) {
  const i64 length = row.batch->length[r];
  return s.row.reserve(longest_side(row, row.batch->in_shape + 3 * r, length), element_bytes) &&
         s.tables.reserve(row.slots + 1, element_bytes) && reserve_overlays(row, length, s);
}

template <class Element> Status run_row(const Batch *batch, i64 r, i64 end, Scratch &s) {
  const Row row = row_of(batch, r);
  const i32 *shape = batch->in_shape + 3 * r;
  ImageOf<Element> image = {(const Element *)batch->sources[r], shape[0], shape[1], shape[2]};
  if (!HAS_LEVELS<Element> && needs_levels(row, batch->length[r])) return UNSUPPORTED;
  if (!reserve_row(row, r, sizeof(Element), s)) return OUT_OF_MEMORY;
  NextImage next = next_image(batch, r + 1, end, sizeof(Element));
  for (i64 p = 0; p < batch->num_passes[r]; p++) {
    const i32 *pass = pass_of(batch, r, p);
    const bool is_last = p == batch->num_passes[r] - 1;
    Target target = target_of(batch, pass, batch->targets[r], image.channels, is_last);
    if (!is_last) {
      Buffer<u8> &canvas = s.canvas[p & 1];
      const i64 bytes = target.height * target.width * target.channels * (i64)sizeof(Element);
      if (!canvas.reserve(bytes + BLOCK)) return OUT_OF_MEMORY;
      target.at = canvas.at;
    }
    const Status status = run_pass(row, pass, image, target, next, s);
    if (status != OK) return status;
    image = {(const Element *)target.at, target.height, target.width, target.channels};
  }
  return OK;
}

// Size of the INPUT buffer of a pass in bytes, for its filter or its map after tables. 0 for passes that read their
// image directly, and for filters that read few lines, which each band computes itself.
template <class Element> i64 input_bytes(const Row &row, const i32 *pass, const ImageOf<Element> &image) {
  if (!has_input(pass)) return 0;
  if (pass[PassField::SOURCE] != PassSource::FILTER) return image.bytes() + BLOCK;
  if (filter_radius(row, pass[PassField::FIRST]) >= 0) return 0;
  return filter_bytes<Element>(row, pass[PassField::FIRST], pass[PassField::HEIGHT], pass[PassField::WIDTH]) + BLOCK;
}

// Computes the filter's input for lines `y` of a pass, in the thread's private memory.
template <class Element> Status make_filter_input(const Row &row, const i32 *pass, const ImageOf<Element> &image,
                                                  const Target &target, Range y, Scratch &s) {
  const i64 slot = pass[PassField::FIRST], radius = filter_radius(row, slot);
  const Range seen = {max_of<i64>(0, y.first - radius), min_of(target.height, y.end + radius)};
  const i64 line = filter_bytes<Element>(row, slot, 1, target.width);
  if (!s.filter.image.reserve(line * seen.size())) return OUT_OF_MEMORY;
  use_shared_filter<Element>(row, slot, target.width, s.filter.image.at - line * seen.first, nullptr, s);
  const Status status = make_input(row, pass, image, target, seen, nullptr, {nullptr, 0}, s);
  repeat_edges_of<Element>(row, slot, target.width, image.channels, seen, s);
  return status;
}

// Runs one step of a pass whose memory several workers share, after the steps before it.
template <class Element> Status run_band(const BandCall &call, Scratch &s) {
  const Row row = row_of(call.batch, call.row);
  const i32 *pass = pass_of(call.batch, call.row, call.pass);
  ImageOf<Element> image = {(const Element *)call.source, call.height, call.width, call.channels};
  const Target target = target_of(call.batch, pass, call.target, image.channels, call.is_last != 0);
  const Range y = {call.begin, call.end};
  const i64 slot = pass[PassField::FIRST];
  const bool is_filter = pass[PassField::SOURCE] == PassSource::FILTER;
  if (!HAS_LEVELS<Element> && needs_levels(row, call.batch->length[call.row])) return UNSUPPORTED;
  if (!reserve_row(row, call.row, sizeof(Element), s)) return OUT_OF_MEMORY;
  const i64 table_bytes = 768 * row.slots;
  if constexpr (HAS_LEVELS<Element>)
    if (call.step == BandStep::CODE) {
      if (!code_jpeg(image, pass[PassField::QUALITY], s)) return OUT_OF_MEMORY;
      memcpy(call.target, image.pixels, (size_t)image.bytes());
      return OK;
    }
  if (call.step == BandStep::MEASURE) {
    measure_statistics(row, pass, image, s);
    memcpy(call.tables, s.tables.luts.at, (size_t)table_bytes);
    return OK;
  }
  if (pass[PassField::NEEDS] != 0) memcpy(s.tables.luts.at, call.tables, (size_t)table_bytes);
  const u8 *tiles = call.step == BandStep::PASS ? call.tiles : nullptr;
  if (is_filter) use_shared_filter<Element>(row, slot, target.width, call.input, tiles, s);
  NextImage next = {nullptr, 0};
  if (call.step == BandStep::INPUT) {
    const Status status = make_input(row, pass, image, target, y, call.input, next, s);
    if (is_filter) repeat_edges_of<Element>(row, slot, target.width, image.channels, y, s);
    return status;
  }
  if (call.step == BandStep::TILES) {
    if (!measure_filter(row, slot, target.height, target.width, image.channels, s)) return OUT_OF_MEMORY;
    memcpy(call.tiles, s.filter.tiles.luts.at, TILE_TABLES);
    return OK;
  }
  if (has_input(pass) && !is_filter) image.pixels = (const Element *)call.input;
  if (is_filter && filter_radius(row, slot) >= 0) {
    const Status status = make_filter_input(row, pass, image, target, y, s);
    if (status != OK) return status;
  }
  return run_step<Element>(row, {pass, image, target}, y, next, s);
}

template <class Element> Status run_rows(const RunCall &call) {
  auto &scratch = *(Scratch *)call.scratch;
  for (i64 r = call.begin; r < call.end; r++) {
    const Status status = run_row<Element>(call.batch, r, call.end, scratch);
    if (status != OK) return status;
  }
  finish_streams();
  return OK;
}

// Calls a function with a value of the batch's element type.
template <class Function> auto for_depth(const Batch *batch, Function function) {
  switch (batch->depth) {
    case Depth::UINT16: return function(u16());
    case Depth::FLOAT32: return function(f32());
    default: return function(u8());
  }
}

}  // namespace

// Runs all passes of rows begin..end of a batch.
VG_EXPORT i64 VG_ENTRY(vg_run)(const RunCall *call) {
  return for_depth(call->batch, [&](auto element) { return run_rows<decltype(element)>(*call); });
}

// Runs a step of a pass on some of its lines.
VG_EXPORT i64 VG_ENTRY(vg_run_band)(const BandCall *call) {
  auto &scratch = *(Scratch *)call->scratch;
  const Status status =
      for_depth(call->batch, [&](auto element) { return run_band<decltype(element)>(*call, scratch); });
  finish_streams();
  return status;
}

// Bytes of `input` that the pass of a call needs.
VG_EXPORT i64 VG_ENTRY(vg_input_bytes)(const BandCall *call) {
  const Row row = row_of(call->batch, call->row);
  const i32 *pass = pass_of(call->batch, call->row, call->pass);
  return for_depth(call->batch, [&](auto element) {
    const ImageOf<decltype(element)> image = {nullptr, call->height, call->width, call->channels};
    return input_bytes(row, pass, image);
  });
}

// Allocates an empty scratch for a thread; null if there is no memory.
VG_EXPORT void *VG_ENTRY(vg_new_scratch)() { return calloc(1, sizeof(Scratch)); }

VG_EXPORT void VG_ENTRY(vg_free_scratch)(void *memory) {
  if (memory) ((Scratch *)memory)->~Scratch();
  free(memory);
}

}  // namespace vg::VG_LEVEL
