// MEDIAN and MORPHOLOGY: least and greatest of whole registers of levels.
//
// For a median, levels of each column of the window are sorted first, which serves as many pixels as the window has
// columns. Sorting its lines then keeps the columns sorted, so that most levels are known to be too low or too high; a
// network finds the middle one of the others.
#include "filter_rows.h"
#include "registers.h"

namespace vg {
namespace VG_LEVEL {
namespace {

// Two values that change places if they are in the wrong order.
struct Exchange {
  u8 low, high;
};

// Batcher's odd-even merge sort.
constexpr Exchange SORT_3[] = {{0, 1}, {0, 2}, {1, 2}};
constexpr Exchange SORT_5[] = {{0, 1}, {2, 3}, {0, 2}, {1, 3}, {1, 2}, {0, 4}, {2, 4}, {1, 2}, {3, 4}};
constexpr Exchange SORT_7[] = {
    {0, 1}, {2, 3}, {4, 5}, {0, 2}, {1, 3}, {4, 6}, {1, 2}, {5, 6}, {0, 4}, {1, 5}, {2, 6}, {2, 4}, {3, 5}, {1, 2},
    {3, 4}, {5, 6}};

// The greater or the lesser of two values; those after the window's are what former steps made.
struct Step {
  u8 is_greater, first, second;
};

// The last step makes the median of the window of n lines, which are sorted, as are its columns: the same sort of
// those that have no more than half of all before or behind them, without what changes nothing or leads nowhere. Such a
// network is right if it is for zeros and ones.
constexpr Step MIDDLE_3[] = {
    {0, 2, 4}, {1, 2, 4}, {1, 9, 6}, {0, 10, 11}};
constexpr Step MIDDLE_5[] = {
    {0, 7, 11}, {1, 7, 11}, {0, 17, 21}, {1, 17, 21}, {0, 4, 8}, {1, 4, 8}, {0, 3, 25}, {1, 3, 25}, {0, 29, 26}, {1,
    29, 26}, {0, 30, 12}, {1, 30, 12}, {0, 9, 13}, {0, 35, 32}, {1, 35, 32}, {0, 37, 34}, {1, 37, 34}, {0, 27, 20},
    {1, 27, 20}, {0, 33, 38}, {1, 33, 38}, {0, 40, 39}, {1, 40, 39}, {0, 41, 36}, {1, 41, 36}, {0, 16, 42}, {1, 16,
    42}, {1, 31, 15}, {1, 44, 50}, {1, 45, 51}, {0, 46, 43}, {0, 47, 28}, {1, 56, 52}, {0, 48, 53}, {0, 49, 54}, {1,
    55, 58}, {0, 59, 57}, {1, 60, 61}};
constexpr Step MIDDLE_7[] = {
    {0, 6, 19}, {1, 6, 19}, {0, 10, 16}, {1, 10, 16}, {0, 26, 32}, {1, 26, 32}, {0, 22, 28}, {1, 22, 28}, {0, 23,
    29}, {1, 23, 29}, {0, 49, 11}, {1, 49, 11}, {0, 5, 59}, {1, 5, 59}, {0, 12, 60}, {1, 12, 60}, {0, 13, 50}, {1,
    13, 50}, {0, 24, 18}, {1, 24, 18}, {0, 57, 56}, {1, 57, 56}, {0, 31, 37}, {1, 31, 37}, {0, 36, 42}, {1, 36, 42},
    {0, 4, 51}, {1, 4, 51}, {0, 61, 52}, {1, 61, 52}, {0, 62, 17}, {1, 62, 17}, {0, 63, 67}, {1, 63, 67}, {0, 64,
    68}, {1, 64, 68}, {0, 65, 25}, {1, 65, 25}, {0, 66, 53}, {1, 66, 53}, {0, 20, 54}, {0, 69, 73}, {1, 69, 73}, {0,
    58, 43}, {1, 58, 43}, {0, 85, 78}, {1, 85, 78}, {0, 87, 80}, {1, 87, 80}, {0, 30, 35}, {1, 30, 35}, {0, 71, 91},
    {1, 71, 91}, {0, 72, 74}, {1, 72, 74}, {0, 38, 93}, {1, 38, 93}, {0, 79, 76}, {1, 79, 76}, {0, 81, 94}, {1, 81,
    94}, {0, 96, 83}, {1, 96, 83}, {0, 82, 95}, {1, 82, 95}, {0, 97, 84}, {1, 97, 84}, {0, 89, 86}, {1, 89, 86}, {0,
    70, 98}, {1, 70, 98}, {0, 92, 100}, {1, 92, 100}, {0, 102, 99}, {1, 102, 99}, {0, 104, 101}, {1, 104, 101}, {0,
    103, 44}, {1, 103, 44}, {0, 77, 106}, {1, 77, 106}, {0, 108, 107}, {1, 108, 107}, {0, 109, 110}, {1, 109, 110},
    {0, 112, 111}, {1, 112, 111}, {0, 113, 114}, {1, 113, 114}, {0, 116, 115}, {1, 116, 115}, {0, 117, 88}, {1, 117,
    88}, {0, 90, 118}, {1, 90, 118}, {0, 120, 119}, {1, 120, 119}, {0, 121, 122}, {1, 121, 122}, {0, 124, 123}, {1,
    124, 123}, {0, 125, 126}, {1, 125, 126}, {0, 105, 127}, {1, 105, 127}, {1, 75, 55}, {1, 128, 142}, {1, 129,
    143}, {1, 130, 144}, {1, 131, 145}, {1, 132, 146}, {1, 133, 147}, {0, 134, 148}, {0, 135, 149}, {0, 136, 150},
    {0, 137, 151}, {0, 138, 152}, {0, 139, 153}, {1, 162, 154}, {1, 163, 155}, {1, 164, 156}, {0, 165, 157}, {0,
    166, 158}, {0, 140, 159}, {0, 141, 160}, {1, 161, 170}, {1, 171, 167}, {0, 172, 168}, {0, 173, 169}, {1, 174,
    176}, {0, 177, 175}, {1, 178, 179}};

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

// Networks are unrolled by templates: all values are in registers, or in the order of the steps on the stack.
template <i64 SIZE, i64 at = 0> VG_INLINE void sort_values(Register *values) {
  if constexpr (at < count_of(Window<SIZE>::SORT)) {
    constexpr Exchange exchange = Window<SIZE>::SORT[at];
    const Register low = values[exchange.low], high = values[exchange.high];
    values[exchange.low] = min_u8(low, high);
    values[exchange.high] = max_u8(low, high);
    sort_values<SIZE, at + 1>(values);
  }
}

template <i64 SIZE, i64 at = 0> VG_INLINE void find_middle(Register *values) {
  if constexpr (at < count_of(Window<SIZE>::MIDDLE)) {
    constexpr Step step = Window<SIZE>::MIDDLE[at];
    const Register first = values[step.first], second = values[step.second];
    values[SIZE * SIZE + at] = step.is_greater ? max_u8(first, second) : min_u8(first, second);
    find_middle<SIZE, at + 1>(values);
  }
}

// `plane`: from half a window left of the image on. `columns`: room for SIZE rows of `stride` bytes.
template <i64 SIZE>
void find_medians(const u8 *plane, const i64 *lines, i64 width, u8 *columns, i64 stride, u8 *out) {
  for (i64 x = 0; x < width + SIZE - 1; x += REGISTER) {
    Register values[SIZE];
    for (i64 i = 0; i < SIZE; i++) values[i] = load_register(plane + lines[i] + x);
    sort_values<SIZE>(values);
    for (i64 i = 0; i < SIZE; i++) store(columns + i * stride + x, values[i]);
  }
  constexpr i64 STEPS = count_of(Window<SIZE>::MIDDLE);
  for (i64 x = 0; x < width; x += REGISTER) {
    Register values[SIZE * SIZE + STEPS];
    for (i64 i = 0; i < SIZE; i++) {
      for (i64 j = 0; j < SIZE; j++) values[SIZE * i + j] = load_register(columns + i * stride + x + j);
      sort_values<SIZE>(values + SIZE * i);
    }
    find_middle<SIZE>(values);
    store(out + x, values[SIZE * SIZE + STEPS - 1]);
  }
}

// Offsets of the cells of OpenCV's ellipse around row `y`; returns how many. Rows beyond the image's count as its
// outermost, whose cells the element has as well.
i64 list_element(i64 columns, i64 rows, const FilterImage &image, i64 y, i64 *cells) {
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

// The greatest level of all cells, or the least, which is the greatest with all bits flipped.
void greatest_of_cells(const u8 *plane, const i64 *cells, i64 count, bool is_least, i64 width, u8 *out) {
  const Register flips = all8(is_least ? 255 : 0);
  for (i64 x = 0; x < width; x += REGISTER) {
    Register greatest = all8(0);
    for (i64 i = 0; i < count; i++) greatest = max_u8(greatest, load_register(plane + cells[i] + x) ^ flips);
    store(out + x, greatest ^ flips);
  }
}

}  // namespace

void median_row(const FilterImage &image, i64 y, i64 size, u8 *columns, i64 stride, Planes out) {
  i64 lines[7];
  for (i64 i = 0; i < size; i++) lines[i] = image.step() * clamp<i64>(y + i - size / 2, 0, image.height - 1);
  for (i64 c = 0; c < image.channels; c++) {
    const u8 *plane = image.line(0, c) - size / 2;
    if (size == 3) find_medians<3>(plane, lines, image.width, columns, stride, out[c]);
    else if (size == 5) find_medians<5>(plane, lines, image.width, columns, stride, out[c]);
    else find_medians<7>(plane, lines, image.width, columns, stride, out[c]);
  }
}

void morphology_row(const FilterImage &image, i64 y, const f64 *a, i64 *cells, Planes out) {
  const i64 count = list_element((i64)a[0], (i64)a[1], image, y, cells);
  for (i64 c = 0; c < image.channels; c++)
    greatest_of_cells(image.line(0, c), cells, count, a[2] == 0.0, image.width, out[c]);
}

}  // namespace VG_LEVEL
}  // namespace vg
