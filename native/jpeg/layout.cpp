#include "layout.h"

namespace vg::jpeg {
namespace {

// Assigns 16-bit codes from `free` on to categories that a table lacks. A code of all ones is not allowed.
void add_categories(u32 free, DcCodes *codes) {
  codes->added = 0;
  for (int category = 0; category < CATEGORIES; category++) {
    if (codes->length[category] || free >= 0xFFFF) continue;
    codes->code[category] = free++;
    codes->length[category] = LONGEST;
    codes->added++;
  }
}

bool is_symbol(bool is_ac, int symbol) { return is_ac ? (symbol & 15) <= 10 : symbol < CATEGORIES; }

// Derives the codes from the number of codes of each length (annex C of the standard). `codes`: output for a DC table,
// or null. False if there are more codes than the lengths allow, or symbols that are invalid in baseline images.
bool derive_codes(HuffmanTable *table, DcCodes *codes) {
  const bool is_ac = !codes;
  memset(table->look, 0, sizeof table->look);
  if (codes) *codes = {};
  i32 code = 0, position = 0;
  for (int length = 1; length <= LONGEST; length++, code <<= 1) {
    const i32 count = table->counts[length];
    if (code + count > 1 << length) return false;
    table->first[length] = position - code;
    for (i32 i = 0; i < count; i++, code++, position++) {
      const int symbol = table->symbols[position];
      if (!is_symbol(is_ac, symbol)) return false;
      if (length <= LOOK) {
        const u16 value = (u16)look_value(is_ac, symbol, length);
        u16 *look = table->look + (code << (LOOK - length));
        for (int j = 0; j < 1 << (LOOK - length); j++) look[j] = value;
      }
      if (codes) {
        codes->code[symbol] = (u32)code;
        codes->length[symbol] = length;
      }
    }
    table->largest[length] = count ? code - 1 : -1;
  }
  if (codes) add_categories((u32)code >> 1, codes);
  return true;
}

// Reads the tables of one DHT segment. False if they are damaged.
bool read_tables(const Segment &segment, HuffmanTables *tables) {
  i64 at = 0;
  while (at < segment.size) {
    const u8 *head = segment.body + at;
    const int number = head[0] & 15, kind = head[0] >> 4;
    if (segment.size - at < 17 || number > 3 || kind > 1) return false;
    HuffmanTable *table = kind ? &tables->ac[number] : &tables->dc[number];
    table->number = 0;
    for (int length = 1; length <= LONGEST; length++) table->number += table->counts[length] = head[length];
    at += 17;
    if (!table->number || table->number > 256 || table->number > segment.size - at) return false;
    memcpy(table->symbols, segment.body + at, (size_t)table->number);
    at += table->number;
    if (!derive_codes(table, kind ? nullptr : &tables->dc_codes[number])) return false;
  }
  return true;
}

int check_frame(const Frame &frame) {
  if (frame.precision != 8) return JpegRefusal::NOT_EIGHT_BITS;
  if (frame.components != 1 && frame.components != 3) return JpegRefusal::OTHER_COLORS;
  return frame.height && frame.width ? JpegRefusal::NONE : JpegRefusal::DAMAGED;
}

// Reads the header of the scan: the blocks of an MCU and their tables.
int read_scan(const Segment &scan, const HuffmanTables &tables, Layout *layout) {
  const Frame &frame = layout->frame;
  const i64 components = frame.components;
  if (!frame.at || scan.size < 4) return JpegRefusal::DAMAGED;
  if (scan.body[0] != components || scan.size != 4 + 2 * components) return JpegRefusal::SEVERAL_SCANS;
  const u8 *progress = scan.body + 1 + 2 * components;
  if (progress[0] != 0 || progress[1] != 63 || progress[2] != 0) return JpegRefusal::SEVERAL_SCANS;
  i64 most_across = 1, most_down = 1;
  for (int i = 0; i < components; i++) {
    // A single component is not interleaved, independent of its sampling factors.
    const i64 across = components > 1 ? frame.across(i) : 1, down = components > 1 ? frame.down(i) : 1;
    if (across < 1 || across > 4 || down < 1 || down > 4) return JpegRefusal::DAMAGED;
    if (layout->blocks + across * down > MAX_BLOCKS) return JpegRefusal::DAMAGED;
    const u8 *of_component = scan.body + 1 + 2 * i;
    if (of_component[0] != frame.id(i)) return JpegRefusal::SEVERAL_SCANS;  // in another order
    const int dc = of_component[1] >> 4, ac = of_component[1] & 15;
    if (dc > 3 || ac > 3 || !tables.dc[dc].number || !tables.ac[ac].number) return JpegRefusal::DAMAGED;
    for (i64 j = 0; j < across * down; j++) layout->block[layout->blocks++] = {i, dc, ac};
    most_across = max_of(most_across, across);
    most_down = max_of(most_down, down);
  }
  layout->scan = scan.at;
  layout->code = scan.end();
  layout->mcu_height = 8 * most_down;
  layout->mcu_width = 8 * most_across;
  layout->mcu_rows = ceil_div(frame.height, layout->mcu_height);
  layout->mcu_columns = ceil_div(frame.width, layout->mcu_width);
  return JpegRefusal::NONE;
}

// Reads a segment before the scan.
int read_header_segment(const Segment &segment, Layout *layout, HuffmanTables *tables) {
  const int marker = segment.marker;
  if (marker == DHT) return read_tables(segment, tables) ? JpegRefusal::NONE : JpegRefusal::DAMAGED;
  if (marker == DRI) {
    if (segment.size < 2) return JpegRefusal::DAMAGED;
    return read_u16(segment.body) ? JpegRefusal::RESTARTS : JpegRefusal::NONE;
  }
  if (marker <= SOF1) return read_frame(segment, &layout->frame) ? check_frame(layout->frame) : JpegRefusal::DAMAGED;
  return marker <= SOF15 ? JpegRefusal::NOT_BASELINE : JpegRefusal::NONE;
}

}  // namespace

int read_layout(Bytes file, Layout *layout, HuffmanTables *tables) {
  if (file.size < 4 || read_u16(file.at) != 0xFFD8) return JpegRefusal::NO_CODE;
  *layout = {};
  for (HuffmanTable &table : tables->dc) table.number = 0;
  for (HuffmanTable &table : tables->ac) table.number = 0;
  Segment segment;
  for (i64 at = 2; read_segment(file, at, &segment); at = segment.end()) {
    if (segment.marker == SOS) return read_scan(segment, *tables, layout);
    const int refusal = read_header_segment(segment, layout, tables);
    if (refusal) return refusal;
  }
  return JpegRefusal::DAMAGED;
}

}  // namespace vg::jpeg
