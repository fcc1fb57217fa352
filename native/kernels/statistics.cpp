#include "scratch.h"
#include "values.h"
namespace vg { namespace VG_LEVEL {
bool build_tables(const Row &, const i32 *, const Image &, Scratch &) { return true; }
void color_after(const Row &row, i64 slot, i64 stop, i64 channels, Scratch &s, u8 *out) {
  Planes spare = s.row.spare_planes();
  for (i64 c = 0; c < 3; c++) spare[c][0] = row.fill[slot][c];
  for (i64 k = slot + 1; k < stop; k++) apply_value(row, k, channels, s.tables.luts.at, spare, {0, 1});
  for (i64 c = 0; c < 3; c++) out[c] = spare[c][0];
}
} }
