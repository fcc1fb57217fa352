// Assigns instructions to fused passes. A pass reads an image once and writes an image once, so that fewer passes cause
// less memory traffic.
//
// A pass consists of at most one *source*, value operations and finally operations that depend on position. A source is
// a chain of maps, a resample, or a filter. Value operations may be before, between and after nearest maps. These start
// a new pass (see PassBreak):
//
// - a map after a resample, a filter, a table map or an operation that depends on position;
// - nearest and interpolating maps in one chain; unless maps are composed, any two interpolating maps;
// - a map with real coefficients or a filter after value operations that are not per-channel (per-channel LUTs are
//   applied to the taps);
// - statistics, or a filter, unless only LUTs and one integer map come before it in the pass: then the histogram is
//   measured in the source's window and remapped;
// - a resample that is not first;
// - a JPEG, which is applied to the image before the pass reads it;
// - with `measured_once`, as on a GPU: statistics of another image than earlier statistics of the pass, and a contrast
//   after other statistics. Deep images have no tables there: a map with real coefficients, a filter or a statistic
//   starts a new pass after any value operation or statistic.
#include "lowering.h"

namespace vg::VG_LEVEL {
namespace {

// Kinds of maps in the open pass.
enum class Maps {
  NONE,
  INTEGER,  // one integer map
  CHAIN,  // other nearest maps in fixed point
  INTERPOLATING,
  CLOSED,  // what no map can join
};

constexpr i64 NONE = -1;

// The pass to which instructions are being added. Slots are NONE without such an instruction.
struct OpenPass {
  Maps maps = Maps::NONE;
  int interpolation = 0;  // of its last map
  i64 begin = 0;
  i64 source = NONE;  // the last map, or the filter, or the resample
  i64 value = NONE;  // the last value operation that is not per-channel
  i64 position = NONE;  // the last operation that depends on position
  i64 statistic = NONE;  // the first statistic
};

struct Break {
  int reason;
  i64 slot;  // that an instruction could not join
};

// The reason why a map cannot join the maps of the pass; a PassBreak.
int map_break(int op, int interpolation, const OpenPass &open, bool is_composed) {
  if (open.maps == Maps::CLOSED) return PassBreak::MAP_AFTER_SOURCE;
  if (op == Op::MAP_FIXED) return open.maps == Maps::INTERPOLATING ? PassBreak::MAP_OF_ANOTHER_KIND : PassBreak::NONE;
  if (IS_SUBPIXEL_MAP[op]) {
    if (open.maps == Maps::NONE) return open.value == NONE ? PassBreak::NONE : PassBreak::MAP_AFTER_VALUES;
    if (open.maps == Maps::INTERPOLATING && interpolation == open.interpolation)
      return is_composed ? PassBreak::NONE : PassBreak::MAP_STAGE_BY_STAGE;
    return PassBreak::MAP_OF_ANOTHER_KIND;
  }
  return open.maps == Maps::NONE ? PassBreak::NONE : PassBreak::MAP_AFTER_SOURCE;
}

// True if the measurement for the first statistic of the pass is not valid for this statistic.
bool needs_pixels_again(int op, const OpenPass &open, bool is_measured_once) {
  return is_measured_once && open.statistic != NONE && (op == Op::CONTRAST || open.source > open.statistic);
}

// The reason why the instruction at slot k cannot join the open pass.
Break break_before(const Rewritten &program, i64 k, const OpenPass &open) {
  const int op = program.opcode(k), kind = KIND_OF[op];
  if (kind == Kind::GEOMETRY) {
    if (open.position != NONE) return {PassBreak::MAP_AFTER_POSITION, open.position};
    const int reason = map_break(op, program.interpolation(k), open, program.all->composed);
    return {reason, reason == PassBreak::MAP_AFTER_VALUES ? open.value : open.source};
  }
  if (kind == Kind::STATISTIC || kind == Kind::NEIGHBORHOOD) {
    const bool is_plain = open.maps == Maps::NONE || open.maps == Maps::INTEGER;
    if (open.position != NONE || open.value != NONE || !is_plain) {
      const bool is_filter = kind == Kind::NEIGHBORHOOD;
      const i64 slot = open.position != NONE ? open.position : open.value != NONE ? open.value : open.source;
      return {is_filter ? PassBreak::FILTER_OF_NEW_IMAGE : PassBreak::STATISTIC_OF_NEW_IMAGE, slot};
    }
    if (kind == Kind::STATISTIC && needs_pixels_again(op, open, program.all->measured_once))
      return {PassBreak::STATISTIC_MEASURED_BEFORE, open.statistic};
  }
  if (kind == Kind::RESAMPLE && k > open.begin) return {PassBreak::RESAMPLE_NOT_FIRST, k - 1};
  if (kind == Kind::CODEC && k > 0) return {PassBreak::CODEC, k - 1};
  return {PassBreak::NONE, NONE};
}

Maps maps_after(const Rewritten &program, i64 k, Maps before) {
  const int op = program.opcode(k);
  if (op == Op::MAP_FIXED) {
    const bool is_integer = before == Maps::NONE && moves_whole_pixels(program.args(k)) && !program.folds(k);
    return is_integer ? Maps::INTEGER : Maps::CHAIN;
  }
  const bool interpolates = IS_SUBPIXEL_MAP[op] && program.interpolation(k) != Interpolation::NEAREST;
  return interpolates ? Maps::INTERPOLATING : Maps::CLOSED;
}

void add(const Rewritten &program, i64 k, OpenPass &open) {
  const bool has_tables = !(program.all->is_deep && program.all->measured_once);
  switch (program.kind(k)) {
    case Kind::GEOMETRY:
      open.maps = maps_after(program, k, open.maps);
      open.interpolation = program.interpolation(k);
      open.source = k;
      break;
    case Kind::RESAMPLE:
    case Kind::NEIGHBORHOOD:
      open.maps = Maps::CLOSED;
      open.source = k;
      break;
    case Kind::CODEC: open.begin = k + 1; break;
    case Kind::POSITION: open.position = k; break;
    case Kind::STATISTIC:
      if (open.statistic == NONE) open.statistic = k;
      if (!has_tables) open.value = k;
      break;
    case Kind::VALUE:
      if (!has_tables || !IS_TABLE.at[program.opcode(k)]) open.value = k;
      break;
  }
}

}  // namespace

void assign_passes(const Rewritten &program) {
  OpenPass open;
  i16 number = 0;
  for (i64 k = 0; k < program.length(); k++) {
    const Break pass_break = break_before(program, k, open);
    if (pass_break.reason != PassBreak::NONE) {
      number++;
      open = OpenPass();
      open.begin = k;
      program.breaks(k)[0] = pass_break.reason;
      program.breaks(k)[1] = (i32)pass_break.slot;
    }
    program.pass_of(k) = number;
    add(program, k, open);
  }
  for (i64 k = program.length(); k < program.all->slots; k++) program.pass_of(k) = -1;
  program.num_passes() = number + 1;
}

namespace {

void describe_source(const Rewritten &program, i32 *pass) {
  const i32 begin = pass[PassField::BEGIN], end = pass[PassField::END];
  int source = PassSource::DIRECT;
  i32 first = begin, maps_end = begin, values = begin, position = end;
  for (i32 k = begin; k < end; k++) {
    const int kind = program.kind(k);
    if (kind == Kind::NEIGHBORHOOD) {
      source = PassSource::FILTER;
      first = maps_end = values = k;
    } else if (kind == Kind::RESAMPLE) {
      source = PassSource::RESAMPLE;
      first = maps_end = k;
    } else if (kind == Kind::GEOMETRY) {
      maps_end = k + 1;
      if (source == PassSource::DIRECT) {
        first = k;
        source = source_of_map(program.opcode(k), program.args(k));
        if (source == PassSource::INTERPOLATED) values = k;
      } else if (source == PassSource::ROW_COPY || source == PassSource::FIXED) {
        source = PassSource::CHAIN;
      }
      if (program.opcode(k) == Op::MAP_FIXED && program.folds(k)) source = PassSource::FOLDED;
    } else if (kind == Kind::POSITION && position == end) {
      position = k;
    }
  }
  pass[PassField::SOURCE] = source;
  pass[PassField::FIRST] = first;
  pass[PassField::MAPS_END] = maps_end;
  pass[PassField::VALUES] = values;
  pass[PassField::POSITION] = position;
}

// Describes the statistics of a pass. `height`, `width`: size of its source.
void describe_statistics(const Rewritten &program, i64 height, i64 width, i32 *pass) {
  const i32 begin = pass[PassField::BEGIN], end = pass[PassField::END];
  pass[PassField::STATISTICS] = pass[PassField::STATISTICS_END] = end;
  i64 map_slot = NONE;
  for (i32 k = begin; k < end; k++) {
    const int kind = program.kind(k);
    if (kind == Kind::GEOMETRY) map_slot = k;
    if (kind != Kind::STATISTIC) continue;
    if (pass[PassField::NEEDS] == 0) {
      const Seen seen = seen_by_statistics(program.map_slots(), map_slot, height, width);
      pass[PassField::STATISTICS] = k;
      pass[PassField::TOP] = (i32)seen.part.top;
      pass[PassField::LEFT] = (i32)seen.part.left;
      pass[PassField::BOTTOM] = (i32)seen.part.bottom;
      pass[PassField::RIGHT] = (i32)seen.part.right;
      pass[PassField::NUM_FILL] = (i32)seen.outside;
    }
    pass[PassField::NEEDS] |= program.opcode(k) == Op::CONTRAST ? NEEDS_LUMA : NEEDS_COUNTS;
    pass[PassField::STATISTICS_END] = k + 1;
  }
}

}  // namespace

void describe_passes(const Rewritten &program) {
  i32 height = program.in_shape()[0], width = program.in_shape()[1];
  i64 begin = 0;
  for (i64 p = 0; p < program.num_passes(); p++) {
    i64 end = begin;
    while (end < program.length() && program.pass_of(end) == p) end++;
    i32 *pass = program.pass(p);
    pass[PassField::BEGIN] = (i32)begin;
    pass[PassField::END] = (i32)end;
    pass[PassField::BLOCKING_SLOT] = -1;
    if (p > 0) {
      pass[PassField::BREAK] = program.breaks(begin)[0];
      pass[PassField::BLOCKING_SLOT] = program.breaks(begin)[1];
    }
    if (end > begin && program.kind(begin) == Kind::CODEC) {
      pass[PassField::QUALITY] = (i32)program.args(begin)[0];
      pass[PassField::BEGIN] = (i32)begin + 1;
    }
    describe_source(program, pass);
    describe_statistics(program, height, width, pass);
    if (end > begin) {
      height = program.out_size(end - 1)[0];
      width = program.out_size(end - 1)[1];
    }
    pass[PassField::HEIGHT] = height;
    pass[PassField::WIDTH] = width;
    begin = end;
  }
}

}  // namespace vg::VG_LEVEL
