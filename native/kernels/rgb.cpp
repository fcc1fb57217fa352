// Converts pixels of Pillow's images from four bytes to three. See variegate/decode/memory.py.
#include "../simd.h"

namespace vg::VG_LEVEL {

// Arrow's C data interface (https://arrow.apache.org/docs/format/CDataInterface.html).
struct ArrowArray {
  i64 length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  ArrowArray **children;
  ArrowArray *dictionary;
  void (*release)(ArrowArray *);
  void *private_data;
};

namespace {

// The pixels, if they have four bytes each and are contiguous; null for other arrays.
const u8 *find_pixels(const ArrowArray *array, i64 pixels) {
  if (array->length != pixels || array->offset != 0 || array->n_children != 1) return nullptr;
  const ArrowArray *values = array->children[0];
  if (values->length != 4 * pixels || values->offset != 0 || values->n_buffers != 2) return nullptr;
  return (const u8 *)values->buffers[1];
}

void drop_fourth_bytes(const u8 *from, i64 pixels, u8 *to) {
  i64 i = 0;
#if VG_SSSE3
  // Each store writes four excess bytes, which the next store overwrites.
  const __m128i order = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  for (; i + 6 <= pixels; i += 4) {
    const __m128i four = _mm_loadu_si128((const __m128i *)(from + 4 * i));
    _mm_storeu_si128((__m128i *)(to + 3 * i), _mm_shuffle_epi8(four, order));
  }
#else
  for (; i + 4 <= pixels; i += 4) {
    u32 word[4];
    memcpy(word, from + 4 * i, sizeof word);
    store(to + 3 * i, (word[0] & 0xFFFFFF) | word[1] << 24);
    store(to + 3 * i + 4, (word[1] >> 8 & 0xFFFF) | word[2] << 16);
    store(to + 3 * i + 8, (word[2] >> 16 & 0xFF) | word[3] << 8);
  }
#endif
  for (; i < pixels; i++) memcpy(to + 3 * i, from + 4 * i, 3);
}

}  // namespace

// Writes u8[pixels, 3]. Returns 0 if the array does not have four contiguous bytes per pixel.
VG_EXPORT i64 VG_ENTRY(vg_unpack_rgb)(const ArrowArray *array, i64 pixels, u8 *out) {
  const u8 *from = find_pixels(array, pixels);
  if (!from) return 0;
  drop_fourth_bytes(from, pixels, out);
  return 1;
}

}  // namespace vg::VG_LEVEL
