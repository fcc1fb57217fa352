// Entry points of files, and crops by them: see variegate/decode/entropy/cut.py.
#include "../xxh64.h"
#include "code.h"
#include "splice.h"

namespace vg::jpeg {

// The key that identifies a file.
VG_EXPORT u64 vg_hash_bytes(const u8 *data, i64 size) { return hash_bytes(data, size); }

// Packs the entries of a file into `out`. Returns the number of bytes; a negative JpegRefusal if the file has no
// entries; 0 if there is no memory or `capacity` is too small.
VG_EXPORT i64 vg_jpeg_pack_entries(const u8 *data, i64 size, u8 *out, i64 capacity) {
  const Bytes file = {data, size};
  Layout layout;
  HuffmanTables tables;
  if (int refusal = read_layout(file, &layout, &tables)) return -refusal;
  Buffer<u8> code;
  Entries entries;
  if (!code.reserve(size + SLACK) || !entries.plan(layout, size) || capacity < entries.max_packed_size()) return 0;
  if (int refusal = entries.find(file, layout, tables, code.at)) return -refusal;
  const i64 packed = entries.pack(hash_bytes(data, size), out);
  return packed ? packed : -JpegRefusal::DAMAGED;
}

// Cuts a JPEG out of a file of this key by its packed entries. `box`: see splice. Returns the size of the JPEG; 0 if it
// cannot be cut.
VG_EXPORT i64 vg_jpeg_cut(const u8 *data, i64 size, u64 key, const u8 *packed, i64 packed_size, i64 divisor,
                          Rectangle *box, u8 *out, i64 capacity) {
  Buffer<u8> scratch;
  Entries entries;
  if (!entries.unpack({packed, packed_size}, key, size, &scratch)) return 0;
  return splice({data, size}, entries, divisor, box, &scratch, out, capacity);
}

}  // namespace vg::jpeg
