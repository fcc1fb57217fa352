#include "values.h"
#include "scratch.h"
namespace vg { namespace VG_LEVEL {
void look_up(u8 *plane, const u8 *table, Range columns) { for (i64 x = columns.first; x < columns.end; x++) plane[x] = table[plane[x]]; }
void apply_value(const Row &row, i64 slot, i64 channels, const u8 *luts, Planes planes, Range columns) {
  const i64 op = row.opcode[slot];
  if (row.kind(slot) == Kind::STATISTIC || op == Op::LUT) {
    const u8 *table = op == Op::LUT ? row.lut(slot) : luts + 768 * slot;
    for (i64 c = 0; c < channels; c++) look_up(planes[c], table + 256 * c, columns);
  }
}
void apply_position(const Row &, i64, i64, i64, i64, Scratch &) {}
void erase_normalized(const Row &, i64, i64, const Target &, Range) {}
} }
