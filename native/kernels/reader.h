// Reading the rows of a pass: preparation of its source (maps, filter or resample).
#pragma once
#include "scratch.h"

namespace vg::VG_LEVEL {

// The source of a pass, after preparation.
struct Reader {
  int source;
  i64 slot;  // slot of the first map, the filter or the resample
  i64 num_maps;
  bool is_range;  // the columns inside are one range in every row
};

// Finds the maps of a pass: `s.tables.map_slots`.
VG_INLINE Reader reader_of(const Row &row, const i32 *pass, Scratch &s) {
  Reader reader = {pass[PassField::SOURCE], pass[PassField::FIRST], 0, false};
  for (i64 k = reader.slot; k < pass[PassField::MAPS_END]; k++)
    if (row.kind(k) == Kind::GEOMETRY) s.tables.map_slots[reader.num_maps++] = (i32)k;
  return reader;
}

// Prepares the maps of a pass that writes `height` by `width` pixels. False if there is no memory.
template <class Element> bool prepare_reader(const Row &row, const i32 *pass, const ImageOf<Element> &image, i64 height,
                                             i64 width, Scratch &s, Reader &reader) {
  const i64 slot = reader.slot;
  const f64 *a = row.args[slot];
  switch (reader.source) {
    case PassSource::ROW_COPY: reader.is_range = true; return true;
    case PassSource::FIXED:
      reader.is_range = true;
      prefetch_slanted(image, a[3] / 65536.0, width);
      return prepare_turn<Element>(a, image.channels, s);
    case PassSource::CHAIN:
      prefetch_slanted(image, a[3] / 65536.0, width);
      return prepare_chain(row, reader.num_maps, s);
    case PassSource::TABLE: prepare_tables(row, slot, image.height, image.width, height, width, s); return true;
    case PassSource::INTERPOLATED:
    case PassSource::FOLDED:
      prefetch_slanted(image, reader.source == PassSource::FOLDED ? a[3] / 65536.0 : a[3], width);
      if (!s.interpolate.reserve(row.slots, s.row.stride)) return false;
      prepare_maps(row, slot, pass[PassField::MAPS_END], s);
      reader.is_range = reader.source == PassSource::INTERPOLATED && reader.num_maps == 1 &&
                        (row.flags[slot] & INTERPOLATION_MASK) != Interpolation::NEAREST &&
                        s.interpolate.record(0)[Record::BEHIND] == 0;
      return true;
    default: return true;
  }
}

}  // namespace vg::VG_LEVEL
