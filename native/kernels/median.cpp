// MEDIAN and MORPHOLOGY by minimum and maximum of registers of values. GPU counterparts: `_median` and
// `_erode_or_dilate` in executors/cuda/kernels/neighborhood.py.
//
// A median first sorts the values of each column of the window; a sorted column is shared by all windows that contain
// it. Sorting the lines then keeps the columns sorted. After that, most values are known to be too low or too high. A
// network finds the median of the others. Narrow registers: AVX-512 has 32 of them, so fewer values spill, and less is
// wasted at the end of rows.
#define VG_NARROW_REGISTERS
#include "filter_rows.h"
#include "registers.h"

namespace vg::VG_LEVEL {
namespace {

// Two values that are swapped if they are in the wrong order.
struct Exchange {
  u8 low, high;
};

// Batcher's odd-even merge sort.
constexpr Exchange SORT_3[] = {{0, 1}, {0, 2}, {1, 2}};
constexpr Exchange SORT_5[] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {1, 2}, {0, 4}, {2, 4}, {1, 2}, {3, 4}};
constexpr Exchange SORT_7[] = {{0, 1}, {2, 3}, {4, 5}, {0, 2}, {1, 3}, {4, 6}, {1, 2}, {5, 6},
                               {0, 4}, {1, 5}, {2, 6}, {2, 4}, {3, 5}, {1, 2}, {3, 4}, {5, 6}};

// The greater or the lesser of two values. Indices after the window's values refer to results of earlier steps.
struct Step {
  u8 is_greater, first, second;
};

// Networks for the median of a window with sorted lines and columns; the last step computes the median. Each is
// Batcher's sort of the values that have at most half of all values before or after them. Steps that change nothing or
// are not used are removed. By the zero-one principle, a network is correct if it is for zeros and ones.
constexpr Step MIDDLE_3[] = {{0, 2, 4}, {1, 2, 4}, {1, 9, 6}, {0, 10, 11}};
constexpr Step MIDDLE_5[] = {{0, 7, 11},  {1, 7, 11},  {0, 17, 21}, {1, 17, 21}, {0, 4, 8},   {1, 4, 8},   {0, 3, 25},
                             {1, 3, 25},  {0, 29, 26}, {1, 29, 26}, {0, 30, 12}, {1, 30, 12}, {0, 9, 13},  {0, 35, 32},
                             {1, 35, 32}, {0, 37, 34}, {1, 37, 34}, {0, 27, 20}, {1, 27, 20}, {0, 33, 38}, {1, 33, 38},
                             {0, 40, 39}, {1, 40, 39}, {0, 41, 36}, {1, 41, 36}, {0, 16, 42}, {1, 16, 42}, {1, 31, 15},
                             {1, 44, 50}, {1, 45, 51}, {0, 46, 43}, {0, 47, 28}, {1, 56, 52}, {0, 48, 53}, {0, 49, 54},
                             {1, 55, 58}, {0, 59, 57}, {1, 60, 61}};
constexpr Step MIDDLE_7[] = {
    {0, 6, 19},    {1, 6, 19},    {0, 49, 11},   {1, 49, 11},   {0, 5, 51},    {1, 5, 51},    {0, 54, 17},
    {1, 54, 17},   {0, 10, 16},   {1, 10, 16},   {0, 4, 57},    {1, 4, 57},    {0, 55, 60},   {1, 55, 60},
    {0, 53, 58},   {1, 53, 58},   {0, 63, 61},   {1, 63, 61},   {0, 30, 35},   {1, 30, 35},   {0, 22, 28},
    {1, 22, 28},   {0, 23, 29},   {1, 23, 29},   {0, 71, 70},   {1, 71, 70},   {0, 74, 67},   {1, 74, 67},
    {0, 36, 42},   {1, 36, 42},   {0, 73, 77},   {1, 73, 77},   {0, 79, 75},   {1, 79, 75},   {1, 65, 81},
    {0, 72, 43},   {1, 72, 43},   {0, 38, 85},   {1, 38, 85},   {0, 31, 37},   {1, 31, 37},   {0, 88, 80},
    {1, 88, 80},   {0, 86, 91},   {1, 86, 91},   {0, 89, 78},   {1, 89, 78},   {0, 95, 44},   {1, 95, 44},
    {0, 93, 96},   {1, 93, 96},   {0, 13, 50},   {1, 13, 50},   {0, 100, 25},  {1, 100, 25},  {0, 102, 64},
    {1, 102, 64},  {0, 12, 52},   {1, 12, 52},   {0, 24, 18},   {1, 24, 18},   {0, 106, 108}, {1, 106, 108},
    {0, 111, 105}, {1, 111, 105}, {0, 26, 32},   {1, 26, 32},   {0, 101, 114}, {1, 101, 114}, {0, 116, 56},
    {1, 116, 56},  {0, 107, 109}, {1, 107, 109}, {0, 119, 121}, {1, 119, 121}, {0, 113, 122}, {1, 113, 122},
    {0, 124, 98},  {1, 126, 83},  {0, 84, 90},   {1, 84, 90},   {0, 94, 68},   {1, 94, 68},   {0, 129, 130},
    {1, 129, 130}, {0, 110, 104}, {1, 110, 104}, {0, 118, 120}, {1, 118, 120}, {0, 135, 136}, {1, 135, 136},
    {1, 138, 132}, {0, 20, 115},  {0, 141, 103}, {1, 141, 103}, {0, 143, 117}, {1, 143, 117}, {0, 144, 140},
    {0, 146, 127}, {0, 128, 76},  {1, 128, 76},  {0, 134, 62},  {1, 134, 62},  {1, 150, 148}, {0, 142, 123},
    {1, 142, 123}, {0, 87, 97},   {1, 87, 97},   {0, 153, 155}, {0, 157, 152}, {0, 92, 131},  {1, 92, 131},
    {0, 112, 137}, {1, 112, 137}, {0, 161, 159}, {1, 163, 158}, {1, 164, 147}, {1, 139, 133}, {0, 145, 166},
    {0, 125, 99},  {1, 66, 82},   {1, 168, 169}, {0, 167, 170}, {1, 59, 69},   {0, 162, 160}, {1, 173, 172},
    {1, 151, 149}, {0, 154, 156}, {0, 176, 175}, {1, 177, 174}, {0, 171, 178}, {1, 165, 179}};

// A register of values.
template <class Element> struct VectorOf {
  typedef Element type __attribute__((vector_size(REGISTER)));
};
template <> struct VectorOf<u8> {
  using type = Register;
};
template <class Vector> VG_INLINE Vector least_of(Vector a, Vector b) { return a < b ? a : b; }
template <class Vector> VG_INLINE Vector greatest_of(Vector a, Vector b) { return a > b ? a : b; }
VG_INLINE Register least_of(Register a, Register b) { return min_u8(a, b); }
VG_INLINE Register greatest_of(Register a, Register b) { return max_u8(a, b); }

template <class T, i64 n> constexpr i64 count_of(const T (&)[n]) { return n; }

template <i64 SIZE> struct Window;
template <> struct Window<3> {
  static constexpr auto &SORT = SORT_3;
  static constexpr auto &MIDDLE = MIDDLE_3;
};
template <> struct Window<5> {
  static constexpr auto &SORT = SORT_5;
  static constexpr auto &MIDDLE = MIDDLE_5;
};
template <> struct Window<7> {
  static constexpr auto &SORT = SORT_7;
  static constexpr auto &MIDDLE = MIDDLE_7;
};

// Templates unroll the networks, so that values are in registers, or on the stack in the order of the steps.
template <i64 SIZE, i64 at = 0, class Vector> VG_INLINE void sort_values(Vector *values) {
  if constexpr (at < count_of(Window<SIZE>::SORT)) {
    constexpr Exchange exchange = Window<SIZE>::SORT[at];
    const Vector low = values[exchange.low], high = values[exchange.high];
    values[exchange.low] = least_of(low, high);
    values[exchange.high] = greatest_of(low, high);
    sort_values<SIZE, at + 1>(values);
  }
}

template <i64 SIZE, i64 at = 0, class Vector> VG_INLINE void find_middle(Vector *values) {
  if constexpr (at < count_of(Window<SIZE>::MIDDLE)) {
    constexpr Step step = Window<SIZE>::MIDDLE[at];
    const Vector first = values[step.first], second = values[step.second];
    values[SIZE * SIZE + at] = step.is_greater ? greatest_of(first, second) : least_of(first, second);
    find_middle<SIZE, at + 1>(values);
  }
}

// A row of medians. `plane`: begins half a window left of the image. `columns`: room for SIZE rows of `stride`
// elements.
template <i64 SIZE, class Element>
void find_medians(const Element *plane, const i64 *lines, i64 width, Element *columns, i64 stride, Element *out) {
  using Vector = typename VectorOf<Element>::type;
  constexpr i64 COUNT = REGISTER / (i64)sizeof(Element);
  for (i64 x = 0; x < width + SIZE - 1; x += COUNT) {
    Vector values[SIZE];
    for (i64 i = 0; i < SIZE; i++) values[i] = load<Vector>(plane + lines[i] + x);
    sort_values<SIZE>(values);
    for (i64 i = 0; i < SIZE; i++) store(columns + i * stride + x, values[i]);
  }
  constexpr i64 STEPS = count_of(Window<SIZE>::MIDDLE);
  for (i64 x = 0; x < width; x += COUNT) {
    Vector values[SIZE * SIZE + STEPS];
    for (i64 i = 0; i < SIZE; i++) {
      for (i64 j = 0; j < SIZE; j++) values[SIZE * i + j] = load<Vector>(columns + i * stride + x + j);
      sort_values<SIZE>(values + SIZE * i);
    }
    find_middle<SIZE>(values);
    store(out + x, values[SIZE * SIZE + STEPS - 1]);
  }
}

// Writes offsets of the cells of OpenCV's ellipse around row `y`; returns their number. Rows outside the image are
// clamped to the outermost row, whose cells the ellipse contains also, so they change nothing.
template <class Element>
i64 list_element(i64 columns, i64 rows, const FilterImageOf<Element> &image, i64 y, i64 *cells) {
  const i64 radius = rows / 2, middle = columns / 2;
  i64 count = 0;
  for (i64 row = 0; row < rows; row++) {
    const i64 away = row - radius, line = clamp<i64>(y + away, 0, image.height - 1) * image.step();
    i64 half = 0;
    for (; radius != 0 && half < middle; half++) {
      const i64 odd = (2 * half + 1) * radius;
      if (odd * odd > 4 * middle * middle * (radius * radius - away * away)) break;
    }
    for (i64 column = max_of<i64>(middle - half, 0); column < min_of(middle + half + 1, columns); column++)
      cells[count++] = line + column - middle;
  }
  return count;
}

// The greatest value of all cells, or the least. There is at least one cell.
template <bool is_least, class Element>
void extreme_of_cells(const Element *plane, const i64 *cells, i64 count, i64 width, Element *out) {
  using Vector = typename VectorOf<Element>::type;
  for (i64 x = 0; x < width; x += REGISTER / (i64)sizeof(Element)) {
    Vector extreme = load<Vector>(plane + cells[0] + x);
    for (i64 i = 1; i < count; i++) {
      const Vector value = load<Vector>(plane + cells[i] + x);
      extreme = is_least ? least_of(extreme, value) : greatest_of(extreme, value);
    }
    store(out + x, extreme);
  }
}

}  // namespace

template <class Element> void median_row(const FilterImageOf<Element> &image, i64 y, i64 size, Element *columns,
                                         i64 stride, PlanesOf<Element> out) {
  i64 lines[7];
  for (i64 i = 0; i < size; i++) lines[i] = image.step() * clamp<i64>(y + i - size / 2, 0, image.height - 1);
  for (i64 c = 0; c < image.channels; c++) {
    const Element *plane = image.line(0, c) - size / 2;
    if (size == 3) find_medians<3>(plane, lines, image.width, columns, stride, out[c]);
    else if (size == 5) find_medians<5>(plane, lines, image.width, columns, stride, out[c]);
    else find_medians<7>(plane, lines, image.width, columns, stride, out[c]);
  }
}

template <class Element>
void morphology_row(const FilterImageOf<Element> &image, i64 y, const f64 *a, i64 *cells, PlanesOf<Element> out) {
  const i64 count = list_element((i64)a[0], (i64)a[1], image, y, cells);
  auto extreme_of = a[2] == 0.0 ? extreme_of_cells<true, Element> : extreme_of_cells<false, Element>;
  for (i64 c = 0; c < image.channels; c++) extreme_of(image.line(0, c), cells, count, image.width, out[c]);
}

#define VG_COMPILE_ALL(Element)   \
  VG_COMPILE(median_row, Element) \
  VG_COMPILE(morphology_row, Element)
VG_EACH_ELEMENT(VG_COMPILE_ALL)

}  // namespace vg::VG_LEVEL
