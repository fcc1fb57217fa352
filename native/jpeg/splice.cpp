#include "splice.h"

#include "code.h"

namespace vg::jpeg {
namespace {

// Converts a box from pixels to MCUs. False if `box` is not inside the picture.
//
// If chroma is subsampled, fancy upsampling of the outermost `divisor` pixels of an MCU reads the adjacent MCU. In that
// case the box includes it. Rows with fewer than three chroma pixels have no fancy upsampling.
bool round_out(const Layout &layout, i64 divisor, Rectangle *box) {
  const i64 height = layout.frame.height, width = layout.frame.width;
  const i64 tall = layout.mcu_height, wide = layout.mcu_width;
  if (box->top < 0 || box->top >= box->bottom || box->bottom > height) return false;
  if (box->left < 0 || box->left >= box->right || box->right > width) return false;
  const i64 outer_down = tall > 8 ? divisor : 0, outer_across = wide > 8 ? divisor : 0;
  box->top = max_of<i64>(0, box->top - outer_down) / tall;
  box->left = max_of<i64>(0, box->left - outer_across) / wide;
  box->bottom = min_of(layout.mcu_rows, ceil_div(box->bottom + outer_down, tall));
  box->right = min_of(layout.mcu_columns, ceil_div(box->right + outer_across, wide));
  if (min_of(box->right * wide, width) - box->left * wide <= 4 * outer_across) {
    box->left = max_of<i64>(0, box->left - 1);
    box->right = min_of(layout.mcu_columns, box->right + 1);
  }
  return true;
}

// Converts a box from MCUs to top, left, height and width in pixels.
Rectangle in_pixels(const Layout &layout, const Rectangle &box) {
  const i64 top = box.top * layout.mcu_height, left = box.left * layout.mcu_width;
  const i64 height = (box.bottom - box.top) * layout.mcu_height, width = (box.right - box.left) * layout.mcu_width;
  return {top, left, min_of(height, layout.frame.height - top), min_of(width, layout.frame.width - left)};
}

// True for segments that do not affect pixels: profiles, thumbnails, comments. JFIF's and Adobe's segments define the
// color space, so they are copied.
bool is_dropped(int marker) { return (marker >= APP1 && marker <= APP13) || marker == APP15 || marker == COM; }

void write_u16(u8 *at, i64 value) {
  at[0] = (u8)(value >> 8);
  at[1] = (u8)value;
}

// Writes a DC table with all categories, also if the file's table lacks some. Returns its end; null if it does
// not fit, or the table has too many codes of 16 bits.
u8 *write_dc_table(int number, const HuffmanTable &table, const DcCodes &codes, u8 *to, const u8 *end) {
  const i64 length = 19 + table.number + codes.added;
  if (end - to < length + 2 || table.counts[LONGEST] + codes.added > 255) return nullptr;
  write_u16(to, 0xFF00 | DHT);
  write_u16(to + 2, length);
  to[4] = (u8)number;
  memcpy(to + 5, table.counts + 1, LONGEST);
  to[4 + LONGEST] = (u8)(table.counts[LONGEST] + codes.added);
  to += 5 + LONGEST;
  memcpy(to, table.symbols, (size_t)table.number);
  to += table.number;
  // In the order of their codes.
  for (int category = 0; category < CATEGORIES; category++) {
    if (codes.length[category] && !memchr(table.symbols, category, (size_t)table.number)) *to++ = (u8)category;
  }
  return to;
}

// Writes everything before the code, with the size of the crop. Returns the end; null if it does not fit.
u8 *write_header(Bytes file, const Layout &layout, const HuffmanTables &tables, const Rectangle &crop, u8 *to,
                 const u8 *end) {
  if (end - to < 2) return nullptr;
  write_u16(to, 0xFFD8);
  to += 2;
  Segment segment;
  for (i64 at = 2; at < layout.code && read_segment(file, at, &segment); at = segment.end()) {
    for (int i = 0; segment.marker == SOS && i < 4; i++) {
      if (!tables.dc[i].number || !tables.dc_codes[i].added) continue;
      to = write_dc_table(i, tables.dc[i], tables.dc_codes[i], to, end);
      if (!to) return nullptr;
    }
    if (is_dropped(segment.marker)) continue;
    const i64 size = segment.end() - at;
    if (end - to < size) return nullptr;
    memcpy(to, file.at + at, (size_t)size);
    if (at == layout.frame.at) {
      write_u16(to + 5, crop.bottom);
      write_u16(to + 7, crop.right);
    }
    to += size;
  }
  return to;
}

// The file's code of a row of MCUs of the crop.
struct Row {
  i64 begin, end;  // bits
  i64 before[3];   // DC values of the file before the crop's first MCU
  i64 after[3];    // DC values after its last MCU
};

struct Splicer {
  Bytes file;
  const Layout &layout;
  const HuffmanTables &tables;
  const Entries &entries;
  Rectangle crop;  // in MCUs
  u8 *code;  // code of a row, without the zeros after 0xFF
  CodeWriter writer;
  const u8 *out_end;
  i64 written[3] = {};  // DC values of the last row that was written

  // Indices of the entries before the first and the last MCU of a row.
  i64 first(i64 row) const { return row * entries.in_row + crop.left / entries.step; }
  i64 last(i64 row) const { return row * entries.in_row + (crop.right - 1) / entries.step; }

  // Finds the bytes of a row, from its first entry to the entry after its last. False if they are not in the file.
  bool find_bytes(i64 row, Bytes *bytes) const {
    const i64 begin = layout.code + (entries.at[first(row)].bit >> 3), next = last(row) + 1;
    const i64 end =
        next == entries.number ? file.size : min_of(layout.code + (entries.at[next].bit >> 3) + 2, file.size);
    *bytes = {file.at + begin, end - begin};
    return begin < end;
  }

  // Reads a row. False if the entries or the code are damaged, or the row does not fit.
  bool read_row(i64 row, Row *found) {
    Bytes bytes;
    if (!find_bytes(row, &bytes)) return false;
    i64 length;
    unstuff(bytes.at, bytes.at + bytes.size, code, &length);
    if (out_end - writer.to < 2 * length + 128) return false;
    const Entry &entry = entries.at[first(row)], &last_entry = entries.at[last(row)];
    memcpy(found->before, entry.dc, sizeof entry.dc);
    found->begin = skip_units(code, entry.bit & 7, 8 * length, crop.left % entries.step, layout, tables, found->before);
    if (found->begin < 0) return false;
    i64 bit = found->begin, units = crop.right - crop.left;
    memcpy(found->after, found->before, sizeof found->before);
    if (&entry != &last_entry) {
      const i64 skipped = (last_entry.bit >> 3) - (entry.bit >> 3);
      if (skipped > bytes.size) return false;
      bit = 8 * (skipped - count_ff(bytes.at, bytes.at + skipped)) + (last_entry.bit & 7);
      units = crop.right - (crop.right - 1) / entries.step * entries.step;
      memcpy(found->after, last_entry.dc, sizeof last_entry.dc);
      if (bit < found->begin || bit > 8 * length) return false;
    }
    found->end = skip_units(code, bit, 8 * length, units, layout, tables, found->after);
    return found->end >= 0;
  }

  // Writes a DC difference. False if the table has no code for it.
  bool write_dc(int table, i64 difference) {
    const u64 size = (u64)(difference < 0 ? -difference : difference);
    const int category = size ? 64 - __builtin_clzll(size) : 0;
    if (category >= CATEGORIES || !tables.dc_codes[table].length[category]) return false;
    if (difference < 0) difference += ((i64)1 << category) - 1;
    const int used = tables.dc_codes[table].length[category] + category;
    const u64 word = (u64)tables.dc_codes[table].code[category] << category | (u64)difference;
    writer.put(word << (64 - used), used);
    return true;
  }

  // Copies a row's code, except the DC difference of each component's first block, which has another predecessor.
  bool write_row(const Row &row) {
    i64 bit = row.begin, copied = row.begin;
    int seen = 0;
    for (int b = 0; b < layout.blocks; b++) {
      const Block &block = layout.block[b];
      const i64 from = bit;
      i64 difference;
      bit = read_dc(code, bit, tables.dc[block.dc], &difference);
      if (bit < 0) return false;
      if (!(seen >> block.component & 1)) {
        seen |= 1 << block.component;
        writer.copy(code, copied, from);
        if (!write_dc(block.dc, difference + row.before[block.component] - written[block.component])) return false;
        copied = bit;
      }
      bit = skip_ac(code, bit, tables.ac[block.ac]);
      if (bit < 0 || bit > row.end) return false;
    }
    writer.copy(code, copied, row.end);
    memcpy(written, row.after, sizeof written);
    return true;
  }
};

}  // namespace

i64 splice(Bytes file, const Entries &entries, i64 divisor, Rectangle *box, Buffer<u8> *scratch, u8 *out,
           i64 capacity) {
  Layout layout;
  HuffmanTables tables;
  if (read_layout(file, &layout, &tables) != JpegRefusal::NONE || !round_out(layout, divisor, box)) return 0;
  if (entries.in_row != ceil_div(layout.mcu_columns, entries.step)) return 0;
  if (entries.number != layout.mcu_rows * entries.in_row) return 0;
  const Rectangle pixels = in_pixels(layout, *box);
  u8 *to = write_header(file, layout, tables, pixels, out, out + capacity);
  if (!to) return 0;
  Splicer splicer = {file, layout, tables, entries, *box, nullptr, {to}, out + capacity};
  Bytes bytes;
  i64 longest = 0;
  for (i64 row = box->top; row < box->bottom; row++) {
    if (!splicer.find_bytes(row, &bytes)) return 0;
    longest = max_of(longest, bytes.size);
  }
  if (!scratch->reserve(longest + SLACK)) return 0;
  splicer.code = scratch->at;
  Row found;
  for (i64 row = box->top; row < box->bottom; row++) {
    if (!splicer.read_row(row, &found) || !splicer.write_row(found)) return 0;
  }
  splicer.writer.finish();
  write_u16(splicer.writer.to, 0xFF00 | EOI);
  *box = pixels;
  return splicer.writer.to + 2 - out;
}

}  // namespace vg::jpeg
