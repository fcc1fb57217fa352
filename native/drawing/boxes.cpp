// Random boxes: area uniform, aspect log-uniform, position uniform. See sample_boxes in variegate/ops/resize.py.
#include "../core.h"

namespace {

// To the nearest even integer, of numbers from 0 to 2**51.
VG_INLINE f64 rounded(f64 value) { return value + 0x1p52 - 0x1p52; }

}  // namespace

// `words`: u32[rows, tries, 4]; `sizes`: i64[rows, 2], height and width; then the least and greatest fraction of
// the area and logarithm of the aspect. Boxes [rows, 4] are top, left, height, width of the first try that fits.
VG_EXPORT void vg_draw_boxes(const u32 *words, i64 rows, i64 tries, const i64 *sizes, f64 low_scale, f64 high_scale,
                             f64 low_ratio, f64 high_ratio, i64 is_upright, i64 *boxes, u8 *found) {
  for (i64 n = 0; n < rows; n++) {
    const f64 height = (f64)sizes[2 * n], width = (f64)sizes[2 * n + 1];
    // Most boxes fit at the first try.
    for (i64 k = 0; k < tries; k++) {
      const u32 *word = words + 4 * (n * tries + k);
      const f64 fraction = low_scale + (high_scale - low_scale) * (word[0] * 0x1p-32);
      const f64 aspect = exp(low_ratio + (high_ratio - low_ratio) * (word[1] * 0x1p-32));
      const f64 area = height * width * fraction;
      const f64 along = rounded(sqrt(area * aspect)), across = rounded(sqrt(area / aspect));
      const f64 w = is_upright ? across : along, h = is_upright ? along : across;
      const bool fits = is_upright ? h < height && w < width : 0 < w && w <= width && 0 < h && h <= height;
      if (!fits) continue;
      boxes[4 * n] = (i64)(word[2] * 0x1p-32 * (height - h + 1));
      boxes[4 * n + 1] = (i64)(word[3] * 0x1p-32 * (width - w + 1));
      boxes[4 * n + 2] = (i64)h;
      boxes[4 * n + 3] = (i64)w;
      found[n] = 1;
      break;
    }
  }
}
