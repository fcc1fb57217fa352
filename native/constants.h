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
  WINDOW = 15,
  BRIGHTNESS = 20,
  SATURATION = 21,
  HUE = 22,
  GAMMA = 23,
  POSTERIZE = 24,
  SOLARIZE = 25,
  SOLARIZE_ADD = 26,
  INVERT = 27,
  GRAYSCALE = 28,
  PERMUTE = 29,
  RGB_SHIFT = 30,
  LUT = 31,
  COLOR_MATRIX = 32,
  PIXEL_FUNCTION = 33,
  OVERLAY = 36,
  MORPHOLOGY = 37,
  CONTRAST = 40,
  AUTOCONTRAST = 41,
  EQUALIZE = 42,
  PERCENTILE_STRETCH = 43,
  SHARPNESS = 50,
  GAUSSIAN_BLUR = 51,
  MOTION_BLUR = 52,
  CONVOLVE_FLOAT = 53,
  UNSHARP_MASK = 54,
  MEDIAN = 55,
  CLAHE = 56,
  ZOOM_BLUR = 57,
  ABERRATION = 58,
  SCATTER = 59,
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
  CONVOLVE_FIXED = 105,
  MIX = 106,
  MAP_GRID = 107,
};
}  // namespace Op

namespace Depth {
enum : int {
  UINT8 = 0,
  UINT16 = 1,
  FLOAT32 = 2,
};
}  // namespace Depth

namespace Kind {
enum : int {
  GEOMETRY = 0,
  RESAMPLE = 1,
  VALUE = 2,
  STATISTIC = 3,
  NEIGHBORHOOD = 4,
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
  CONTAINING_PIXEL = 6,
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
  ROW_COPY = 1,
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

// Instructions that executors run, by kind, so that compilers warn about instructions missing in a switch.

enum class ValueOp : int {
  HUE = 22,
  PERMUTE = 29,
  LUT = 31,
  COLOR_MATRIX = 32,
  PIXEL_FUNCTION = 33,
  MIX = 106,
};

enum class StatisticOp : int {
  CONTRAST = 40,
  AUTOCONTRAST = 41,
  EQUALIZE = 42,
  PERCENTILE_STRETCH = 43,
};

enum class NeighborhoodOp : int {
  SHARPNESS = 50,
  MEDIAN = 55,
  CLAHE = 56,
  MORPHOLOGY = 37,
  ZOOM_BLUR = 57,
  ABERRATION = 58,
  SCATTER = 59,
  CONVOLVE_FIXED = 105,
};

enum class PositionOp : int {
  GAUSSIAN_NOISE = 60,
  SALT_AND_PEPPER = 61,
  SHOT_NOISE = 62,
  ERASE = 63,
  OVERLAY = 36,
};

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
  NUM_FILL = 14,
  BREAK = 15,
  BLOCKING_SLOT = 16,
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

constexpr i8 KIND_OF[] = {-1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, -1, -1, -1, -1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, -1, -1, 5, 4, -1, -1, 3, 3, 3, 3, -1, -1, -1, -1, -1, -1, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, -1, -1, -1, -1, -1, -1, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 4, 2, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

constexpr u8 IS_COLOR_ONLY[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

constexpr u8 IS_SUBPIXEL_MAP[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

constexpr u8 IS_WARP[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

constexpr u8 IS_BLUR[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

constexpr u8 NEEDS_LEVELS[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

// The argument with the slot of an instruction's random numbers; -1 if it draws none.

constexpr i8 NOISE_ARG[] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 2, 2, 1, 3, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

// Coordinates: see variegate/program/coords.py.

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

constexpr int VIEW_DOMAIN = 1447642455;

constexpr int SEGMENT_BITS = 7;

constexpr int SEGMENT_SHIFT = 16;

constexpr int FIRST_SEGMENT = 16256;

constexpr int LARGEST_NODE = 32767;

// Checks of images: see variegate/apps/check.

constexpr int FINGERPRINT_AREAS = 32;

constexpr int FINGERPRINT_FINENESS = 64;

constexpr i64 FINGERPRINT_LEAST = 34359738368;

constexpr int SIGNATURE_SIDE = 16;

constexpr int SIGNATURE_CHROMA_SIDE = 4;

constexpr f64 UNLIKE = 0x1.0000000000000p+1;

constexpr int NEAR_KINDS = 3;

constexpr int NEAR_KEPT = 6;

constexpr int HASH_GROUP = 8;

constexpr int SHARPNESS_BLOCK = 16;

// Of a single image's instruction, written as one record.

constexpr int INSTRUCTION_RECORD = 16;

// Geometry of targets: see variegate/program/stages.py.

namespace StageKind {
enum : int {
  MAP = 0,
  GRID = 1,
  REPEAT = 2,
  ERASE = 3,
  SCALE = 4,
};
}  // namespace StageKind

namespace StageNumber {
enum : int {
  FIRST = 0,
  LINES = 1,
  COLUMNS = 2,
  STEP_Y = 3,
  STEP_X = 4,
  UNIT = 5,
  LEFT = 0,
  TOP = 1,
  MODE = 2,
  COUNT = 1,
};
}  // namespace StageNumber

namespace PointState {
enum : int {
  LEFT_IMAGE = 0,
  ERASED = 1,
  SEEN = 2,
};
}  // namespace PointState

constexpr u8 IS_FOLLOWED[] = {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

constexpr i64 ENDLESS = 4503599627370496;

// The packed program of a GPU: see variegate/executors/cuda/layout.py.

namespace Section {
enum : int {
  HEADERS = 0,
  CODE = 1,
  ARGS = 2,
  CONSTANTS = 3,
  LISTS = 4,
  LUTS = 5,
  MATRICES = 6,
  KERNELS = 7,
  RECTANGLES = 8,
  GRIDS = 9,
  INDICES = 10,
  MAPS = 11,
  BLEND_HEADERS = 12,
  BEGINS = 13,
  STARTS = 14,
  LAST_CANVASES = 15,
  BLEND_WEIGHTS = 16,
  BOXES = 17,
  ALPHA_AT = 18,
  ALPHA = 19,
  STATISTICS = 20,
  RESIZE_WEIGHTS = 21,
  CANVASES = 22,
};
}  // namespace Section

constexpr int NUM_SECTIONS = 23;

namespace HeaderField {
enum : int {
  IMAGE = 20,
  STRIDE_Y = 21,
  STRIDE_X = 22,
  STRIDE_C = 23,
  CHANNELS = 24,
  IN_HEIGHT = 25,
  IN_WIDTH = 26,
  TARGET = 27,
  IS_FINAL = 28,
  ID_LOW = 29,
  ID_HIGH = 30,
  TAPS_X = 31,
  TAPS_Y = 32,
  WEIGHTS = 33,
  ERASES = 34,
  KEY = 35,
  REGION_X = 36,
  REGION_Y = 37,
  WHOLE_WIDTH = 38,
  WHOLE_HEIGHT = 39,
};
}  // namespace HeaderField

constexpr int HEADER_FIELDS = 40;

namespace CodeField {
enum : int {
  OP = 0,
  CLASS = 1,
  FLAG = 2,
  ARG = 3,
  COUNT = 4,
  WINDOW = 5,
  FILL = 9,
  PARAMS = 10,
};
}  // namespace CodeField

constexpr int CODE_FIELDS = 16;

namespace CodeClass {
enum : int {
  SKIP = 0,
  LOOKUP = 1,
  VALUE = 2,
  POSITION = 3,
  POSITION_NORMALIZED = 4,
  MAP = 5,
};
}  // namespace CodeClass

namespace LaunchField {
enum : int {
  NUM_ROWS = 0,
  NUM_TILES = 1,
  FEATURES = 2,
  PERCENTILES_BEGIN = 3,
};
}  // namespace LaunchField

constexpr int LAUNCH_FIELDS = 4;

namespace KernelFeature {
enum : int {
  HAS_SUBPIXEL = 1,
  HAS_FILTER = 2,
  HAS_RESAMPLE = 4,
  HAS_HUE = 8,
  HAS_NOISE = 16,
  MEASURES = 32,
  HAS_GRID = 64,
  HAS_CLAHE = 128,
  HAS_FOLD = 256,
  HAS_OVERLAY = 512,
  HAS_WARP = 1024,
  IS_REGION = 2048,
};
}  // namespace KernelFeature

constexpr int TABLE_SIZE = 768;

constexpr int WEIGHTS_BLOCK = 128;

constexpr int SCALES_AND_BIASES = 12;

// Draws: see variegate/program/draws.

namespace DrawOp {
enum : int {
  HEIGHT = 1,
  WIDTH = 2,
  CHANNELS = 3,
  COLUMN = 4,
  BASE = 5,
  CHAIN = 6,
  SLOT = 7,
  WORDS = 8,
  UNIT = 9,
  ADD = 10,
  SUBTRACT = 11,
  MULTIPLY = 12,
  DIVIDE = 13,
  FLOOR_DIVIDE = 14,
  MODULO = 15,
  POWER = 16,
  MINIMUM = 17,
  MAXIMUM = 18,
  LESS = 19,
  LESS_EQUAL = 20,
  EQUAL = 21,
  NOT_EQUAL = 22,
  AND = 23,
  OR = 24,
  NOT = 25,
  NEGATE = 26,
  ABSOLUTE = 27,
  RINT = 28,
  FLOOR = 29,
  CEIL = 30,
  TRUNC = 31,
  SQRT = 32,
  FLOAT32 = 33,
  EXP = 34,
  LOG = 35,
  SIN = 36,
  COS = 37,
  TAN = 38,
  SELECT = 39,
  ASSIGN = 40,
  LOOKUP = 41,
  SEARCH = 42,
  SORT = 43,
  RECTANGLE = 44,
  BLEND = 45,
  EMIT = 46,
  CHECK = 47,
  SKIP = 48,
};
}  // namespace DrawOp

namespace DrawFailure {
enum : int {
  CHECK_FAILED = 16,
  TOO_LARGE = 17,
  NO_SLOT = 18,
};
}  // namespace DrawFailure

constexpr int DRAW_LANES = 32;

// An instruction of the machine.
struct DrawInstruction {
  i32 op;
  i32 to;
  i32 a;
  i32 b;
  i32 c;
  f64 k;
};

// An instruction of a program, a rectangle, or the numbers of a message: registers, -1 for none.
struct DrawEmission {
  i32 opcode;
  i32 flags;
  i32 where;
  i32 height;
  i32 width;
  i32 count;
  i32 label;
  i32 args[8];
  i32 fill[3];
};

// One call of vg_draw: instructions begin..end of a record, see variegate/program/draws.
struct DrawCall {
  const DrawInstruction * code;
  const f64 * constants;
  i64 num_constants;
  const f64 * arrays;
  const DrawEmission * emissions;
  i64 begin;
  i64 end;
  f64 * registers;
  i64 register_stride;
  i64 rows;
  const i64 * row_index;
  i64 first_slot;
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
  i32 * size;
  const f64 * columns;
  i64 column_rows;
  const f64 * bases;
  i64 first_label;
  i32 * rectangles;
  i64 * num_rectangles;
  i64 first_rectangle;
  i64 max_side;
  i64 chain_rows;
  f32 * weights;
  f64 * failure;
};

// Elementary functions of pixels: see variegate/program/elementary.py.

constexpr f32 EXP_TERMS[] = {0x1.0000000000000p+0f, 0x1.0000000000000p+0f, 0x1.0000000000000p-1f, 0x1.5555540000000p-3f, 0x1.5553820000000p-5f, 0x1.1112100000000p-7f, 0x1.6e879c0000000p-10f, 0x1.a0d2ce0000000p-13f};

constexpr f32 LOG2_E = 0x1.7154760000000p+0f;

constexpr f32 EXP_HIGH = 0x1.62e42e0000000p+6f;

constexpr f32 EXP_LOW = -0x1.5d589e0000000p+6f;

constexpr f32 SQRT_2 = 0x1.6a09e60000000p+0f;

constexpr f32 LOG_TERMS[] = {0x1.5555560000000p-1f, 0x1.99999a0000000p-2f, 0x1.24924a0000000p-2f, 0x1.c71c720000000p-3f};

constexpr f32 LN_2_PARTS[] = {0x1.6300000000000p-1f, -0x1.bd01060000000p-13f};

constexpr f32 SIN_TERMS[] = {-0x1.5555460000000p-3f, 0x1.11073c0000000p-7f, -0x1.9943f20000000p-13f};

constexpr f32 COS_TERMS[] = {0x1.0000000000000p+0f, -0x1.0000000000000p-1f, 0x1.55554a0000000p-5f, -0x1.6c0c340000000p-10f, 0x1.99eb9c0000000p-16f};

constexpr f32 TWO_OVER_PI = 0x1.45f3060000000p-1f;

constexpr f32 PI_HALVES_PARTS[] = {0x1.9200000000000p+0f, 0x1.fb40000000000p-12f, 0x1.4442d20000000p-24f};

constexpr f32 LARGEST_ANGLE = 0x1.0000000000000p+13f;

constexpr f32 ROUNDER = 0x1.8000000000000p+23f;

// Custom operations: see variegate/program/pixel_functions.py.

constexpr int PIXEL_FUNCTION_FLOATS = 4096;

constexpr int MAX_PIXEL_FUNCTION_NUMBERS = 512;

// A user's function of a pixel: compiled, or a record.
struct PixelFunction {
  void * compiled;
  const DrawInstruction * code;
  i64 length;
  i64 num_numeric;
  const f32 * constants;
  i64 num_constants;
  i64 num_numbers;
  i64 num_registers;
  i64 red;
  i64 green;
  i64 blue;
};

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
  const f64 * curves;
  const f32 * matrices;
  const i16 * kernels;
  const i32 * rectangles;
  const i16 * grids;
  i64 grid_values;
  const PixelFunction * pixel_functions;
  const f32 * segments;
  const u8 *const * sources;
  u8 *const * targets;
  const f32 * scale;
  const f32 * bias;
  i64 storage;
  i64 streams;
  i64 depth;
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
  const f64 * curves;
  u8 * luts;
  i64 room_for_luts;
  i64 lut_channels;
  const f32 * filters;
  i16 * kernels;
  i64 kernel_values;
  const f64 * neutral;
  const i8 * kinds;
  const i64 * records;
  i64 composed;
  i64 nearest;
  i64 measured_once;
  i64 is_deep;
  i64 longest;
  i64 num_luts;
  i64 num_kernel_values;
  i64 unknown;
};

// A batch that is drawn and lowered: see variegate/program/plan.py.
struct PlanCall {
  i64 images;
  const i32 * shapes;
  const u64 * ids;
  const u32 * keys;
  i64 key_step;
  const i32 * views;
  i64 num_views;
  i64 copies;
  const DrawCall * draws;
  i64 num_draws;
  Lowering * lowering;
  i64 failed;
  i64 height;
  i64 width;
  i64 channels;
};

// Steps of the geometry of R rows: see variegate/program/stages.py.
struct Stages {
  i64 rows;
  i64 * begin;
  i64 * kind;
  f64 * back;
  f64 * ahead;
  i64 * before;
  i64 * after;
  u8 * is_aligned;
  u8 * rounds;
  i64 * numbers;
  const i16 * grids;
  const i32 * rectangles;
  f64 * tables;
};

// Sampled programs whose geometry becomes Stages.
struct StagesCall {
  i64 rows;
  i64 slots;
  const i16 * opcode;
  const f64 * args;
  const i16 * flags;
  const i32 * out_size;
  const i32 * length;
  const i32 * in_shape;
};

// JPEG files: see native/jpeg.

namespace JpegRefusal {
enum : int {
  NONE = 0,
  NOT_BASELINE = 1,
  SEVERAL_SCANS = 2,
  RESTARTS = 3,
  NOT_EIGHT_BITS = 4,
  OTHER_COLORS = 5,
  NO_CODE = 6,
  DAMAGED = 7,
};
}  // namespace JpegRefusal

namespace JpegStatus {
enum : int {
  OK = 0,
  NOT_JPEG = 1,
  NO_SCAN = 2,
  CUT_FRAME = 3,
  NO_COMPONENTS = 4,
};
}  // namespace JpegStatus

// Header of a JPEG file.
struct JpegHead {
  i64 status;
  i64 height;
  i64 width;
  i64 components;
  i64 height_offset;
  i64 mcu_height;
  i64 is_sequential;
  i64 is_ordinary;
  i64 may_be_oriented;
  i64 is_complete;
};

// Layers that brushes draw: u8[count, planes, lines, columns].
struct Layers {
  i64 count;
  i64 planes;
  i64 lines;
  i64 columns;
  u8 * nodes;
};

// Noise between -1 and 1 at the nodes of grids, blurred, times gains.
struct FieldNoise {
  i64 rows;
  const u64 * ids;
  const u32 * keys;
  i64 slot;
  const f32 * taps_x;
  i64 num_taps_x;
  const f32 * taps_y;
  i64 num_taps_y;
  const f32 * gains;
  i64 lines;
  i64 columns;
  i64 num_fields;
  i16 * grids;
  i64 * farthest;
};

// A search for images of near hashes in one index of them.
struct HashSearch {
  const u64 * hashes;
  const u32 * rows;
  const i32 * starts;
  i64 values;
  const u64 * query_hashes;
  const u32 * query_rows;
  const u16 * masks;
  i64 num_masks;
  const u8 * flips;
  const u64 * inverted;
  i64 num_flips;
  i64 shift;
  i64 distance;
  i64 most_compared;
  const u8 * signatures;
  i64 signature_bytes;
  const u8 * splits;
  const i64 * labels;
  const u8 * kinds;
  i32 * failures;
  u32 * partners;
};

// One call of vg_run.
struct RunCall {
  const Batch * batch;
  void * scratch;
  i64 begin;
  i64 end;
};

// One call of vg_move.
struct MoveCall {
  const Batch * batch;
  void * scratch;
  i64 begin;
  i64 end;
  i64 bits;
  i64 fill;
};

namespace SingleStatus {
enum : int {
  OTHER_SIZE = 32,
  NO_ROOM_FOR_WEIGHTS = 33,
};
}  // namespace SingleStatus

// One call of vg_make_one.
struct SingleCall {
  const DrawCall * draw;
  const i64 * records;
  i64 is_lowered;
  i64 composed;
  i64 streams;
  const u8 * source;
  u8 * target;
  i64 height;
  i64 width;
  Lowering * lowering;
  Batch * batch;
  void * scratch;
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

// One call of vg_pick_planes: three channels of each of images begin..end, interleaved, back to back.
struct PickCall {
  const i64 * images;
  i64 begin;
  i64 end;
  i64 channels;
  i64 depth;
  u8 * target;
  i64 * sources;
};

// A fused program of R rows, K slots and P passes that is packed for a GPU: see native/cuda.
struct DeviceProgram {
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
  const i32 * source;
  const u8 * luts;
  i64 luts_size;
  const u8 * matrices;
  i64 matrices_size;
  const u8 * kernels;
  i64 kernels_size;
  const u8 * rectangles;
  i64 rectangles_size;
  const u8 * grids;
  i64 grids_size;
  const u8 * segments;
  i64 segments_size;
  const f32 * scale_and_bias;
  i64 lut_size;
  i64 canvas_pixel;
  i64 outputs;
  const i64 * begins;
  const i64 * entry_row;
  const f32 * weight;
  const i32 * box;
  const f32 * start;
  const i64 * alpha_at;
  const u8 * alpha;
  i64 alpha_size;
  i64 * at;
  i64 depth;
  i64 draws_noise;
  i64 list_length;
  i64 uploaded;
  i64 buffer_size;
  i64 canvas_size;
};

// One call of vg_pack.
struct PackCall {
  const DeviceProgram * program;
  u8 * memory;
  const i64 * addresses;
  const i64 * strides;
  i64 images;
  const i64 * targets;
  i64 canvases;
  i64 block_y;
  i64 block_x;
  i64 region_x;
  i64 region_y;
  i64 whole_height;
  i64 whole_width;
  i64 * launches;
};
