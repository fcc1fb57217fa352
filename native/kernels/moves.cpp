// Masks: images of one channel, of integers of any width. Nearest maps copy their pixels without arithmetic.
#include "../coords.h"
#include "reader.h"

namespace vg::VG_LEVEL {
namespace {

// Applies one pass to a mask.
template <class Element> struct Mover {
  const Row &row;
  ImageOf<Element> image;
  i64 width;
  Element fill;
  const Reader &reader;
  Scratch &s;

  void fill_beside(Range inside, Element *out) {
    set_values(out, fill, inside.first);
    set_values(out + inside.end, fill, width - inside.end);
  }

  void copy_line(i64 y, Element *out) {
    const RowCopy copy = row_copy(image.width, row.args[reader.slot], row.window[reader.slot], y, width);
    const Element *source = image.pixels + copy.first_pixel;
    const i64 count = copy.columns.size();
    Element *to = out + copy.columns.first;
    if (!copy.is_mirrored) copy_values(to, source, count);
    else
      for (i64 i = 0; i < count; i++) to[i] = source[count - 1 - i];
    fill_beside(copy.columns, out);
  }

  void look_up_line(i64 y, Element *out) {
    const i64 line = s.row.line[y];
    if (line < 0) return set_values(out, fill, width);
    if (y > 0 && line == s.row.line[y - 1]) return copy_values(out, out - width, width);
    const i32 *column = s.row.column.at;
    const Element *pixels = image.pixels + line * image.width;
    for (i64 x = 0; x < width; x++) out[x] = column[x] < 0 ? fill : pixels[column[x]];
  }

  // Copies the pixels at the positions of the row.
  void gather_line(Element *out) {
    const i32 *column = s.row.column.at, *line = s.row.line.at, *stage = s.row.stage.at;
    const i32 image_width = (i32)image.width;
    for (i64 x = 0; x < width; x++) {
      const Element pixel = image.pixels[line[x] * image_width + column[x]];
      out[x] = stage[x] < 0 ? pixel : fill;
    }
  }

  void move_line(i64 y, Element *out) {
    const i64 slot = reader.slot;
    switch (reader.source) {
      case PassSource::DIRECT: return copy_values(out, image.pixels + y * width, width);
      case PassSource::ROW_COPY: return copy_line(y, out);
      case PassSource::FIXED:
        return fill_beside(
            read_fixed_row(image, row.args[slot], row.window[slot], y, width, PlanesOf<Element>{out, 0}, s), out);
      case PassSource::TABLE: return look_up_line(y, out);
      case PassSource::CHAIN: find_chain_row(reader.num_maps, y, width, s); break;
      case PassSource::FOLDED: find_folded_row(reader.num_maps, y, width, s); break;
      default:
        if ((row.flags[slot] & INTERPOLATION_MASK) == Interpolation::NEAREST)
          find_real_nearest_row(row, slot, y, width, s);
        else find_composed_row(row, slot, reader.num_maps, y, width, s);
    }
    gather_line(out);
  }
};

// The longest side of a row's image and results.
i64 longest_side(const Row &row, const i32 *shape, i64 length) {
  i64 side = max_of(shape[0], shape[1]);
  for (i64 k = 0; k < length; k++) side = max_of<i64>(side, max_of(row.out_size[k][0], row.out_size[k][1]));
  return side;
}

template <class Element> Status move_row(const Batch *batch, i64 r, Element fill, Scratch &s) {
  const Row row = row_of(batch, r);
  const i32 *shape = batch->in_shape + 3 * r;
  const i64 side = longest_side(row, shape, batch->length[r]);
  if (!s.row.reserve(side, 1) || !s.tables.reserve(row.slots + 1, 1)) return OUT_OF_MEMORY;
  ImageOf<Element> image = {(const Element *)batch->sources[r], shape[0], shape[1], 1};
  for (i64 p = 0; p < batch->num_passes[r]; p++) {
    const i32 *pass = pass_of(batch, r, p);
    const i64 height = pass[PassField::HEIGHT], width = pass[PassField::WIDTH];
    auto *target = (Element *)batch->targets[r];
    if (p < batch->num_passes[r] - 1) {
      Buffer<u8> &canvas = s.canvas[p & 1];
      if (!canvas.reserve(height * width * (i64)sizeof(Element) + BLOCK)) return OUT_OF_MEMORY;
      target = (Element *)canvas.at;
    }
    Reader reader = reader_of(row, pass, s);
    if (!prepare_reader(row, pass, image, height, width, s, reader)) return OUT_OF_MEMORY;
    Mover<Element> mover = {row, image, width, fill, reader, s};
    for (i64 y = 0; y < height; y++) mover.move_line(y, target + y * width);
    image = {target, height, width, 1};
  }
  return OK;
}

template <class Element> Status move_rows(const MoveCall &call) {
  for (i64 r = call.begin; r < call.end; r++) {
    const Status status = move_row<Element>(call.batch, r, (Element)call.fill, *(Scratch *)call.scratch);
    if (status != OK) return status;
  }
  return OK;
}

}  // namespace

// Runs all passes of rows begin..end of a batch of nearest maps on masks.
VG_EXPORT i64 VG_ENTRY(vg_move)(const MoveCall *call) {
  switch (call->bits) {
    case 0: return move_rows<u8>(*call);
    case 1: return move_rows<u16>(*call);
    case 2: return move_rows<u32>(*call);
    default: return move_rows<u64>(*call);
  }
}

}  // namespace vg::VG_LEVEL
