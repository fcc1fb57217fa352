// Entry points of files, and crops by them: see variegate/decode/entropy/cut.py.
#include "../xxh64.h"
#include "code.h"
#include "splice.h"

namespace vg::jpeg {

// The key by which a file is known.
VG_EXPORT u64 vg_hash_bytes(const u8 *data, i64 size) { return hash_bytes(data, size); }

// Packs the entries of a file into `out`. Returns the number of bytes; minus a JpegRefusal if the file has no entries;
// 0: no memory, or `capacity` is too small.
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

// Cuts a JPEG out of a file whose key is among the ascending `keys`, u64[number]; its entries are between two of
// `offsets`, u64[number + 1], in `packed`. `box`: see splice. Returns the size of the JPEG; 0: none can be made; -1:
// unknown key.
VG_EXPORT i64 vg_jpeg_cut(const u8 *data, i64 size, const u64 *keys, const u64 *offsets, i64 number, const u8 *packed,
                          i64 packed_size, i64 divisor, Rectangle *box, u8 *out, i64 capacity) {
  const u64 key = hash_bytes(data, size);
  i64 low = 0, high = number;
  while (low < high) {
    const i64 middle = (low + high) / 2;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  if (low == number || keys[low] != key) return -1;
  const u64 begin = offsets[low], end = offsets[low + 1];
  if (begin > end || end > (u64)packed_size) return 0;
  Buffer<u8> scratch;
  Entries entries;
  if (!entries.unpack({packed + begin, (i64)(end - begin)}, key, size, &scratch)) return 0;
  return splice({data, size}, entries, divisor, box, &scratch, out, capacity);
}

}  // namespace vg::jpeg
