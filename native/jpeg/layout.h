// Layout and Huffman tables of a baseline JPEG, as needed to read its code from an entry point.
#pragma once
#include "../constants.h"
#include "segments.h"

namespace vg::jpeg {

// Number of bits for table lookup of codes; few codes are longer.
constexpr int LOOK = 10;
constexpr int LONGEST = 16;
// DC differences of 8-bit images have 0 to 11 bits.
constexpr int CATEGORIES = 12;
constexpr int END_OF_BLOCK = 128;
constexpr int MAX_BLOCKS = 10;

struct HuffmanTable {
  // Entries by the next LOOK bits. DC: length | category << 5. AC: bits of code and value | (zeros + 1) << 5, or
  // END_OF_BLOCK. 0 if the code is longer or invalid.
  u16 look[1 << LOOK];
  i32 largest[LONGEST + 1];  // largest code of each length; -1 without codes
  i32 first[LONGEST + 1];    // by length: added to a code, gives the position of its symbol
  u8 counts[LONGEST + 1];    // codes of each length
  i64 number = 0;            // number of codes; 0 if the file has no such table
  u8 symbols[256];
};

// DC codes by category. Codes that a table lacks are added after its longest codes; length 0 if there was no room.
struct DcCodes {
  u32 code[CATEGORIES];
  int length[CATEGORIES];
  int added;
};

struct HuffmanTables {
  HuffmanTable dc[4], ac[4];
  DcCodes dc_codes[4];
};

// One block of a minimum coded unit (MCU).
struct Block {
  int component;
  int dc, ac;  // tables
};

struct Layout {
  Frame frame;
  i64 scan;                   // offset of the scan's marker
  i64 code;                   // offset of the Huffman code
  i64 mcu_height, mcu_width;  // in pixels
  i64 mcu_rows, mcu_columns;
  int blocks;  // of an MCU
  Block block[MAX_BLOCKS];
};

// The entry of HuffmanTable::look for a symbol whose code has `length` bits.
VG_INLINE int look_value(bool is_ac, int symbol, int length) {
  if (!is_ac) return length | symbol << 5;
  return symbol ? (length + (symbol & 15)) | ((symbol >> 4) + 1) << 5 : length | END_OF_BLOCK << 5;
}

// Reads everything up to the first scan. Returns JpegRefusal::NONE, or the reason why the file has no entry points.
int read_layout(Bytes file, Layout *layout, HuffmanTables *tables);

}  // namespace vg::jpeg
