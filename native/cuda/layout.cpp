// Sizes and offsets of the sections of a packed program.
#include "pack.h"

namespace vg {
namespace {

// Alignment of sections in bytes, so that Triton may assume aligned loads.
constexpr i64 ALIGNMENT = 16;

// The factor by which a side shrinks, rounded as in the kernel that computes the weights (`_weigh_axis` in
// resample.py).
f64 scale_of(f64 start, f64 extent, f64 size) {
  // A negative start means a crop by integer pixels (lowering/merge.cpp), whose box begins at 0.
  start = max_of(start, 0.0);
  const f32 first = (f32)start;
  return (f64)((f32)(start + extent) - first) / size;
}

f64 filter_radius(int filter) {
  return filter == Interpolation::BICUBIC ? 2.0 : filter == Interpolation::LANCZOS ? 3.0 : 1.0;
}

// Numbers of values in the sections whose sizes depend on the instructions.
struct Counts {
  i64 depth = 1, indices = 0, maps = 0, statistics = 0, weights = 0, canvas_pixels = 0;
  bool draws_noise = false, has_codec = false;
};

void count_instruction(const DeviceRow &row, i64 k, Counts &counts) {
  const int op = row.opcode(k), kind = KIND_OF[op];
  const i64 h = row.out_size(k)[0], w = row.out_size(k)[1];
  if (op == Op::MAP_SCALE || op == Op::MAP_PAD) {
    counts.indices += h + w;
  } else if (IS_SUBPIXEL_MAP[op]) {
    counts.maps++;
  } else if (kind == Kind::STATISTIC) {
    counts.statistics++;
  } else if (kind == Kind::RESAMPLE) {
    const Taps taps = count_taps(row.args(k), row.flags(k));
    counts.weights += (taps.x + 1) * w + (taps.y + 1) * h;
  } else if (kind == Kind::CODEC) {
    counts.has_codec = true;
  } else if (draws_noise(row, k)) {
    counts.draws_noise = true;
  }
}

Counts count(const DeviceProgram &program) {
  Counts counts;
  for (i64 r = 0; r < program.rows; r++) {
    const DeviceRow row = {&program, r};
    for (i64 k = 0; k < row.length(); k++) count_instruction(row, k, counts);
    for (i64 p = 0; p < row.num_passes(); p++) {
      const i32 *pass = row.pass(p);
      if (pass[PassField::SOURCE] == PassSource::FOLDED)
        counts.maps += pass[PassField::MAPS_END] - pass[PassField::FIRST];
    }
    counts.depth = max_of(counts.depth, row.num_passes());
    const CanvasSizes canvases = canvas_sizes(row);
    counts.canvas_pixels += canvases.first + canvases.second;
  }
  return counts;
}

}  // namespace

Taps count_taps(const f64 *args, int flags) {
  const f64 radius = filter_radius(flags);
  const f64 scale_x = max_of(scale_of(args[1], args[3], args[5]), 1.0);
  const f64 scale_y = max_of(scale_of(args[0], args[2], args[4]), 1.0);
  return {2 * to_i64(ceil(radius * scale_x)) + 1, 2 * to_i64(ceil(radius * scale_y)) + 1};
}

CanvasSizes canvas_sizes(const DeviceRow &row) {
  const i64 count = row.is_blended() ? row.num_passes() : row.num_passes() - 1;
  i64 sizes[2] = {0, 0};
  for (i64 p = 0; p < count; p++) {
    const i32 *pass = row.pass(p);
    const i64 pixels = round_up((i64)pass[PassField::HEIGHT] * pass[PassField::WIDTH], 4);
    sizes[p % 2] = max_of(sizes[p % 2], pixels);
  }
  return {sizes[0], sizes[1]};
}

// Computes offsets and sizes of all sections. UNSUPPORTED if an instruction is a codec, for which there is no kernel.
VG_EXPORT i64 vg_plan_buffer(DeviceProgram *program) {
  const Counts counts = count(*program);
  if (counts.has_codec) return UNSUPPORTED;
  const i64 slots = program->rows * program->slots, outputs = program->outputs;
  const i64 entries = outputs ? program->begins[outputs] : 0;
  program->depth = counts.depth;
  program->draws_noise = counts.draws_noise;
  program->list_length = round_up(program->rows * counts.depth, 4);
  program->canvas_size = program->canvas_pixel * counts.canvas_pixels;
  i64 sizes[NUM_SECTIONS] = {};
  sizes[Section::HEADERS] = 8 * HEADER_FIELDS * counts.depth * program->rows;
  sizes[Section::CODE] = 4 * CODE_FIELDS * slots;
  sizes[Section::ARGS] = 8 * NUM_ARGS * slots;
  sizes[Section::CONSTANTS] = 4 * SCALES_AND_BIASES + (counts.draws_noise ? program->segments_size : 0);
  sizes[Section::LISTS] = 4 * (1 + counts.depth) * program->list_length;
  sizes[Section::LUTS] = program->luts_size;
  sizes[Section::MATRICES] = program->matrices_size;
  sizes[Section::KERNELS] = program->kernels_size;
  sizes[Section::RECTANGLES] = program->rectangles_size;
  sizes[Section::GRIDS] = program->grids_size;
  sizes[Section::INDICES] = 4 * counts.indices;
  sizes[Section::MAPS] = 8 * RECORD_FIELDS * counts.maps;
  if (outputs) {
    sizes[Section::BLEND_HEADERS] = 8 * HEADER_FIELDS * outputs;
    sizes[Section::BEGINS] = 4 * (outputs + 1);
    sizes[Section::STARTS] = 4 * outputs;
    sizes[Section::LAST_CANVASES] = 8 * entries;
    sizes[Section::BLEND_WEIGHTS] = 4 * entries;
    sizes[Section::BOXES] = 16 * entries;
    sizes[Section::ALPHA_AT] = 8 * entries;
    sizes[Section::ALPHA] = program->alpha_size;
  }
  sizes[Section::STATISTICS] = TABLE_SIZE * counts.statistics;
  sizes[Section::RESIZE_WEIGHTS] = 4 * counts.weights;
  i64 end = 0;
  for (int i = 0; i < NUM_SECTIONS; i++) {
    program->at[i] = end;
    end += round_up(sizes[i], ALIGNMENT);
  }
  program->uploaded = program->at[Section::STATISTICS];
  program->buffer_size = end + ALIGNMENT;
  return OK;
}

}  // namespace vg
