// Interpreter of draws: runs the record of a transform's random draws (variegate/program/draws) for a batch or one
// image.
//
// A record is a list of instructions on registers, one number per image and register. Images are processed in blocks:
// an instruction is a loop over a block, and a block's registers stay in the first-level cache.
#include "arithmetic.h"
#include "philox_lanes.h"

namespace vg::VG_LEVEL {

VG_EXPORT i64 VG_ENTRY(vg_lower)(Lowering *all);

namespace {

static_assert(DRAW_LANES % (TOGETHER * WORDS) == 0);

// Random number streams of a block's images.
struct Streams {
  u64 id_low[DRAW_LANES], id_high[DRAW_LANES], key_low[DRAW_LANES], key_high[DRAW_LANES];
};

struct Block {
  const DrawCall &call;
  const Streams &streams;
  i64 first;  // position of the first row
  int count;
  f64 *registers;  // [num_registers, DRAW_LANES]

  f64 *at(i32 index) const { return registers + (i64)index * DRAW_LANES; }
  i64 row(int i) const { return call.row_index ? call.row_index[first + i] : first + i; }
  bool is_on(i32 where, int i) const { return where < 0 || at(where)[i] != 0; }
  bool is_on_anywhere(i32 where) const {
    for (int i = 0; i < count; i++) {
      if (at(where)[i] != 0) return true;
    }
    return false;
  }
};

void read_streams(const DrawCall &call, const Block &block, Streams &streams) {
  const int count = (int)round_up(block.count, TOGETHER * WORDS);
  for (int i = 0; i < count; i++) {
    const i64 row = block.row(min_of(i, block.count - 1));
    streams.id_low[i] = (u32)call.ids[row];
    streams.id_high[i] = call.ids[row] >> 32;
    streams.key_low[i] = call.key[2 * row];
    streams.key_high[i] = call.key[2 * row + 1];
  }
}

void draw_words(const Block &block, const DrawInstruction &in) {
  const Streams &streams = block.streams;
  const u64 slot = (u32)(block.call.first_slot + (i64)in.k);
  f64 *to = block.at(in.to);
  for (int first = 0; first < block.count; first += TOGETHER * WORDS) {
    Counter counters[TOGETHER];
    Words keys[TOGETHER][2];
    for (int i = 0; i < TOGETHER; i++) {
      const i64 lane = first + i * WORDS;
      Words slots = all_words(slot);
      for (int j = 0; j < WORDS && in.a >= 0; j++) slots[j] += (u32)block.at(in.a)[lane + j];
      counters[i] = {{Words{}, slots, load<Words>(streams.id_low + lane), load<Words>(streams.id_high + lane)}};
      keys[i][0] = load<Words>(streams.key_low + lane);
      keys[i][1] = load<Words>(streams.key_high + lane);
    }
#pragma GCC unroll 10
    for (int round = 0; round < PHILOX_ROUNDS; round++)
#pragma GCC unroll 4
      for (int i = 0; i < TOGETHER; i++) {
        philox_round(counters[i], keys[i][0], keys[i][1]);
        keys[i][0] += all_words(PHILOX_W0);
        keys[i][1] += all_words(PHILOX_W1);
      }
#pragma GCC unroll 4
    for (int i = 0; i < TOGETHER; i++)
#pragma GCC unroll 4
      for (int word = 0; word < 4; word++) {
        f64 *words = to + word * DRAW_LANES + first + i * WORDS;
        for (int j = 0; j < WORDS; j++) words[j] = (f64)(u32)counters[i].at[word][j];
      }
  }
}

// Writes the positions of `count` keys, in registers from `a` on, in ascending order of keys: a permutation of 0..count
// - 1.
void sort_keys(const Block &block, const DrawInstruction &in) {
  const f64 *keys = block.at(in.a);
  f64 *to = block.at(in.to);
  for (int i = 0; i < block.count; i++) {
    for (int j = 0; j < in.b; j++) {
      const f64 key = keys[j * DRAW_LANES + i];
      int place = j;
      for (; place > 0 && keys[(int)to[(place - 1) * DRAW_LANES + i] * DRAW_LANES + i] > key; place--) {
        to[place * DRAW_LANES + i] = to[(place - 1) * DRAW_LANES + i];
      }
      to[place * DRAW_LANES + i] = j;
    }
  }
}

void add_rectangles(const Block &block, const DrawInstruction &in) {
  const DrawCall &call = block.call;
  const DrawEmission &emission = call.emissions[(i64)in.k];
  for (int i = 0; i < block.count; i++) {
    if (!block.is_on(emission.where, i)) continue;
    i32 *rectangle = call.rectangles + 4 * call.num_rectangles[0];
    for (int j = 0; j < 4; j++) rectangle[j] = (i32)block.at(emission.args[j])[i];
    block.at(in.to)[i] = (f64)(call.first_rectangle + call.num_rectangles[0]++);
  }
}

// The numbers of a register; zeros for a negative index.
const f64 *values_of(const Block &block, i32 index) {
  static constexpr f64 ZEROS[DRAW_LANES] = {};
  return index < 0 ? ZEROS : block.at(index);
}

i64 emit(const Block &block, const DrawInstruction &in) {
  // Local copies, which the compiler need not reload after each stored byte.
  const DrawCall call = block.call;
  const DrawEmission &emission = call.emissions[(i64)in.k];
  const f64 *opcode = block.at(emission.opcode), *flags = block.at(emission.flags);
  const f64 *where = emission.where < 0 ? opcode : block.at(emission.where);
  const bool is_resized = emission.height >= 0;
  const f64 *height = values_of(block, emission.height), *width = values_of(block, emission.width);
  const f64 *args[NUM_ARGS], *fill[3];
  for (int j = 0; j < NUM_ARGS; j++) args[j] = values_of(block, j < emission.count ? emission.args[j] : -1);
  for (int j = 0; j < 3; j++) fill[j] = values_of(block, emission.fill[j]);
  const i16 label = (i16)(emission.label < 0 ? -1 : call.first_label + emission.label);
  static_assert(Op::NOP == 0);
  for (int i = 0; i < block.count; i++) {
    if (where[i] == 0 || opcode[i] == Op::NOP) continue;
    const i64 row = call.row_index ? call.row_index[block.first + i] : block.first + i;
    i32 *size = call.size + 2 * row;
    if (is_resized) {
      if (!(max_of(height[i], width[i]) <= (f64)call.max_side)) {
        call.failure[0] = in.k;
        call.failure[1] = (f64)row;
        call.failure[2] = height[i];
        call.failure[3] = width[i];
        return DrawFailure::TOO_LARGE;
      }
      size[0] = (i32)height[i];
      size[1] = (i32)width[i];
    }
    const i64 length = call.length[row];
    if (length >= call.slots) return DrawFailure::NO_SLOT;
    call.length[row] = (i32)length + 1;
    const i64 to = row * call.slots + length;
    call.opcode[to] = (i16)opcode[i];
    call.flags[to] = (i16)flags[i];
    call.label[to] = label;
    memcpy(call.out_size + 2 * to, size, 2 * sizeof(i32));
    for (int j = 0; j < NUM_ARGS; j++) call.args[NUM_ARGS * to + j] = args[j][i];
    for (int j = 0; j < 3; j++) call.fill[3 * to + j] = (u8)fill[j][i];
  }
  return OK;
}

i64 check(const Block &block, const DrawInstruction &in) {
  for (int i = 0; i < block.count; i++) {
    if (block.at(in.a)[i] != 0 || !block.is_on(in.b, i)) continue;
    const DrawEmission &values = block.call.emissions[(i64)in.k];
    block.call.failure[0] = in.k;
    block.call.failure[1] = (f64)block.row(i);
    for (int j = 0; j < values.count; j++) block.call.failure[2 + j] = block.at(values.args[j])[i];
    return DrawFailure::CHECK_FAILED;
  }
  return OK;
}

// The number of `edges`, in ascending order, that are at most x.
int count_edges(const f64 *edges, int count, f64 x) {
  int below = 0;
  while (below < count && edges[below] <= x) below++;
  return below;
}

#define VG_EACH(NAME, VALUE)                                    \
  case DrawOp::NAME:                                            \
    for (int i = 0; i < block.count; i++) to[i] = (f64)(VALUE); \
    break;

#define VG_COMPUTE_ONE(NAME, VALUE)         \
  case DrawOp::NAME:                        \
    for (int i = 0; i < block.count; i++) { \
      const f64 a = first[i];               \
      to[i] = (f64)(VALUE);                 \
    }                                       \
    break;
#define VG_COMPUTE_TWO(NAME, VALUE)          \
  case DrawOp::NAME:                         \
    for (int i = 0; i < block.count; i++) {  \
      const f64 a = first[i], b = second[i]; \
      to[i] = (f64)(VALUE);                  \
    }                                        \
    break;
#define VG_COMPUTE_THREE(NAME, VALUE)                      \
  case DrawOp::NAME:                                       \
    for (int i = 0; i < block.count; i++) {                \
      const f64 a = first[i], b = second[i], c = third[i]; \
      to[i] = (f64)(VALUE);                                \
    }                                                      \
    break;

i64 run_block(const Block &block) {
  const DrawCall &call = block.call;
  for (i64 pc = call.begin; pc < call.end; pc++) {
    const DrawInstruction &in = call.code[pc];
    f64 *to = block.at(max_of(in.to, 0));
    const f64 *first = block.at(max_of(in.a, 0)), *second = block.at(max_of(in.b, 0));
    const f64 *third = block.at(max_of(in.c, 0));
    i64 failure = OK;
    switch (in.op) {
      VG_EACH(HEIGHT, call.size[2 * block.row(i)])
      VG_EACH(WIDTH, call.size[2 * block.row(i) + 1])
      VG_EACH(CHANNELS, call.in_shape[3 * block.row(i) + 2])
      VG_EACH(COLUMN, call.columns[(i64)in.k * call.column_rows + block.row(i)])
      VG_EACH(BASE, call.bases[(i64)in.k])
      VG_EACH(CHAIN, block.row(i) / call.chain_rows)
      VG_EACH(SLOT, (f64)(call.first_slot + (i64)in.k) + (in.a < 0 ? 0.0 : first[i]))
      VG_EACH(UNIT, first[i] * 0x1p-32)
      VG_OF_ONE(VG_COMPUTE_ONE)
      VG_OF_TWO(VG_COMPUTE_TWO)
      VG_OF_THREE(VG_COMPUTE_THREE)
      VG_EACH(ASSIGN, first[i] != 0 ? second[i] : to[i])
      VG_EACH(LOOKUP, call.arrays[(i64)in.k + (i64)clamp(first[i], 0.0, (f64)(in.b - 1))])
      VG_EACH(SEARCH, count_edges(call.arrays + (i64)in.k, in.b, first[i]))
      case DrawOp::WORDS: draw_words(block, in); break;
      case DrawOp::SORT: sort_keys(block, in); break;
      case DrawOp::RECTANGLE: add_rectangles(block, in); break;
      case DrawOp::BLEND:
        for (int i = 0; i < block.count; i++) call.weights[block.row(i)] = (f32)first[i];
        break;
      case DrawOp::EMIT: failure = emit(block, in); break;
      case DrawOp::CHECK: failure = check(block, in); break;
      case DrawOp::SKIP:
        if (!block.is_on_anywhere(in.a)) pc = (i64)in.k - 1;
        break;
      default: return UNSUPPORTED;
    }
    if (failure) return failure;
  }
  return OK;
}
#undef VG_EACH
#undef VG_COMPUTE_ONE
#undef VG_COMPUTE_TWO
#undef VG_COMPUTE_THREE

i64 draw(const DrawCall &call) {
  for (i64 first = 0; first < call.rows; first += DRAW_LANES) {
    const int count = (int)min_of<i64>(DRAW_LANES, call.rows - first);
    Streams streams;
    const Block block = {call, streams, first, count, call.registers + first / DRAW_LANES * call.register_stride};
    read_streams(call, block, streams);
    if (first == 0 || call.register_stride) {
      for (i64 c = 0; c < call.num_constants; c++) {
        f64 *to = block.at((i32)c);
        for (int i = 0; i < count; i++) to[i] = call.constants[c];
      }
    }
    const i64 failure = run_block(block);
    if (failure) return failure;
  }
  return OK;
}

// Derives the key of a view, as `view_keys` in program/rng.py does.
void set_view_key(const u32 *key, const i32 *view, u32 *to) {
  memcpy(to, key, 2 * sizeof(u32));
  if (view[0] == 0 && view[1] == 0) return;
  const PhiloxWords words = philox4x32({{(u32)VIEW_DOMAIN, (u32)view[0], (u32)view[1], 0}}, key[0], key[1]);
  memcpy(to, words.at, 2 * sizeof(u32));
}

// Initializes rows before drawing: the views of an image are consecutive rows.
void start_rows(const PlanCall &plan) {
  const Lowering &rows = *plan.lowering;
  const i64 views = plan.num_views;
  i32 *size = plan.draws->size;
  for (i64 n = 0; n < plan.images; n++) {
    const i32 *shape = plan.shapes + 3 * n;
    const u32 *key = plan.keys + plan.key_step * n;
    const bool is_new_key = n == 0 || memcmp(key, key - plan.key_step, 2 * sizeof(u32)) != 0;
    for (i64 v = 0; v < views; v++) {
      const i64 row = n * views + v;
      memcpy(rows.in_shape + 3 * row, shape, 3 * sizeof(i32));
      memcpy(size + 2 * row, shape, 2 * sizeof(i32));
      rows.length[row] = 0;
      rows.ids[row] = plan.ids[n];
      if (is_new_key) set_view_key(key, plan.views + 2 * v, rows.key + 2 * row);
      else memcpy(rows.key + 2 * row, rows.key + 2 * (row - views), 2 * sizeof(u32));
    }
  }
  const size_t count = (size_t)(plan.images * views);
  for (i64 c = 1; c < plan.copies; c++) {
    memcpy(rows.in_shape + 3 * c * count, rows.in_shape, 3 * count * sizeof(i32));
    memcpy(size + 2 * c * count, size, 2 * count * sizeof(i32));
    memset(rows.length + c * count, 0, count * sizeof(i32));
    memcpy(rows.ids + c * count, rows.ids, count * sizeof(u64));
    memcpy(rows.key + 2 * c * count, rows.key, 2 * count * sizeof(u32));
  }
}

// Sets the shape of results.
void describe_results(PlanCall &plan) {
  const i32 *size = plan.draws->size, *shape = plan.lowering->in_shape;
  bool are_alike = true;
  for (i64 row = 1; row < plan.lowering->rows; row++)
    are_alike &= memcmp(size, size + 2 * row, 2 * sizeof(i32)) == 0 && shape[2] == shape[3 * row + 2];
  plan.height = are_alike ? size[0] : 0;
  plan.width = size[1];
  plan.channels = shape[2];
}

}  // namespace

// Runs instructions begin..end of a record. A block's registers begin `register_stride` after the block before; 0 if no
// later call needs them.
VG_EXPORT i64 VG_ENTRY(vg_draw)(const DrawCall *call) { return draw(*call); }

// Draws a batch, and lowers it in place. If lowering has not enough memory, the caller enlarges it and calls again.
VG_EXPORT i64 VG_ENTRY(vg_plan)(PlanCall *plan) {
  start_rows(*plan);
  plan->draws->num_rectangles[0] = 0;
  for (i64 i = 0; i < plan->num_draws; i++) {
    plan->failed = i;
    const i64 failure = draw(plan->draws[i]);
    if (failure) return failure;
  }
  describe_results(*plan);
  return VG_ENTRY(vg_lower)(plan->lowering);
}

// Elementary functions by their DrawOp, for draws outside of the interpreter.
VG_EXPORT f64 VG_ENTRY(vg_evaluate)(i64 op, f64 x) {
  switch (op) {
    case DrawOp::EXP: return exp_of(x);
    case DrawOp::LOG: return log_of(x);
    case DrawOp::SIN: return sin_of(x);
    case DrawOp::COS: return cos_of(x);
    case DrawOp::TAN: return sin_of(x) / cos_of(x);
    default: return NAN;
  }
}

}  // namespace vg::VG_LEVEL
