// Packs instructions for kernels, with tables and records of their maps.
#include "../levels.h"
#include "pack.h"

namespace vg {
namespace {

i32 to_int32(f64 value) { return (i32)to_i64(value); }

// Numbers of used tables: source columns and lines (`indices`), and tables of statistics.
struct Used {
  i64 indices = 0, statistics = 0;
};

// Writes the instructions of one row.
struct CodeWriter {
  const PackCall &call;
  DeviceRow row;
  Used &used;

  i64 at(int which) const { return call.program->at[which]; }
  void write(i64 k) const;

 private:
  void write_map(i64 k, i32 *code) const;
  void write_tables(i64 k, i32 *code) const;
  void write_value(i64 k, i32 *code) const;
  void write_position(i64 k, i32 *code) const;
  void write_convolution(i64 k, i32 *code) const;
  bool sees_source_plainly(i64 k) const;
};

void copy_window(const i32 *window, i32 *code) { memcpy(code + CodeField::WINDOW, window, 4 * sizeof(i32)); }

void CodeWriter::write(i64 k) const {
  const int op = row.opcode(k), kind = KIND_OF[op];
  const u8 *fill = row.fill(k);
  i32 *code = section<i32>(call, Section::CODE, row.at(k) * CODE_FIELDS);
  code[CodeField::OP] = op;
  code[CodeField::FLAG] = row.flags(k);
  code[CodeField::FILL] = fill[0] | fill[1] << 8 | fill[2] << 16;
  if (kind == Kind::GEOMETRY) {
    write_map(k, code);
  } else if (op == Op::CONVOLVE_FIXED) {
    write_convolution(k, code);
  } else if (op == Op::SHARPNESS) {
    code[CodeField::FLAG] = sees_source_plainly(k);
  } else if (kind == Kind::STATISTIC) {
    code[CodeField::CLASS] = CodeClass::LOOKUP;
    code[CodeField::ARG] = (i32)(at(Section::STATISTICS) + TABLE_SIZE * used.statistics++);
  } else if (kind == Kind::VALUE) {
    write_value(k, code);
  } else if (kind == Kind::POSITION) {
    write_position(k, code);
  }
}

void CodeWriter::write_map(i64 k, i32 *code) const {
  const int op = row.opcode(k), flags = row.flags(k);
  const f64 *a = row.args(k);
  const i32 *size = row.out_size(k);
  code[CodeField::CLASS] = CodeClass::MAP;
  code[CodeField::FLAG] = flags & INTERPOLATION_MASK;
  code[CodeField::COUNT] = flags >> INTERPOLATION_BITS;
  if (op == Op::MAP_SCALE || op == Op::MAP_PAD) {
    write_tables(k, code);
    return;
  }
  if (op == Op::MAP_FIXED) {
    // A map that reads no pixel inside is not written, because its coordinates may overflow 32 bits.
    if (!may_hit(a, row.window(k), size[0], size[1])) return;
    for (int i = 0; i < 6; i++) code[CodeField::PARAMS + i] = to_i32(a[i]);
  } else if (op == Op::MAP_GRID) {
    code[CodeField::PARAMS] = (i32)(at(Section::GRIDS) + 2 * to_i64(a[0]));
  }
  copy_window(row.window(k), code);
}

// Writes source columns, then source lines.
void CodeWriter::write_tables(i64 k, i32 *code) const {
  const f64 *a = row.args(k);
  const i32 *in = k > 0 ? row.out_size(k - 1) : row.in_shape();
  const i64 h = row.out_size(k)[0], w = row.out_size(k)[1];
  i32 *columns = section<i32>(call, Section::INDICES, used.indices), *lines = columns + w;
  if (row.opcode(k) == Op::MAP_SCALE) {
    const int mode = row.flags(k) >> INTERPOLATION_BITS;
    scale_table(a[1], a[0], in[1], columns, w, a[4] != 0, a[5] != 0, mode);
    scale_table(a[3], a[2], in[0], lines, h, false, a[5] != 0, mode);
  } else {
    pad_table(to_i64(a[0]), row.flags(k), in[1], columns, w);
    pad_table(to_i64(a[1]), row.flags(k), in[0], lines, h);
  }
  code[CodeField::ARG] = (i32)(at(Section::INDICES) + 4 * used.indices);
  code[CodeField::PARAMS] = (i32)(at(Section::INDICES) + 4 * (used.indices + w));
  used.indices += h + w;
}

void CodeWriter::write_convolution(i64 k, i32 *code) const {
  const f64 *a = row.args(k);
  code[CodeField::ARG] = (i32)(at(Section::KERNELS) + 2 * to_i64(a[0]));
  code[CodeField::FLAG] = to_int32(a[3]);
  constexpr int ARGS[6] = {1, 2, 4, 5, 6, 7};
  for (int i = 0; i < 6; i++) code[CodeField::PARAMS + i] = to_int32(a[ARGS[i]]);
}

void CodeWriter::write_value(i64 k, i32 *code) const {
  constexpr int MATRIX_SIZE = 48;
  const int op = row.opcode(k);
  const i64 number = to_i64(row.args(k)[0]);
  code[CodeField::CLASS] = IS_TABLE.at[op] ? CodeClass::LOOKUP : CodeClass::VALUE;
  if (op == Op::LUT) code[CodeField::ARG] = (i32)(at(Section::LUTS) + call.program->lut_size * number);
  else if (op == Op::COLOR_MATRIX) code[CodeField::ARG] = (i32)(at(Section::MATRICES) + MATRIX_SIZE * number);
  else code[CodeField::ARG] = (i32)number;
  // Of deep images, which have no tables.
  if (op != Op::LUT && IS_TABLE.at[op])
    for (int i = 0; i < 3; i++) {
      const f32 argument = (f32)row.args(k)[i];
      memcpy(code + CodeField::PARAMS + i, &argument, sizeof argument);
    }
}

void CodeWriter::write_position(i64 k, i32 *code) const {
  constexpr int RECTANGLE_SIZE = 16;
  const int op = row.opcode(k);
  const f64 *a = row.args(k);
  code[CodeField::CLASS] = CodeClass::POSITION;
  if (op == Op::ERASE) {
    if (a[7] != 0) code[CodeField::CLASS] = CodeClass::POSITION_NORMALIZED;
    code[CodeField::ARG] = (i32)(at(Section::RECTANGLES) + RECTANGLE_SIZE * to_i64(a[0]));
    code[CodeField::COUNT] = to_int32(a[1]);
  } else if (op == Op::OVERLAY) {
    code[CodeField::ARG] = (i32)(at(Section::GRIDS) + 2 * to_i64(a[0]));
    code[CodeField::COUNT] = to_int32(floor(a[7] * 32767 + 0.5));
    for (int i = 0; i < 6; i++) code[CodeField::PARAMS + i] = to_int32(a[1 + i]);
  }
}

// True if at most a flip comes before the filter in slot k within its pass: then adjacent pixels are adjacent in the
// source.
bool CodeWriter::sees_source_plainly(i64 k) const {
  i64 begin = 0;
  for (i64 p = 0; p < row.num_passes(); p++)
    if (row.pass(p)[PassField::BEGIN] <= k) begin = row.pass(p)[PassField::BEGIN];
  if (begin == k) return true;
  const f64 *a = row.args(begin);
  const i32 *window = row.window(begin), *size = row.out_size(begin);
  if (begin + 1 < k || row.opcode(begin) != Op::MAP_FIXED || a[1] != 0 || a[3] != 0) return false;
  const f64 u = a[2] / FIXED_ONE, v = a[5] / FIXED_ONE;
  const f64 far_u = u + a[0] / FIXED_ONE * (size[1] - 1), far_v = v + a[4] / FIXED_ONE * (size[0] - 1);
  const bool is_in_x = min_of(u, far_u) >= window[1] && max_of(u, far_u) < window[3];
  const bool is_in_y = min_of(v, far_v) >= window[0] && max_of(v, far_v) < window[2];
  return fabs(a[0]) == FIXED_ONE && fabs(a[4]) == FIXED_ONE && is_in_x && is_in_y;
}

}  // namespace

void write_code(const PackCall &call) {
  const DeviceProgram &program = *call.program;
  const size_t slots = (size_t)(program.rows * program.slots);
  memset(section<u8>(call, Section::CODE), 0, slots * CODE_FIELDS * sizeof(i32));
  Used used;
  for (i64 r = 0; r < program.rows; r++) {
    const CodeWriter writer = {call, {&program, r}, used};
    for (i64 k = 0; k < writer.row.length(); k++) writer.write(k);
  }
}

void write_maps(const PackCall &call) {
  const DeviceProgram &program = *call.program;
  i64 used = 0;
  for (i64 r = 0; r < program.rows; r++) {
    const DeviceRow row = {&program, r};
    for (i64 p = 0; p < row.num_passes(); p++) {
      const i32 *pass = row.pass(p);
      const int source = pass[PassField::SOURCE];
      if (source != PassSource::INTERPOLATED && source != PassSource::FOLDED) continue;
      const i64 first = pass[PassField::FIRST], end = pass[PassField::MAPS_END];
      write_records(row.map_slots(), first, end, section<i64>(call, Section::MAPS, used * RECORD_FIELDS));
      for (i64 k = first; k < end; k++) {
        if (KIND_OF[row.opcode(k)] != Kind::GEOMETRY) continue;
        const i64 at = program.at[Section::MAPS] + 8 * RECORD_FIELDS * used++;
        section<i32>(call, Section::CODE, row.at(k) * CODE_FIELDS)[CodeField::ARG] = (i32)at;
      }
    }
  }
}

}  // namespace vg
