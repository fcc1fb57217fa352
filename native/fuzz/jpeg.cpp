// Fuzzes headers, entry points and crops, with mutated JPEG files and mutated entries with a correct checksum.
#include "../jpeg/code.h"
#include "../xxh64.h"
#include "fuzz.h"

using fuzz::expect;
using fuzz::Input;
using fuzz::Random;

VG_EXPORT void vg_jpeg_heads(const u8 *const *, const i64 *, i64, JpegHead *);
VG_EXPORT i64 vg_jpeg_pack_entries(const u8 *, i64, u8 *, i64);
VG_EXPORT i64 vg_jpeg_cut(const u8 *, i64, u64, const u8 *, i64, i64, i64 *, u8 *, i64);

namespace {

constexpr i64 ROOM = 1 << 19, MAX_FILE = 1 << 15, MAX_PACKED = 1 << 15;
// Layout of packed entries: see native/jpeg/entries.cpp.
constexpr i64 PACKED_HEAD = 14, CHECKSUM = 10;

// A Huffman table with random code lengths, and its segment.
struct Table {
  int number = 0;
  u8 symbols[256];
  u8 counts[17] = {};
  u32 codes[256];
  int lengths[256];

  void add(u8 symbol) {
    if (!number || !memchr(symbols, symbol, (size_t)number)) symbols[number++] = symbol;
  }
  void draw_lengths(Random *random) {
    // Number of free 16-bit codes, except all ones.
    i64 free = 0xFFFF, code = 0;
    int length = 1;
    for (int i = 0; i < number; i++) {
      const i64 rest = number - i - 1;
      while ((i64)1 << (16 - length) > free - rest || (length < 16 && random->once_in(2))) {
        length++;
        code <<= 1;
      }
      free -= (i64)1 << (16 - length);
      codes[i] = (u32)code++;
      lengths[i] = length;
      counts[length]++;
    }
  }
  u8 *write(int which, u8 *to) const {
    const u8 head[] = {0xFF, vg::jpeg::DHT, 0, (u8)(19 + number), (u8)which};
    memcpy(to, head, sizeof head);
    to[2] = (u8)((19 + number) >> 8);
    memcpy(to + 5, counts + 1, 16);
    memcpy(to + 21, symbols, (size_t)number);
    return to + 21 + number;
  }
};

// A baseline JPEG with random tables and code; `code`: position of its code.
struct Seed {
  u8 bytes[MAX_FILE];
  i64 size = 0, code = 0, height = 0, width = 0;
  int components, factors[3];
  Table dc[2], ac[2];

  void draw(Random *random) {
    static const int FACTORS[] = {0x11, 0x21, 0x12, 0x22, 0x41};
    height = 1 + random->below(70);
    width = 1 + random->below(70);
    components = random->once_in(3) ? 1 : 3;
    factors[0] = FACTORS[random->below(5)];
    factors[1] = factors[2] = 0x11;
    for (int i = 0; i < 2; i++) {
      dc[i] = ac[i] = {};
      for (i64 j = 1 + random->below(9); j > 0; j--) dc[i].add((u8)random->below(12));
      dc[i].draw_lengths(random);
      // Most blocks end early.
      ac[i].add(0);
      for (i64 j = random->below(60); j > 0; j--) ac[i].add((u8)(random->below(16) << 4 | (1 + random->below(10))));
      ac[i].draw_lengths(random);
    }
    write(random);
  }

  void write(Random *random) {
    u8 *to = bytes;
    const u8 head[] = {0xFF, 0xD8, 0xFF, 0xE0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0};
    memcpy(to, head, sizeof head);
    to += sizeof head;
    if (random->once_in(3)) {
      const u8 note[] = {0xFF, 0xE1, 0, 12, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 1, 2, 0xFF, 0xFE, 0, 2};
      memcpy(to, note, sizeof note);
      to += sizeof note;
    }
    const u8 frame[] = {0xFF, 0xC0, 0, (u8)(8 + 3 * components), 8, 0, (u8)height, 0, (u8)width, (u8)components};
    memcpy(to, frame, sizeof frame);
    to += sizeof frame;
    for (int i = 0; i < components; i++, to += 3) {
      to[0] = (u8)(i + 1);
      to[1] = (u8)factors[i];
      to[2] = 0;
    }
    for (int i = 0; i < 2; i++) {
      to = dc[i].write(i, to);
      to = ac[i].write(16 + i, to);
    }
    const u8 scan[] = {0xFF, vg::jpeg::SOS, 0, (u8)(6 + 2 * components), (u8)components};
    memcpy(to, scan, sizeof scan);
    to += sizeof scan;
    for (int i = 0; i < components; i++, to += 2) {
      to[0] = (u8)(i + 1);
      to[1] = i ? 0x11 : 0;
    }
    const u8 progress[] = {0, 63, 0};
    memcpy(to, progress, sizeof progress);
    to += sizeof progress;
    code = to - bytes;
    to = write_code(random, to);
    to[0] = 0xFF;
    to[1] = vg::jpeg::EOI;
    size = to + 2 - bytes;
    expect(size <= MAX_FILE - 64, "room for the seed");
  }

  u8 *write_code(Random *random, u8 *to) {
    vg::jpeg::CodeWriter writer = {to};
    const i64 across = components > 1 ? factors[0] >> 4 : 1, down = components > 1 ? factors[0] & 15 : 1;
    const i64 columns = (width + 8 * across - 1) / (8 * across), rows = (height + 8 * down - 1) / (8 * down);
    for (i64 unit = rows * columns; unit > 0; unit--) {
      for (i64 block = across * down + components - 1; block > 0; block--) {
        const int table = block < components;
        put(random, &writer, dc[table], (int)random->below(dc[table].number), 15);
        write_ac(random, &writer, ac[table]);
      }
    }
    writer.finish();
    return writer.to;
  }
  void write_ac(Random *random, vg::jpeg::CodeWriter *writer, const Table &table) {
    int position = 1;
    while (position < 64) {
      int i = random->once_in(3) ? 0 : (int)random->below(table.number);
      if (position + (table.symbols[i] >> 4) + 1 > 64) i = 0;
      put(random, writer, table, i, 15);
      if (i == 0) return;
      position += (table.symbols[i] >> 4) + 1;
    }
  }
  // Writes the code of symbol `i`, and the bits of its value.
  void put(Random *random, vg::jpeg::CodeWriter *writer, const Table &table, int i, int mask) {
    const int size = table.symbols[i] & mask, number = table.lengths[i] + size;
    const u64 value = random->next() >> 1 >> (63 - size);
    writer->put(((u64)table.codes[i] << size | value) << (64 - number), number);
  }
};

struct Fuzzer {
  Seed seed;
  i64 left = 0;  // remaining inputs until the next seed
  i64 seeds = 0, cuts = 0, mutated_cuts = 0;
  u8 file[MAX_FILE], entries[MAX_PACKED], packed[ROOM], out[ROOM];
  i64 seed_entries = 0;

  static JpegHead head_of(const u8 *at, i64 size) {
    JpegHead head;
    vg_jpeg_heads(&at, &size, 1, &head);
    return head;
  }

  // Sets the checksum of entries for a file.
  static void sign(u8 *packed, i64 size, u64 key) {
    if (size < PACKED_HEAD) return;
    const u64 hash = key + vg::hash_bytes(packed, CHECKSUM) + vg::hash_bytes(packed + PACKED_HEAD, size - PACKED_HEAD);
    store(packed + CHECKSUM, (u32)(hash ^ hash >> 32));
  }

  i64 cut(const Input &file, const Input &packed, Random *random, i64 height, i64 width, i64 room, u8 *to, i64 *box) {
    const u64 key = vg::hash_bytes(file.at, file.size);
    box[0] = random->below(height);
    box[1] = random->below(width);
    box[2] = box[0] + 1 + random->below(height - box[0]);
    box[3] = box[1] + 1 + random->below(width - box[1]);
    const i64 divisor = (i64)1 << random->below(4);
    return vg_jpeg_cut(file.at, file.size, key, packed.at, packed.size, divisor, box, to, room);
  }

  // Draws a new valid seed: it has entries, and most crops can be cut.
  void draw_seed(Random *random) {
    seed.draw(random);
    seeds++;
    left = 200;
    const Input file_input(seed.bytes, seed.size);
    const JpegHead head = head_of(file_input.at, file_input.size);
    expect(head.height == seed.height && head.width == seed.width && head.is_complete, "the seed's header");
    seed_entries = vg_jpeg_pack_entries(file_input.at, file_input.size, packed, ROOM);
    expect(seed_entries > 0 && seed_entries <= MAX_PACKED - 64, "entries of the seed");
    memcpy(entries, packed, (size_t)seed_entries);
    i64 box[4];
    const i64 size = cut(file_input, Input(entries, seed_entries), random, seed.height, seed.width, ROOM, out, box);
    if (size <= 0) return;  // a DC difference of too many bits
    cuts++;
    const JpegHead of_cut = head_of(out, size);
    expect(of_cut.height == box[2] && of_cut.width == box[3], "the size of the crop");
    expect(vg_jpeg_pack_entries(out, size, packed, ROOM) > 0, "entries of the crop");
  }

  void run_one(Random *random) {
    if (left-- <= 0) draw_seed(random);
    i64 size = seed.size;
    memcpy(file, seed.bytes, (size_t)size);
    if (!random->once_in(4)) {
      for (i64 i = random->below(3); i >= 0 && size < MAX_FILE - 16; i--) {
        size = fuzz::mutate(random, file, size, random->once_in(3) ? size : seed.code);
      }
    }
    const Input mutated(file, size);
    head_of(mutated.at, mutated.size);
    i64 packed_size = vg_jpeg_pack_entries(mutated.at, mutated.size, packed, ROOM);
    if (packed_size <= 0 || packed_size > MAX_PACKED - 64) {
      packed_size = seed_entries;
      memcpy(packed, entries, (size_t)packed_size);
    }
    if (random->once_in(2)) {
      for (i64 i = random->below(3); i >= 0; i--) {
        packed_size = fuzz::mutate(random, packed, packed_size, random->once_in(2) ? packed_size : PACKED_HEAD);
      }
    }
    sign(packed, packed_size, vg::hash_bytes(mutated.at, mutated.size));
    // Usually more room than the result needs, sometimes too little.
    const Input room(random->once_in(8) ? random->below(seed.size) : 2 * size + 4096);
    i64 box[4];
    const i64 height = seed.height + (random->once_in(16) ? 20 : 0);
    const i64 found = cut(mutated, Input(packed, packed_size), random, height, seed.width, room.size, room.at, box);
    expect(found <= room.size, "a result within its room");
    if (found <= 0) return;
    mutated_cuts++;
    if (random->once_in(8)) vg_jpeg_pack_entries(room.at, found, packed, ROOM);
  }
};

}  // namespace

int main(int count, char **arguments) {
  Fuzzer *fuzzer = (Fuzzer *)calloc(1, sizeof(Fuzzer));
  const int status = fuzz::run(count, arguments, [&](Random *random) { fuzzer->run_one(random); });
  printf("%lld seeds, of %lld a crop was cut; %lld crops of mutated files\n", (long long)fuzzer->seeds,
         (long long)fuzzer->cuts, (long long)fuzzer->mutated_cuts);
  free(fuzzer);
  return status;
}
