// Writes a header for every pass of every row: its source, operations and target. See executors/cuda/layout.py.
#include "pack.h"

namespace vg {
namespace {

// The source of a pass: an image of the batch, or the canvas of the pass before.
struct Source {
  i64 address, stride_y, stride_x, stride_c, height, width;
};

// Kernels of a launch are compiled with the features that its rows need.
struct Launch {
  i64 *fields;  // [LAUNCH_FIELDS]
  i32 *list;

  void need(i64 features) const { fields[LaunchField::FEATURES] |= features; }
  void add(i64 entry, i64 tiles) const {
    list[fields[LaunchField::NUM_ROWS]++] = (i32)entry;
    fields[LaunchField::NUM_TILES] = max_of(fields[LaunchField::NUM_TILES], tiles);
  }
};

// Number 0 is the preparation, 1 + p is pass p.
Launch launch_of(const PackCall &call, i64 number) {
  return {call.launches + number * LAUNCH_FIELDS,
          section<i32>(call, Section::LISTS, number * call.program->list_length)};
}

i64 *header_of(const PackCall &call, i64 p, i64 row) {
  return section<i64>(call, Section::HEADERS, (p * call.program->rows + row) * HEADER_FIELDS);
}

i64 tiles_of_area(const PackCall &call, i64 height, i64 width) {
  return ceil_div(height, call.block_y) * ceil_div(width, call.block_x);
}

int features_of_source(i64 source) {
  switch (source) {
    case PassSource::INTERPOLATED: return KernelFeature::HAS_SUBPIXEL;
    case PassSource::FILTER: return KernelFeature::HAS_FILTER;
    case PassSource::RESAMPLE: return KernelFeature::HAS_RESAMPLE;
    case PassSource::FOLDED: return KernelFeature::HAS_FOLD;
    default: return 0;
  }
}

int features_of(const DeviceRow &row, i64 k) {
  const int op = row.opcode(k);
  switch (op) {
    case Op::HUE: return KernelFeature::HAS_HUE;
    case Op::CLAHE: return KernelFeature::HAS_CLAHE;
    case Op::OVERLAY: return KernelFeature::HAS_OVERLAY;
    case Op::MAP_GRID: return KernelFeature::HAS_GRID;
    default: return IS_WARP[op] ? KernelFeature::HAS_WARP : draws_noise(row, k) ? KernelFeature::HAS_NOISE : 0;
  }
}

bool erases_result(const DeviceRow &row, i64 k) { return row.opcode(k) == Op::ERASE && row.args(k)[7] != 0; }

// Returns the features that slots begin..end need, and sets ERASES in the header.
int describe_slots(const DeviceRow &row, i64 begin, i64 end, i64 *header) {
  int features = 0;
  for (i64 k = begin; k < end; k++) {
    features |= features_of(row, k);
    if (erases_result(row, k)) header[HeaderField::ERASES] = 1;
  }
  return features;
}

// True if a map in slots begin..end folds: its flags contain a PadMode.
bool has_folding_map(const DeviceRow &row, i64 begin, i64 end) {
  for (i64 k = begin; k < end; k++)
    if (IS_SUBPIXEL_MAP[row.opcode(k)] && row.flags(k) > INTERPOLATION_MASK) return true;
  return false;
}

void copy_pass(const DeviceRow &row, const i32 *pass, i64 *header) {
  for (int i = 0; i < PASS_FIELDS; i++) header[i] = pass[i];
  constexpr int SLOTS[] = {PassField::BEGIN,  PassField::END,      PassField::FIRST,      PassField::MAPS_END,
                           PassField::VALUES, PassField::POSITION, PassField::STATISTICS, PassField::STATISTICS_END};
  for (int field : SLOTS) header[field] += row.first_slot();
}

void copy_source(const Source &from, i64 *header) {
  header[HeaderField::IMAGE] = from.address;
  header[HeaderField::STRIDE_Y] = from.stride_y;
  header[HeaderField::STRIDE_X] = from.stride_x;
  header[HeaderField::STRIDE_C] = from.stride_c;
  header[HeaderField::IN_HEIGHT] = from.height;
  header[HeaderField::IN_WIDTH] = from.width;
}

void copy_row(const PackCall &call, const DeviceRow &row, i64 *header) {
  const u64 id = row.all->ids[row.row];
  const u32 *key = row.all->key + row.row * 2;
  header[HeaderField::CHANNELS] = row.in_shape()[2];
  header[HeaderField::ID_LOW] = (i64)(id & 0xffffffff);
  header[HeaderField::ID_HIGH] = (i64)(id >> 32);
  header[HeaderField::KEY] = (i64)((u64)key[1] << 32 | key[0]);
  header[HeaderField::REGION_X] = call.region_x;
  header[HeaderField::REGION_Y] = call.region_y;
  header[HeaderField::WHOLE_WIDTH] = call.whole_width ? call.whole_width : header[PassField::WIDTH];
  header[HeaderField::WHOLE_HEIGHT] = call.whole_width ? call.whole_height : header[PassField::HEIGHT];
}

// Clears the fields that only few passes set.
void clear_rest(i64 *header) {
  header[HeaderField::TAPS_X] = header[HeaderField::TAPS_Y] = header[HeaderField::WEIGHTS] = 0;
  header[HeaderField::ERASES] = 0;
  static_assert(HeaderField::WHOLE_HEIGHT == HEADER_FIELDS - 1, "fields behind the last one would have to be cleared");
}

// Describes the resize of a pass, whose weights begin at the offset `weights`. Returns its number of weight blocks.
i64 describe_resize(const DeviceRow &row, const i32 *pass, i64 &weights, i64 *header) {
  const i64 k = pass[PassField::FIRST], height = pass[PassField::HEIGHT], width = pass[PassField::WIDTH];
  const Taps taps = count_taps(row.args(k), row.flags(k));
  header[HeaderField::TAPS_X] = taps.x;
  header[HeaderField::TAPS_Y] = taps.y;
  header[HeaderField::WEIGHTS] = weights;
  weights += 4 * ((taps.x + 1) * width + (taps.y + 1) * height);
  return ceil_div(height, WEIGHTS_BLOCK) + ceil_div(width, WEIGHTS_BLOCK);
}

// Number of tiles of the part of the image that statistics measure, at least one.
i64 tiles_seen(const PackCall &call, const i32 *pass) {
  const i64 height = max_of(pass[PassField::BOTTOM] - pass[PassField::TOP], 0);
  const i64 width = max_of(pass[PassField::RIGHT] - pass[PassField::LEFT], 0);
  return max_of<i64>(ceil_div(height, call.block_y), 1) * max_of<i64>(ceil_div(width, call.block_x), 1);
}

// Writes the header of pass p. `target`: address of its output. `weights`: offset of the next resize's weights.
void write_pass(const PackCall &call, const DeviceRow &row, i64 p, const Source &from, i64 target, i64 &weights) {
  const i32 *pass = row.pass(p);
  i64 *header = header_of(call, p, row.row);
  copy_pass(row, pass, header);
  copy_source(from, header);
  copy_row(call, row, header);
  clear_rest(header);
  header[HeaderField::IS_FINAL] = p == row.num_passes() - 1 && !row.is_blended();
  header[HeaderField::TARGET] = target;
  const i64 begin = pass[PassField::BEGIN], end = pass[PassField::END], source = pass[PassField::SOURCE];
  const Launch launch = launch_of(call, 1 + p);
  launch.need(features_of_source(source) | describe_slots(row, begin, end, header));
  if (call.whole_width) launch.need(KernelFeature::IS_REGION);
  if (has_folding_map(row, begin, end)) launch.need(KernelFeature::HAS_FOLD);
  launch.add(row.row, tiles_of_area(call, pass[PassField::HEIGHT], pass[PassField::WIDTH]));
  i64 prepared = source == PassSource::RESAMPLE ? describe_resize(row, pass, weights, header) : 0;
  if (pass[PassField::NEEDS]) {
    // The pass before measures its output; the preparation measures images of the batch.
    const Launch measuring = launch_of(call, p);
    if (p > 0) measuring.need(KernelFeature::MEASURES);
    else prepared = tiles_seen(call, pass);
    if (row.opcode(pass[PassField::STATISTICS]) == Op::PERCENTILE_STRETCH)
      measuring.fields[LaunchField::PERCENTILES_BEGIN] = 1;
  }
  if (prepared) launch_of(call, 0).add(p * row.all->rows + row.row, prepared);
}

Source image_of_row(const PackCall &call, const DeviceRow &row) {
  const i64 image = row.all->source[row.row];
  const i64 *strides = call.strides + image * 3;
  return {call.addresses[image], strides[0], strides[1], strides[2], row.in_shape()[0], row.in_shape()[1]};
}

}  // namespace

void write_headers(const PackCall &call) {
  const DeviceProgram &program = *call.program;
  const i64 lists = (1 + program.depth) * program.list_length;
  memset(section<i32>(call, Section::LISTS), 0xff, (size_t)lists * sizeof(i32));
  i64 canvases = call.canvases, weights = program.at[Section::RESIZE_WEIGHTS];
  for (i64 r = 0; r < program.rows; r++) {
    const DeviceRow row = {&program, r};
    const CanvasSizes sizes = canvas_sizes(row);
    const i64 canvas[2] = {canvases, canvases + program.canvas_pixel * sizes.first};
    canvases += program.canvas_pixel * (sizes.first + sizes.second);
    Source from = image_of_row(call, row);
    const i64 count = row.num_passes();
    for (i64 p = 0; p < count; p++) {
      const i32 *pass = row.pass(p);
      const bool is_final = p == count - 1 && !row.is_blended();
      write_pass(call, row, p, from, is_final ? call.targets[r] : canvas[p % 2], weights);
      const i64 height = pass[PassField::HEIGHT], width = pass[PassField::WIDTH];
      // Planes of deep images; kernels know the words of uint8 images.
      from = {canvas[p % 2], width, 1, height * width, height, width};
    }
    for (i64 p = count; p < program.depth; p++) header_of(call, p, r)[PassField::NEEDS] = 0;
  }
}

void write_blend(const PackCall &call) {
  const DeviceProgram &program = *call.program;
  i64 *launch = call.launches + (1 + program.depth) * LAUNCH_FIELDS;
  launch[LaunchField::NUM_ROWS] = program.outputs;
  for (i64 n = 0; n < program.outputs; n++) {
    // The header of the first row's last pass, with the range of all its instructions.
    const DeviceRow row = {&program, program.entry_row[program.begins[n]]};
    i64 *header = section<i64>(call, Section::BLEND_HEADERS, n * HEADER_FIELDS);
    memcpy(header, header_of(call, row.num_passes() - 1, row.row), HEADER_FIELDS * sizeof(i64));
    header[PassField::BEGIN] = row.first_slot();
    header[PassField::END] = row.first_slot() + row.length();
    header[HeaderField::TARGET] = call.targets[n];
    header[HeaderField::ERASES] = 0;
    const i64 tiles = tiles_of_area(call, header[PassField::HEIGHT], header[PassField::WIDTH]);
    launch[LaunchField::NUM_TILES] = max_of(launch[LaunchField::NUM_TILES], tiles);
    launch[LaunchField::FEATURES] |= describe_slots(row, 0, row.length(), header);
  }
  const i64 entries = program.begins[program.outputs];
  for (i64 n = 0; n <= program.outputs; n++) section<i32>(call, Section::BEGINS)[n] = (i32)program.begins[n];
  for (i64 e = 0; e < entries; e++) {
    const DeviceRow row = {&program, program.entry_row[e]};
    const i64 *last = header_of(call, row.num_passes() - 1, row.row);
    section<i64>(call, Section::LAST_CANVASES)[e] = last[HeaderField::TARGET];
  }
  const size_t outputs = (size_t)program.outputs, count = (size_t)entries;
  memcpy(section<u8>(call, Section::STARTS), program.start, outputs * sizeof(f32));
  memcpy(section<u8>(call, Section::BLEND_WEIGHTS), program.weight, count * sizeof(f32));
  memcpy(section<u8>(call, Section::BOXES), program.box, count * 4 * sizeof(i32));
  memcpy(section<u8>(call, Section::ALPHA_AT), program.alpha_at, count * sizeof(i64));
  if (program.alpha_size) memcpy(section<u8>(call, Section::ALPHA), program.alpha, (size_t)program.alpha_size);
}

}  // namespace vg
