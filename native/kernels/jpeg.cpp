// JPEG compression of an image's pixels without a file: entropy coding is lossless, so it is omitted.
//
// Bit for bit equal to a file written and read by libjpeg-turbo, and so by Pillow and torchvision: baseline, 4:2:0
// chroma, accurate integer DCT, fancy upsampling. Samples and coefficients have 16 bits, with one block per 16 bytes of
// a register; products are summed in 32 bits.
#include "interleave.h"
#include "registers.h"
#include "scratch.h"

namespace vg::VG_LEVEL {
namespace {

// Quantization steps of quality 50, for luma and for chroma (ITU-T T.81, annex K).
constexpr u8 STEPS[2][64] = {
    {16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
     69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
     81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
     99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99},
};

// Fraction bits of cosines, and of values between the two passes of a transform.
constexpr int BITS = 13, MORE = 2;
// Columns of samples per call.
constexpr i64 COLUMNS = REGISTER / 2;

// Coefficients are scaled by 8 relative to T.81 and below 2**13 in magnitude, so numerators are below 2**14. Therefore
// a reciprocal of 16 significant bits is exact.
void write_table(int quality, const u8 *base, QuantTable &table) {
  const i32 scale = quality < 50 ? 5000 / quality : 200 - 2 * quality;
  for (int i = 0; i < 64; i++) {
    const i32 step = clamp((base[i] * scale + 50) / 100, 1, 255), divisor = 8 * step;
    int shift = 31 - __builtin_clz((unsigned)divisor);
    if (divisor == 1 << shift) shift--;
    const i32 reciprocal = ((1 << (16 + shift)) + divisor - 1) / divisor;
    for (int block = 0; block < 32; block += 8) {
      const int line = i / 8, column = i % 8 + block;
      table.half[line][column] = (u16)(4 * step);
      table.reciprocal[line][column] = (u16)reciprocal;
      table.scale[line][column] = (u16)(1 << (16 - shift));
      table.step[line][column] = (u16)step;
    }
  }
}

// -- the transform ----------------------------------------------------------------------------------------------------

struct Block {
  Register row[8];
};

// Transposes each 8 x 8 block.
VG_INLINE void transpose(Block &b) {
  Register t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = low16(b.row[i], b.row[i + 1]);
    t[i + 1] = high16(b.row[i], b.row[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; k++) {
      u[i + 2 * k] = low32(t[i + k], t[i + 2 + k]);
      u[i + 2 * k + 1] = high32(t[i + k], t[i + 2 + k]);
    }
  for (int i = 0; i < 4; i++) {
    b.row[2 * i] = low64(u[i], u[4 + i]);
    b.row[2 * i + 1] = high64(u[i], u[4 + i]);
  }
}

// Two registers: pairs of 16-bit values, or 32-bit sums of their products.
struct Two {
  Register low, high;
};

VG_INLINE Two interleave_lanes(Register a, Register b) { return {low16(a, b), high16(a, b)}; }
VG_INLINE Two add(Two a, Two b) { return {add32(a.low, b.low), add32(a.high, b.high)}; }
VG_INLINE Two subtract(Two a, Two b) { return {sub32(a.low, b.low), sub32(a.high, b.high)}; }
VG_INLINE Two weigh(Two pair, i32 first, i32 second) {
  const Register weights = all_pairs(first, second);
  return {dot16(pair.low, weights), dot16(pair.high, weights)};
}
VG_INLINE Two add_weighed(Two sum, Two pair, i32 first, i32 second) {
  const Register weights = all_pairs(first, second);
  return {add_dot16(sum.low, pair.low, weights), add_dot16(sum.high, pair.high, weights)};
}
template <int bits> VG_INLINE Two half_of() { return {all32(1 << (bits - 1)), all32(1 << (bits - 1))}; }
template <int bits> VG_INLINE Register shifted(Two sum) {
  return pack32(right32<bits>(sum.low), right32<bits>(sum.high));
}

// The part that the transform and its inverse share: libjpeg's rotations of (a, b) and (c, d), multiplied out and added
// to `start`.
VG_INLINE void add_odd(Two ab, Two cd, Two start, Two *out) {
  out[0] = add_weighed(add_weighed(start, ab, -11363, 9633), cd, -6436, 2260);
  out[1] = add_weighed(add_weighed(start, ab, 9633, 2261), cd, -11362, 6437);
  out[2] = add_weighed(add_weighed(start, ab, -6436, -11362), cd, -2259, 9633);
  out[3] = add_weighed(add_weighed(start, ab, 2260, 6437), cd, 9633, 11363);
}

template <bool IS_FIRST> VG_INLINE void forward(Block &b) {
  constexpr int SHIFT = IS_FIRST ? BITS - MORE : BITS + MORE;
  Register *d = b.row;
  const Register sum0 = add16(d[0], d[7]), sum1 = add16(d[1], d[6]), sum2 = add16(d[2], d[5]), sum3 = add16(d[3], d[4]);
  const Two ab = interleave_lanes(sub16(d[3], d[4]), sub16(d[2], d[5]));
  const Two cd = interleave_lanes(sub16(d[1], d[6]), sub16(d[0], d[7]));
  const Register outer = add16(sum0, sum3), inner = add16(sum1, sum2);
  const Two rest = interleave_lanes(sub16(sum0, sum3), sub16(sum1, sum2));
  const Two half = half_of<SHIFT>();
  if (IS_FIRST) {
    d[0] = left16<MORE>(add16(outer, inner));
    d[4] = left16<MORE>(sub16(outer, inner));
  } else {
    const Register rounding = all16(1 << (MORE - 1));
    d[0] = right16<MORE>(add16(add16(outer, inner), rounding));
    d[4] = right16<MORE>(add16(sub16(outer, inner), rounding));
  }
  d[2] = shifted<SHIFT>(add_weighed(half, rest, 10703, 4433));
  d[6] = shifted<SHIFT>(add_weighed(half, rest, 4433, -10704));
  Two odd[4];
  add_odd(ab, cd, half, odd);
  for (int i = 0; i < 4; i++) d[7 - 2 * i] = shifted<SHIFT>(odd[i]);
}

// The inverse transform. `offset`: added to all results.
template <int SHIFT> VG_INLINE void inverse(Block &b, i32 offset) {
  Register *c = b.row;
  const Two outer = interleave_lanes(c[0], c[4]), inner = interleave_lanes(c[2], c[6]);
  Two odd[4];
  add_odd(interleave_lanes(c[7], c[5]), interleave_lanes(c[3], c[1]), {all32(0), all32(0)}, odd);
  const i32 start = (1 << (SHIFT - 1)) + offset * (1 << SHIFT);
  const Two rounding = {all32(start), all32(start)};
  const Two total = add_weighed(rounding, outer, 1 << BITS, 1 << BITS);
  const Two difference = add_weighed(rounding, outer, 1 << BITS, -(1 << BITS));
  const Two high = weigh(inner, 10703, 4433), low = weigh(inner, 4433, -10704);
  const Two even[4] = {add(total, high), add(difference, low), subtract(difference, low), subtract(total, high)};
  for (int i = 0; i < 4; i++) {
    c[i] = shifted<SHIFT>(add(even[i], odd[3 - i]));
    c[7 - i] = shifted<SHIFT>(subtract(even[i], odd[3 - i]));
  }
}

VG_INLINE void quantize(Block &b, const QuantTable &table) {
  for (int i = 0; i < 8; i++) {
    const Register sign = right16<15>(b.row[i]);
    const Register numerator = add16(sub16(b.row[i] ^ sign, sign), load_register(table.half[i]));
    const Register product = multiply_high_u16(numerator, load_register(table.reciprocal[i]));
    const Register level = multiply_high_u16(product, load_register(table.scale[i]));
    b.row[i] = sub16(multiply16(level, load_register(table.step[i])) ^ sign, sign);
  }
}

// Transforms, quantizes and inverts 8 lines of COLUMNS samples in place. Nothing overflows: even coefficients rounded
// up by half a step fit into 16 bits between the inverse passes.
void code_blocks(u8 *samples, i64 stride, const QuantTable &table) {
  Block b;
  for (int i = 0; i < 8; i++) b.row[i] = sub16(load_wide8(samples + i * stride), all16(128));
  transpose(b);
  forward<true>(b);
  transpose(b);
  forward<false>(b);
  quantize(b, table);
  inverse<BITS - MORE>(b, 0);
  transpose(b);
  inverse<BITS + MORE + 3>(b, 128);
  transpose(b);
  for (int i = 0; i < 8; i += 2)
    store_halves(samples + i * stride, samples + (i + 1) * stride, natural8(b.row[i], b.row[i + 1]));
}

// A plane of samples, padded to full blocks below and to full registers per line.
struct Plane {
  u8 *at;
  i64 stride, height, width;

  u8 *line(i64 y) const { return at + y * stride; }
};

void code_plane(const Plane &plane, const QuantTable &table) {
  const i64 lines = round_up(plane.height, 8);
  for (i64 y = plane.height; y < lines; y++) memcpy(plane.line(y), plane.line(plane.height - 1), (size_t)plane.stride);
  for (i64 y = 0; y < lines; y += 8)
    for (i64 x = 0; x < plane.width; x += COLUMNS) code_blocks(plane.line(y) + x, plane.stride, table);
}

// -- colors -----------------------------------------------------------------------------------------------------------

// Two registers of bytes as four registers of 16-bit pairs.
struct Pairs {
  Register at[4];

  Pairs(Register a, Register b) {
    const Register low = low8(a, b), high = high8(a, b), zero = all8(0);
    at[0] = low8(low, zero);
    at[1] = high8(low, zero);
    at[2] = low8(high, zero);
    at[3] = high8(high, zero);
  }
};

// Stores weighted sums of three channels; the upper halves of the sums are the values. A weight of 17 bits is split
// into two of 16.
template <class F> VG_INLINE void store_levels(u8 *at, F sum) {
  const Register first = pack32(right32<16>(sum(0)), right32<16>(sum(1)));
  store(at, pack16(first, pack32(right32<16>(sum(2)), right32<16>(sum(3)))));
}

// Converts a row of three planes to luma and both chromas.
void to_ycc(Planes rows, i64 width, u8 *luma, u8 *blue, u8 *red) {
  const Register half = all32(1 << 15), center = all32((128 << 16) + (1 << 15) - 1);
  for (i64 x = 0; x < width; x += REGISTER) {
    const Register r = load_register(rows[0] + x), g = load_register(rows[1] + x), b = load_register(rows[2] + x);
    const Pairs rg(r, g), bg(b, g);
    store_levels(luma + x, [&](int k) {
      return add_dot16(add_dot16(half, rg.at[k], all_pairs(19595, 19235)), bg.at[k], all_pairs(7471, 19235));
    });
    // -2**15 fits into 16 bits, and 2**15 does not.
    store_levels(blue + x, [&](int k) {
      const Register negative = dot16(rg.at[k], all_pairs(11059, 21709));
      return sub32(center, add_dot16(negative, bg.at[k], all_pairs(-32768, 0)));
    });
    store_levels(red + x, [&](int k) {
      const Register negative = dot16(rg.at[k], all_pairs(-32768, 27439));
      return sub32(center, add_dot16(negative, bg.at[k], all_pairs(5329, 0)));
    });
  }
}

// libjpeg's products with 1.402, -0.344, -0.714 and 1.772, rounded half up, in 16 bits: exact for all chroma values.
struct Color {
  Register red, green, blue;

  Color(Register y, Register cb, Register cr) {
    cb = sub16(cb, all16(128));
    cr = sub16(cr, all16(128));
    red = add16(add16(y, cr), multiply_rounded16(cr, all16(13172)));
    blue = add16(add16(y, add16(cb, cb)), multiply_rounded16(cb, all16(-7471)));
    const Register weights = all_pairs(-22554, 65536 - 46802), half = all32(1 << 15);
    const Register low = right32<16>(add_dot16(half, low16(cb, cr), weights));
    const Register high = right32<16>(add_dot16(half, high16(cb, cr), weights));
    green = add16(sub16(y, cr), pack32(low, high));
  }
};

void to_rgb(const u8 *luma, const u8 *blue, const u8 *red, i64 width, Planes rows) {
  const Register zero = all8(0);
  for (i64 x = 0; x < width; x += REGISTER) {
    const Register y = load_register(luma + x), cb = load_register(blue + x), cr = load_register(red + x);
    const Color low(low8(y, zero), low8(cb, zero), low8(cr, zero));
    const Color high(high8(y, zero), high8(cb, zero), high8(cr, zero));
    store(rows[0] + x, pack16(low.red, high.red));
    store(rows[1] + x, pack16(low.green, high.green));
    store(rows[2] + x, pack16(low.blue, high.blue));
  }
}

// Averages 2 x 2 samples of two lines; ties round alternately down and up, as in libjpeg.
void halve(const u8 *first, const u8 *second, i64 width, u8 *out) {
  const Register one = all8(1), rounding = all_pairs(1, 2);
  auto sum = [&](i64 x) {
    const Register total = add16(dot8(load_register(first + x), one), dot8(load_register(second + x), one));
    return right_u16<2>(add16(total, rounding));
  };
  for (i64 x = 0; x < width; x += REGISTER) store(out + x, natural8(sum(2 * x), sum(2 * x + REGISTER)));
}

// Upsamples line `y` of the image: weights of 3:1 for the line of chroma that contains it and the nearest other line,
// and again 3:1 along the line. `sums`: room for a line, and one more sample at both ends.
void upsample(const Plane &plane, i64 y, u16 *__restrict sums, u8 *__restrict out) {
  const i64 width = plane.width, near = y / 2;
  const u8 *__restrict a = plane.line(near);
  const u8 *__restrict b = plane.line(clamp<i64>(near + (y % 2 != 0 ? 1 : -1), 0, plane.height - 1));
  if (width <= 2) {  // libjpeg's rule
    for (i64 x = 0; x < 2 * width; x++) out[x] = a[x / 2];
    return;
  }
  for (i64 x = 0; x < width; x++) sums[x] = (u16)(3 * a[x] + b[x]);
  sums[-1] = sums[0];
  sums[width] = sums[width - 1];
  u16 *__restrict both = (u16 *)out;
  for (i64 x = 0; x < width; x++) {
    const u16 here = (u16)(3 * sums[x]);
    both[x] = (u16)((u16)(here + sums[x - 1] + 8) >> 4 | (u16)(here + sums[x + 1] + 7) >> 4 << 8);
  }
}

// Memory of one image: planes of samples, then rows of three planes and of chroma.
struct Layout {
  i64 stride, chroma_stride, lines, chroma_lines, row;

  explicit Layout(const Image &image) {
    stride = round_up(image.width, BLOCK);
    chroma_stride = round_up((image.width + 1) / 2, BLOCK);
    lines = round_up(image.height, 8);
    chroma_lines = round_up((image.height + 1) / 2, 8);
    row = 2 * chroma_stride + BLOCK;
  }
  i64 bytes() const { return lines * stride + 2 * chroma_lines * chroma_stride + 9 * row + BLOCK; }
};

void code_gray(const Image &image, const Layout &layout, const QuantTable &table, u8 *memory, u8 *coded) {
  const i64 width = image.width;
  const Plane plane = {memory, layout.stride, image.height, width};
  for (i64 y = 0; y < image.height; y++) {
    const u8 *from = image.pixels + y * width;
    memcpy(plane.line(y), from, (size_t)width);
    memset(plane.line(y) + width, from[width - 1], (size_t)(layout.stride - width));
  }
  code_plane(plane, table);
  for (i64 y = 0; y < image.height; y++) memcpy(coded + y * width, plane.line(y), (size_t)width);
}

void code_color(const Image &image, const Layout &layout, const QuantTable *tables, u8 *memory, u8 *coded) {
  const i64 width = image.width, height = image.height;
  const Plane luma = {memory, layout.stride, height, width};
  const i64 of_chroma = layout.chroma_lines * layout.chroma_stride;
  const Plane blue = {luma.line(layout.lines), layout.chroma_stride, (height + 1) / 2, (width + 1) / 2};
  const Plane red = {blue.at + of_chroma, layout.chroma_stride, blue.height, blue.width};
  u8 *rows = red.at + of_chroma;
  const Planes rgb = {rows, layout.row};
  u8 *blue_rows = rows + 3 * layout.row, *red_rows = blue_rows + 2 * layout.row;
  for (i64 y = 0; y < height; y++) {
    copy_pixels(image, y * width, width, false, rgb, 0);
    for (i64 c = 0; c < 3; c++) memset(rgb[c] + width, rgb[c][width - 1], (size_t)(layout.row - width));
    // With an odd number of lines, the last line is paired with itself.
    const i64 odd = y % 2, other = odd * layout.row;
    to_ycc(rgb, min_of(2 * round_up(blue.width, 8), layout.stride), luma.line(y), blue_rows + other, red_rows + other);
    if (odd != 0 || y == height - 1) {
      halve(blue_rows, blue_rows + other, round_up(blue.width, 8), blue.line(y / 2));
      halve(red_rows, red_rows + other, round_up(red.width, 8), red.line(y / 2));
    }
  }
  code_plane(luma, tables[0]);
  code_plane(blue, tables[1]);
  code_plane(red, tables[1]);
  u16 *sums = (u16 *)(rows + 7 * layout.row) + BLOCK / 2;
  for (i64 y = 0; y < height; y++) {
    upsample(blue, y, sums, blue_rows);
    upsample(red, y, sums, red_rows);
    to_rgb(luma.line(y), blue_rows, red_rows, width, rgb);
    interleave(rgb[0], rgb[1], rgb[2], width, coded + 3 * y * width);
  }
}

}  // namespace

bool code_jpeg(Image &image, int quality, Scratch &s) {
  JpegScratch &jpeg = s.jpeg;
  const Layout layout(image);
  if (!jpeg.coded.reserve(image.bytes()) || !jpeg.memory.reserve(layout.bytes())) return false;
  if (jpeg.quality != quality) {
    for (int i = 0; i < 2; i++) write_table(quality, STEPS[i], jpeg.tables[i]);
    jpeg.quality = quality;
  }
  if (image.channels == 1) code_gray(image, layout, jpeg.tables[0], jpeg.memory.at, jpeg.coded.at);
  else code_color(image, layout, jpeg.tables, jpeg.memory.at, jpeg.coded.at);
  image.pixels = jpeg.coded.at;
  return true;
}

}  // namespace vg::VG_LEVEL
