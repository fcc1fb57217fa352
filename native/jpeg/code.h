// Reading a JPEG's Huffman code block by block, to find positions and DC values; and writing code.
#pragma once
#include "layout.h"

namespace vg::jpeg {

constexpr i64 BROKEN = -1;
// Bytes allocated after buffers of code. Reading a damaged block can pass the end by at most 64 coefficients of 26 bits
// before it is detected.
constexpr i64 SLACK = 512;

// Sets the highest bit of bytes that are 0xFF; exact up to the first (lowest) such byte. Returns 0 without such a byte.
VG_INLINE u64 flag_ff(u64 word) { return (~word - 0x0101010101010101) & word & 0x8080808080808080; }

// 64 bits; the upper 57 are the bits from `bit` on.
VG_INLINE u64 bits_at(const u8 *buffer, i64 bit) {
  return __builtin_bswap64(load<u64>(buffer + (bit >> 3))) << (bit & 7);
}

// All 64 bits from `bit` on.
VG_INLINE u64 word_at(const u8 *buffer, i64 bit) {
  return bits_at(buffer, bit) | (u64)(buffer[(bit >> 3) + 8] >> (8 - (bit & 7)));
}

// Copies code up to `end` or a marker without the zeros after each 0xFF. Returns the end of the code that was read, and
// sets `length` to the number of bytes written. `target` has room for SLACK more bytes.
inline const u8 *unstuff(const u8 *at, const u8 *end, u8 *target, i64 *length) {
  u8 *to = target;
  while (at < end) {
    i64 plain = 0;
    if (end - at >= 8) {
      const u64 word = load<u64>(at), ff = flag_ff(word);
      store(to, word);
      plain = ff ? __builtin_ctzll(ff) >> 3 : 8;
    } else if (*at != 0xFF) {
      *to = *at;
      plain = 1;
    }
    at += plain;
    to += plain;
    if (at >= end || *at != 0xFF) continue;
    if (end - at < 2 || at[1] != 0) break;
    *to++ = 0xFF;
    at += 2;
  }
  *length = to - target;
  return at;
}

inline i64 count_ff(const u8 *at, const u8 *end) {
  i64 count = 0;
  while (at < end) {
    const i64 size = min_of<i64>(end - at, 255);
    u8 sum = 0;
    for (i64 i = 0; i < size; i++) sum += at[i] == 0xFF;
    count += sum;
    at += size;
  }
  return count;
}

// The entry of a code that is longer than LOOK bits; 0 if it is not a code.
VG_NOINLINE inline int find_long_code(u64 word, const HuffmanTable &table, bool is_ac) {
  for (int length = LOOK + 1; length <= LONGEST; length++) {
    const i32 code = (i32)(word >> (64 - length));
    if (code <= table.largest[length]) {
      return look_value(is_ac, table.symbols[(code + table.first[length]) & 255], length);
    }
  }
  return 0;
}

VG_INLINE int find_code(u64 word, const HuffmanTable &table, bool is_ac) {
  const int entry = table.look[word >> (64 - LOOK)];
  return entry ? entry : find_long_code(word, table, is_ac);
}

// Reads a DC difference. Returns the bit after it; BROKEN if it is not a code.
VG_INLINE i64 read_dc(const u8 *buffer, i64 bit, const HuffmanTable &table, i64 *difference) {
  const u64 word = bits_at(buffer, bit);
  const int entry = find_code(word, table, false);
  if (!entry) return BROKEN;
  const int length = entry & 31, category = entry >> 5;
  i64 value = (i64)(word << length >> 1 >> (63 - category));
  if (category && value < (i64)1 << (category - 1)) value -= ((i64)1 << category) - 1;
  *difference = value;
  return bit + length + category;
}

// Skips the 63 AC coefficients of a block. Returns the bit after them; BROKEN if they are not a valid block.
VG_INLINE i64 skip_ac(const u8 *buffer, i64 bit, const HuffmanTable &table) {
  int position = 1;
  while (position < 64) {
    u64 word = bits_at(buffer, bit);
    int used = 0;
    // Loops while the loaded bits contain a code of the maximal length, 16 bits.
    while (used <= 57 - LONGEST && position < 64) {
      const int entry = find_code(word, table, true);
      if (!entry) return BROKEN;
      word <<= entry & 31;
      used += entry & 31;
      position += entry >> 5;
    }
    bit += used;
  }
  return position == 64 || position >= END_OF_BLOCK ? bit : BROKEN;
}

// Reads MCUs from `bit` on, and adds their differences to the three DC values. Returns the bit after them; BROKEN if
// they are not code or end after bit `end`.
inline i64 skip_units(const u8 *buffer, i64 bit, i64 end, i64 units, const Layout &layout, const HuffmanTables &tables,
                      i64 *dc) {
  for (; units > 0; units--) {
    for (int b = 0; b < layout.blocks; b++) {
      const Block &block = layout.block[b];
      i64 difference;
      bit = read_dc(buffer, bit, tables.dc[block.dc], &difference);
      if (bit < 0) return BROKEN;
      dc[block.component] += difference;
      bit = skip_ac(buffer, bit, tables.ac[block.ac]);
      if (bit < 0 || bit > end) return BROKEN;
    }
  }
  return bit;
}

// Writes code with a zero after each 0xFF. The caller must provide room for one byte more than the code.
struct CodeWriter {
  u8 *to;
  u64 bits = 0;     // not written yet, the first of them the highest
  int pending = 0;  // number of these bits, less than 64

  void put_word(u64 word) {
    if (!flag_ff(word)) {
      store(to, __builtin_bswap64(word));
      to += 8;
      return;
    }
    for (int shift = 56; shift >= 0; shift -= 8) put_byte((u8)(word >> shift));
  }
  // Always writes the zero, and keeps it after 0xFF: without a branch, which would be mispredicted.
  void put_byte(u8 byte) {
    to[0] = byte;
    to[1] = 0;
    to += 1 + (byte == 0xFF);
  }
  // Writes the upper `number` bits of a word, at most 64; the other bits must be 0.
  void put(u64 word, int number) {
    bits |= word >> pending;
    if (pending + number < 64) {
      pending += number;
      return;
    }
    put_word(bits);
    bits = word << (63 - pending) << 1;
    pending += number - 64;
  }
  // Copies 1 to 64 bits from `bit` on.
  void copy_few(const u8 *buffer, i64 bit, int number) {
    const int unused = 64 - number;
    put(word_at(buffer, bit) >> unused << unused, number);
  }
  void copy(const u8 *buffer, i64 begin, i64 end) {
    const int missing = 64 - pending;
    if (end - begin >= missing) {
      copy_few(buffer, begin, missing);
      begin += missing;
      for (; end - begin >= 64; begin += 64) put_word(word_at(buffer, begin));
    }
    if (begin < end) copy_few(buffer, begin, (int)(end - begin));
  }
  // Fills the last byte with ones.
  void finish() {
    if (pending & 7) put((u64)0xFF << 56 << (pending & 7), 8 - (pending & 7));
    for (; pending > 0; pending -= 8, bits <<= 8) put_byte((u8)(bits >> 56));
  }
};

}  // namespace vg::jpeg
