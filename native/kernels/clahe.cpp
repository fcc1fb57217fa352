#include "filter_rows.h"
namespace vg { namespace VG_LEVEL {
bool prepare_tiles(const FilterImage &, const f64 *, i32 *, i32 *, TileScratch &) { return true; }
void equalize_row(const FilterImage &, i64 , const f64 *, const i32 *, const i32 *, TileScratch &, Planes ) {}
} }
