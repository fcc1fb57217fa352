// Written by native/constants.py; run `python -m native.constants` instead of editing it.
// clang-format off
#pragma once
#include "core.h"

namespace Op {
enum : int {
  NOP = 0,
  HFLIP = 1,
  VFLIP = 2,
  ROT90 = 3,
  CROP = 4,
  PAD = 5,
  RESIZED_CROP = 6,
  ROTATE = 7,
  SHEAR_X = 8,
  SHEAR_Y = 9,
  TRANSLATE_X = 10,
  TRANSLATE_Y = 11,
  AFFINE = 12,
  PERSPECTIVE = 13,
  DISPLACE = 14,
  SATURATION = 21,
  HUE = 22,
  GRAYSCALE = 28,
  PERMUTE = 29,
  LUT = 31,
  COLOR_MATRIX = 32,
  POINT = 33,
  CONTRAST = 40,
  AUTOCONTRAST = 41,
  EQUALIZE = 42,
  SHARPNESS = 50,
  GAUSSIAN_BLUR = 51,
  MOTION_BLUR = 52,
  FILTER = 53,
  UNSHARP_MASK = 54,
  MEDIAN = 55,
  CLAHE = 56,
  MORPHOLOGY = 37,
  ZOOM_BLUR = 57,
  ABERRATION = 58,
  SCATTER = 59,
  OVERLAY = 36,
  GAUSSIAN_NOISE = 60,
  SALT_AND_PEPPER = 61,
  SHOT_NOISE = 62,
  ERASE = 63,
  JPEG = 70,
  MAP_FIXED = 100,
  MAP_SCALE = 101,
  MAP_FLOAT = 102,
  MAP_PERSPECTIVE = 103,
  MAP_PAD = 104,
  CONVOLVE = 105,
  MIX = 106,
  MAP_GRID = 107,
  BRIGHTNESS = 20,
  GAMMA = 23,
  POSTERIZE = 24,
  SOLARIZE = 25,
  SOLARIZE_ADD = 26,
  INVERT = 27,
  RGB_SHIFT = 30,
};
}  // namespace Op

namespace Kind {
enum : int {
  GEOMETRY = 0,
  RESAMPLE = 1,
  VALUE = 2,
  STATISTIC = 3,
  NEIGHBOURHOOD = 4,
  POSITION = 5,
  CODEC = 6,
};
}  // namespace Kind

namespace Interpolation {
enum : int {
  NEAREST = 0,
  BILINEAR = 1,
  BICUBIC = 2,
  BOX = 3,
  HAMMING = 4,
  LANCZOS = 5,
};
}  // namespace Interpolation

namespace PadMode {
enum : int {
  CONSTANT = 0,
  EDGE = 1,
  REFLECT = 2,
  SYMMETRIC = 3,
  WRAP = 4,
};
}  // namespace PadMode

namespace LayerMode {
enum : int {
  OVER = 0,
  SCALE = 1,
  ADD = 2,
  CURVE = 3,
};
}  // namespace LayerMode

namespace PassSource {
enum : int {
  DIRECT = 0,
  STRETCH = 1,
  FIXED = 2,
  CHAIN = 3,
  TABLE = 4,
  INTERPOLATED = 5,
  FILTER = 6,
  RESAMPLE = 7,
  FOLDED = 8,
};
}  // namespace PassSource

namespace PassBreak {
enum : int {
  NONE = 0,
  MAP_AFTER_POSITION = 1,
  MAP_AFTER_SOURCE = 2,
  MAP_OF_ANOTHER_KIND = 3,
  MAP_STAGE_BY_STAGE = 4,
  MAP_AFTER_VALUES = 5,
  STATISTIC_OF_NEW_IMAGE = 6,
  STATISTIC_MEASURED_BEFORE = 7,
  FILTER_OF_NEW_IMAGE = 8,
  RESAMPLE_NOT_FIRST = 9,
  CODEC = 10,
};
}  // namespace PassBreak

namespace PassField {
enum : int {
  BEGIN = 0,
  END = 1,
  SOURCE = 2,
  FIRST = 3,
  MAPS_END = 4,
  VALUES = 5,
  POSITION = 6,
  STATISTICS = 7,
  STATISTICS_END = 8,
  NEEDS = 9,
  TOP = 10,
  LEFT = 11,
  BOTTOM = 12,
  RIGHT = 13,
  OUTSIDE = 14,
  BREAK = 15,
  BREAKER = 16,
  HEIGHT = 17,
  WIDTH = 18,
  QUALITY = 19,
};
}  // namespace PassField

constexpr int PASS_FIELDS = 20;

constexpr int NEEDS_LUMA = 1;

constexpr int NEEDS_COUNTS = 2;

constexpr int NUM_ARGS = 8;

constexpr int MAX_OPCODE = 128;

constexpr int MAX_TILES = 16;

constexpr int MAX_ELEMENT = 31;

constexpr int MAX_ZOOMS = 30;

constexpr int MAX_DISTANCE = 1024;

constexpr int MAX_TIMES = 3;

constexpr int INTERPOLATION_BITS = 3;

constexpr int INTERPOLATION_MASK = 7;

constexpr int LAYER_PLANES = 8;

constexpr int LIGHTNESSES = 511;

constexpr int LUMA_RED = 19595;

constexpr int LUMA_GREEN = 38470;

constexpr int LUMA_BLUE = 7471;

constexpr int LUMA_HALF = 32768;

constexpr int LUMA_SHIFT = 16;

// By opcode: the Kind, and sets of instructions.

constexpr i8 KIND_OF[] = {-1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, -1, -1, 5, 4, -1, -1, 3, 3, 3, -1, -1, -1, -1, -1, -1, -1, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, -1, -1, -1, -1, -1, -1, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 4, 2, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

constexpr u8 IS_COLOR_ONLY[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

constexpr u8 IS_REAL_MAP[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

constexpr u8 IS_WARP[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

constexpr u8 IS_BLUR[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

// Coordinates: see variegate/program/places.py.

constexpr f64 MAX_COORD = 0x1.0000000000000p+46;

namespace Record {
enum : int {
  U = 0,
  V = 3,
  DEPTH = 6,
  SPAN_U = 9,
  SPAN_V = 10,
  SHIFT = 11,
  EXPONENT = 12,
  ORIGIN_U = 13,
  SIGN_U = 14,
  ORIGIN_V = 15,
  SIGN_V = 16,
  BEHIND = 17,
  GRID = 18,
  FOLD = 19,
  STEP_X = 0,
  STEP_Y = 1,
  COLUMNS = 2,
  SWAPS = 3,
  TWICE = 4,
};
}  // namespace Record

constexpr int RECORD_FIELDS = 20;

constexpr int STEP_BITS = 26;

constexpr int WEIGHT_BITS = 14;

constexpr int NODE_BITS = 6;

constexpr int MAX_UNIT = 6;

constexpr int FAR_X = 1;

constexpr int FAR_Y = 2;

constexpr int SWAPPED = 4;

constexpr int WEIGHS_TWICE = 8;

constexpr int BILINEAR_BITS = 15;

constexpr int BICUBIC_BITS = 14;

constexpr int NUMERATOR_SHIFT = 31;

// Weights of convolutions: see variegate/program/lowering/blurs.py.

constexpr int KERNEL_WEIGHT_BITS = 14;

constexpr int KERNEL_LEVEL_BITS = 6;

constexpr int AMOUNT_BITS = 8;

// Random numbers: see variegate/program/rng.py.

constexpr i64 PHILOX_M0 = 3528531795;

constexpr i64 PHILOX_M1 = 3449720151;

constexpr i64 PHILOX_W0 = 2654435769;

constexpr i64 PHILOX_W1 = 3144134277;

constexpr int PHILOX_ROUNDS = 10;

constexpr int SEGMENT_BITS = 7;

constexpr int SEGMENT_SHIFT = 16;

constexpr int FIRST_SEGMENT = 16256;

// Of a single image's instruction, written as one record.

constexpr int INSTRUCTION_RECORD = 16;

// Results.

namespace Storage {
enum : int {
  PLANES = 0,
  BYTES_HWC = 1,
  BYTES_CHW = 2,
  FLOATS_CHW = 3,
  FLOATS_HWC = 4,
};
}  // namespace Storage

namespace BandStep {
enum : int {
  CODE = 0,
  MEASURE = 1,
  INPUT = 2,
  TILES = 3,
  PASS = 4,
};
}  // namespace BandStep

// R rows of fused programs of K slots and P passes, and where their pixels are.
struct Batch {
  i64 rows;
  i64 slots;
  i64 max_passes;
  const i16 * opcode;
  const f64 * args;
  const i16 * flags;
  const u8 * fill;
  const i32 * out_size;
  const i32 * window;
  const i32 * passes;
  const i32 * length;
  const i32 * num_passes;
  const i32 * in_shape;
  const u64 * ids;
  const u32 * key;
  const u8 * luts;
  const f32 * matrices;
  const i16 * kernels;
  const i32 * rectangles;
  const i16 * grids;
  i64 grid_values;
  void *const * points;
  const f32 * segments;
  const u8 *const * sources;
  u8 *const * targets;
  const f32 * scale;
  const f32 * bias;
  i64 storage;
  i64 streams;
};

// R programs of K slots, rewritten in place: see native/lowering.
struct Lowering {
  i64 rows;
  i64 slots;
  i16 * opcode;
  f64 * args;
  i16 * flags;
  u8 * fill;
  i32 * out_size;
  i16 * label;
  i32 * length;
  i32 * in_shape;
  u64 * ids;
  u32 * key;
  i32 * window;
  i16 * pass_of;
  i32 * num_passes;
  i32 * passes;
  i32 * breaks;
  const u8 * emitted;
  u8 * luts;
  const f32 * filters;
  i16 * kernels;
  i64 kernel_values;
  const f64 * neutral;
  const i64 * records;
  i64 composed;
  i64 measured_once;
  i64 longest;
  i64 num_luts;
  i64 num_kernel_values;
};

// One call of vg_run.
struct RunCall {
  const Batch * batch;
  void * scratch;
  i64 begin;
  i64 end;
};

// One call of vg_run_band: lines begin..end of a BandStep of one pass of one row.
struct BandCall {
  const Batch * batch;
  void * scratch;
  i64 row;
  i64 pass;
  i64 step;
  i64 begin;
  i64 end;
  const u8 * source;
  i64 height;
  i64 width;
  i64 channels;
  u8 * input;
  u8 * target;
  i64 is_last;
  u8 * tables;
  u8 * tiles;
};

// One call of vg_blend: rows of a batch joined into outputs begin..end; arrays as in program.BlendEntries.
struct BlendCall {
  const Batch * batch;
  void * scratch;
  i64 begin;
  i64 end;
  const i64 * begins;
  const i64 * row;
  const f32 * weight;
  const i32 * box;
  const f32 * start;
  const u8 * pastes;
  const i64 * alpha_at;
  const u8 * alpha;
  const u8 *const * canvases;
  u8 *const * targets;
  i64 storage;
  i64 streams;
};

// One call of vg_pick_planes: three channels each of images begin..end, interleaved, one image after another.
struct PickCall {
  const i64 * images;
  i64 begin;
  i64 end;
  i64 channels;
  u8 * target;
  i64 * sources;
};
