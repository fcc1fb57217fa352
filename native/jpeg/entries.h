// Entry points of a JPEG's Huffman code: found in one pass, packed into a few bytes, and read again.
#pragma once
#include "layout.h"

namespace vg::jpeg {

struct Entry {
  i64 bit;    // in the file's code, zeros behind 0xFF counted
  i64 dc[3];  // of the blocks before
};

// At the beginning of each row of MCUs, and every `step` columns.
struct Entries {
  i64 step = 0;
  i64 in_row = 0;
  i64 number = 0;
  Buffer<Entry> at;

  // Decides where entries are, by the size of the file, and allocates memory for them. False: no memory.
  bool plan(const Layout &layout, i64 file_size);
  // Fills in entries that were planned. JpegRefusal::NONE, or why the file has none. `code`: room for the bytes of the
  // file, and SLACK.
  int find(Bytes file, const Layout &layout, const HuffmanTables &tables, u8 *code);

  i64 max_packed_size() const;
  // Returns how many bytes were written; 0: a value is beyond what the format holds. `key`: of the file.
  i64 pack(u64 key, u8 *out) const;
  // Reads what `pack` wrote for a file of this key and size. False for anything else, and without memory. Anybody can
  // compute the checksum: bits ascend within the file's all the same, and no sum overflows. `scratch`: for the bytes.
  bool unpack(Bytes packed, u64 key, i64 file_size, Buffer<u8> *scratch);

 private:
  i64 value_of(int field, i64 n) const;
  bool set_value(int field, i64 n, i64 value, i64 file_size);
};

}  // namespace vg::jpeg
