// Layout of a baseline JPEG and its Huffman tables: what is needed to read its code from the middle.
#pragma once
#include "../constants.h"
#include "segments.h"

namespace vg::jpeg {

// Bits by which codes are looked up at once; longer codes are few.
constexpr int LOOK = 10;
constexpr int LONGEST = 16;
// Differences of DC coefficients of 8-bit pictures have 0 to 11 bits.
constexpr int CATEGORIES = 12;
constexpr int END_OF_BLOCK = 128;
constexpr int MAX_BLOCKS = 10;

struct HuffmanTable {
  // By the next bits of the code. DC: length | category << 5. AC: bits of code and value | (zeros + 1) << 5, where
  // END_OF_BLOCK ends a block. 0: the code is longer, or none.
  u16 look[1 << LOOK];
  i32 largest[LONGEST + 1];  // code of each length; -1: none
  i32 first[LONGEST + 1];    // added to a code of each length: its position among the symbols
  u8 counts[LONGEST + 1];    // codes of each length
  i64 number = 0;            // of codes; 0: the file has no such table
  u8 symbols[256];
};

// DC codes by category. Those that a table lacks are added behind its longest; length 0: it had no room for them.
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

// The value of HuffmanTable::look for a symbol whose code has `length` bits.
VG_INLINE int look_value(bool is_ac, int symbol, int length) {
  if (!is_ac) return length | symbol << 5;
  return symbol ? (length + (symbol & 15)) | ((symbol >> 4) + 1) << 5 : length | END_OF_BLOCK << 5;
}

// Reads all up to the first scan. JpegRefusal::NONE, or why the file has no entry points.
int read_layout(Bytes file, Layout *layout, HuffmanTables *tables);

}  // namespace vg::jpeg
