// Entry points of a JPEG's Huffman code: found in one pass, packed into a few bytes, and unpacked.
#pragma once
#include "layout.h"

namespace vg::jpeg {

struct Entry {
  i64 bit;    // position in the file's code, including zeros after 0xFF
  i64 dc[3];  // DC values of the blocks before
};

// Entry points at the beginning of each row of MCUs, and every `step` columns.
struct Entries {
  i64 step = 0;
  i64 in_row = 0;
  i64 number = 0;
  Buffer<Entry> at;

  // Chooses the positions of entries by the size of the file, and allocates memory. False if there is no memory.
  bool plan(const Layout &layout, i64 file_size);
  // Computes the planned entries. Returns JpegRefusal::NONE, or the reason why the file has none. `code`: room for the
  // file's bytes and SLACK.
  int find(Bytes file, const Layout &layout, const HuffmanTables &tables, u8 *code);

  i64 max_packed_size() const;
  // Returns the number of bytes written; 0 if a value is too large for the format. `key`: the file's key.
  i64 pack(u64 key, u8 *out) const;
  // Reads the output of `pack` for a file of this key and size. False for other input, or if there is no memory. The
  // checksum is not a protection against malicious input: positions are checked to ascend within the file, and no sum
  // overflows. `scratch`: buffer for the bytes.
  bool unpack(Bytes packed, u64 key, i64 file_size, Buffer<u8> *scratch);

 private:
  i64 value_of(int field, i64 n) const;
  bool set_value(int field, i64 n, i64 value, i64 file_size);
};

}  // namespace vg::jpeg
