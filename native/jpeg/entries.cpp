#include "entries.h"

#include "../xxh64.h"
#include "code.h"

namespace vg::jpeg {
namespace {

// Maximal size of the entries relative to the file's size, and the approximate bytes per entry.
constexpr f64 SHARE = 0.0185, ENTRY_BYTES = 4.0;

// Packed header: little-endian u16 step, entries per row, rows; then a parameter per field, and the checksum.
constexpr i64 HEAD = 14, PARAMETERS = 6, CHECKSUM = 10;
// Fields: bits since the entry before, and three DC values. Each value is a Golomb-Rice code with parameter k; ESCAPE
// one bits mean that the value follows in RAW bits.
constexpr int FIELDS = 4, ESCAPE = 20, RAW = 34, MAX_K = 24;
constexpr i64 MAX_DC = (i64)1 << RAW;
constexpr i64 MAX_ENTRY_BITS = FIELDS * (ESCAPE + RAW);
// Limits for `unpack`: `plan` makes at most one entry per MIN_BYTES bytes, and one per row, at most half of MAX_ROWS.
constexpr i64 MIN_BYTES = 64, MAX_ROWS = 1 << 14;

// Zigzag code: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
i64 fold(i64 value) { return (i64)((u64)value << 1 ^ (u64)(value >> 63)); }
i64 unfold(i64 value) { return value >> 1 ^ -(value & 1); }

// Checksum of the packed bytes without the checksum, and of the file's key, so that entries of another file are
// refused.
u32 checksum(const u8 *packed, i64 size, u64 key) {
  const u64 hash = key + hash_bytes(packed, CHECKSUM) + hash_bytes(packed + HEAD, size - HEAD);
  return (u32)(hash ^ hash >> 32);
}

// The Golomb-Rice parameter: approximately the logarithm of the mean.
int best_k(i64 total, i64 number) {
  int k = 0;
  while (number << (k + 1) <= total && k < MAX_K) k++;
  return k;
}

struct RiceWriter {
  u8 *to;
  u64 bits = 0;     // not written yet, the first of them the highest
  int pending = 0;  // number of these bits, less than 8 between calls

  void put(i64 value, int k) {
    const i64 ones = value >> k;
    u64 word;
    int width;
    if (ones < ESCAPE) {
      word = (((u64)1 << ones) - 1) << (k + 1) | ((u64)value & (((u64)1 << k) - 1));
      width = (int)ones + 1 + k;
    } else {
      word = (((u64)1 << ESCAPE) - 1) << RAW | (u64)value;
      width = ESCAPE + RAW;
    }
    bits |= word << (64 - width) >> pending;
    for (pending += width; pending >= 8; pending -= 8, bits <<= 8) *to++ = (u8)(bits >> 56);
  }
  void finish() {
    if (pending) *to++ = (u8)(bits >> 56);
  }
};

struct RiceReader {
  const u8 *buffer;  // with eight readable bytes after its end
  i64 bit = 0;

  i64 get(int k) {
    const u64 word = bits_at(buffer, bit);
    const int ones = min_of(__builtin_clzll(~word | 1), ESCAPE);
    if (ones == ESCAPE) {
      bit += ESCAPE + RAW;
      return (i64)(word << ESCAPE >> (64 - RAW));
    }
    bit += ones + 1 + k;
    return (i64)ones << k | (i64)(word << (ones + 1) >> 1 >> (63 - k));
  }
};

}  // namespace

bool Entries::plan(const Layout &layout, i64 file_size) {
  const f64 wanted = max_of(1.0, SHARE * (f64)file_size / ENTRY_BYTES);
  const i64 columns = layout.mcu_columns;
  step = min_of((i64)ceil((f64)(layout.mcu_rows * columns) / wanted), columns);
  in_row = ceil_div(columns, step);
  number = layout.mcu_rows * in_row;
  return at.reserve(number);
}

int Entries::find(Bytes file, const Layout &layout, const HuffmanTables &tables, u8 *code) {
  const u8 *const end = file.at + file.size;
  i64 length;
  const u8 *stop = unstuff(file.at + layout.code, end, code, &length);
  // The marker after the code must be the end of the file.
  if (end - stop < 2 || stop[0] != 0xFF || stop[1] != EOI) return JpegRefusal::DAMAGED;
  Entry entry = {};
  i64 bit = 0, counted = 0, stuffed = 0;
  for (i64 n = 0; n < number; n++) {
    stuffed += count_ff(code + counted, code + (bit >> 3));
    counted = bit >> 3;
    entry.bit = bit + 8 * stuffed;
    at[n] = entry;
    const i64 column = n % in_row * step;
    bit = skip_units(code, bit, 8 * length, min_of(step, layout.mcu_columns - column), layout, tables, entry.dc);
    if (bit < 0) return JpegRefusal::DAMAGED;
  }
  // Only padding of the last byte may follow.
  return 8 * length - bit < 8 ? JpegRefusal::NONE : JpegRefusal::DAMAGED;
}

// The written value of entry `n`: a difference from the row above, in the first row from the entry before.
i64 Entries::value_of(int field, i64 n) const {
  const i64 above = n >= in_row ? n - in_row : n - 1;
  if (field > 0) return fold(at[n].dc[field - 1] - (above >= 0 ? at[above].dc[field - 1] : 0));
  const i64 bits = n > 0 ? at[n].bit - at[n - 1].bit : at[0].bit;
  return fold(bits - (above > 0 ? at[above].bit - at[above - 1].bit : 0));
}

bool Entries::set_value(int field, i64 n, i64 value, i64 file_size) {
  const i64 above = n >= in_row ? n - in_row : n - 1;
  if (field > 0) {
    i64 &dc = at[n].dc[field - 1];
    dc = unfold(value) + (above >= 0 ? at[above].dc[field - 1] : 0);
    return dc >= -MAX_DC && dc <= MAX_DC;
  }
  const i64 before = n > 0 ? at[n - 1].bit : 0;
  at[n].bit = before + unfold(value) + (above > 0 ? at[above].bit - at[above - 1].bit : 0);
  return before <= at[n].bit && at[n].bit < 8 * file_size;
}

i64 Entries::max_packed_size() const { return HEAD + (number * MAX_ENTRY_BITS + 7) / 8; }

i64 Entries::pack(u64 key, u8 *out) const {
  // Fits into u16: sides are at most 65,535 pixels, and MCUs at least 8.
  store(out, (u16)step);
  store(out + 2, (u16)in_row);
  store(out + 4, (u16)(number / in_row));
  RiceWriter writer = {out + HEAD};
  for (int field = 0; field < FIELDS; field++) {
    i64 total = 0;
    for (i64 n = 0; n < number; n++) total += value_of(field, n);
    const int k = best_k(total, number);
    out[PARAMETERS + field] = (u8)k;
    for (i64 n = 0; n < number; n++) {
      const i64 value = value_of(field, n);
      if (value >> RAW) return 0;
      writer.put(value, k);
    }
  }
  writer.finish();
  const i64 size = writer.to - out;
  store(out + CHECKSUM, checksum(out, size, key));
  return size;
}

bool Entries::unpack(Bytes packed, u64 key, i64 file_size, Buffer<u8> *scratch) {
  const i64 size = packed.size - HEAD;
  if (size < 0 || checksum(packed.at, packed.size, key) != load<u32>(packed.at + CHECKSUM)) return false;
  step = load<u16>(packed.at);
  in_row = load<u16>(packed.at + 2);
  number = in_row * load<u16>(packed.at + 4);
  // An entry has at least one bit per field.
  if (!step || !number || number > min_of(file_size / MIN_BYTES + MAX_ROWS, 2 * size)) return false;
  if (!at.reserve(number) || !scratch->reserve(size)) return false;
  memcpy(scratch->at, packed.at + HEAD, (size_t)size);
  RiceReader reader = {scratch->at};
  for (int field = 0; field < FIELDS; field++) {
    const int k = packed.at[PARAMETERS + field];
    if (k > MAX_K) return false;
    for (i64 n = 0; n < number; n++) {
      const i64 value = reader.get(k);
      if (reader.bit > 8 * size || !set_value(field, n, value, file_size)) return false;
    }
  }
  return true;
}

}  // namespace vg::jpeg
