// Masks through rows of programs: pixels are followed back as real positions, to the pixel that the last one lies in.
#include "mask_lines.h"

namespace vg::VG_LEVEL {
namespace {

// Positions of pixels that are kept at a time, for masks of one image.
constexpr i64 MAX_POSITIONS = 1 << 20;
// Bytes of masks that are near enough when they are read, in a core's second-level cache.
constexpr i64 NEAR_BYTES = 1 << 20;

// Memory that is not zeroed.
struct Memory {
  u8 *begin = nullptr, *free_at = nullptr;

  Memory() = default;
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory() { free(begin); }

  template <class T> T *take(i64 count) {
    u8 *taken = free_at;
    free_at += round_up(count * (i64)sizeof(T), BLOCK);
    return (T *)taken;
  }
};

// A line's pixels: of columns begin..end, behind the pixel `base`. `is_direct`: there is one for each.
struct Line {
  i64 begin, end, base;
  bool is_direct;
};

struct MaskScratch {
  Memory memory;
  LineScratch line;
  i32 *positions;
  Line *lines;
  i64 num_positions;

  // `longest`: side of a region; `count`: positions, at least as many.
  bool reserve(i64 longest, i64 count) {
    const i64 side = round_up(longest, BLOCK) + BLOCK;
    const i64 bytes = side * (i64)(9 * sizeof(f64) + 2 + sizeof(i32) + sizeof(Line)) + (count + BLOCK) * 4 + 16 * BLOCK;
    void *block = nullptr;
    if (posix_memalign(&block, BLOCK, (size_t)bytes)) return false;
    memory.begin = memory.free_at = (u8 *)block;
    for (int axis = 0; axis < 2; axis++) {
      line.table[axis] = memory.take<f64>(longest);
      line.is_inside[axis] = memory.take<u8>(longest);
      for (f64 *&displaced : line.displaced[axis]) displaced = memory.take<f64>(longest);
    }
    line.x = memory.take<f64>(longest);
    line.y = memory.take<f64>(longest);
    line.cells = memory.take<i32>(longest);
    line.fractions = memory.take<f64>(longest);
    lines = memory.take<Line>(longest);
    positions = memory.take<i32>(count);
    num_positions = count;
    return true;
  }
};

// -- elements --------------------------------------------------------------------------------------------------------

template <class T> void fill(T value, i64 count, T *__restrict out) {
  for (i64 i = 0; i < count; i++) out[i] = value;
}

// The elements that end with the one at `source`, from the last to the first.
template <class T> void copy_reversed(const T *__restrict source, i64 count, T *__restrict out) {
  for (i64 i = 0; i < count; i++) out[i] = source[-i];
}

// Writes element(position) for each position. Two positions come by one load.
template <class T, class Element>
VG_INLINE void for_each_position(const i32 *__restrict positions, i64 count, T *__restrict out, Element element) {
  i64 i = 0;
  for (; i + 8 <= count; i += 8)
    for (i64 pair = i; pair < i + 8; pair += 2) {
      const i64 both = load<i64>(positions + pair);
      out[pair] = element((i32)both);
      out[pair + 1] = element((i32)(both >> 32));
    }
  for (; i < count; i++) out[i] = element(positions[i]);
}

template <class T> void gather(const T *__restrict source, const i32 *positions, i64 count, T *__restrict out) {
  for_each_position(positions, count, out, [=](i32 position) { return source[(u32)position]; });
}

// With `value` for negative positions.
template <class T>
void gather_or_fill(const T *__restrict source, const i32 *positions, T value, i64 count, T *__restrict out) {
  for_each_position(positions, count, out, [=](i32 position) {
    // What is not there reads the first element of the source, so that nothing branches.
    const T element = source[position >= 0 ? position : 0];
    return position >= 0 ? element : value;
  });
}

template <class T>
void write_line(const Line &line, Run run, const MaskLayer &layer, const i32 *positions, i64 width, T *out) {
  const T *source = (const T *)layer.source + line.base;
  const T value = (T)(u64)layer.fill;
  const i64 count = line.end - line.begin;
  fill(value, line.begin, out);
  fill(value, width - line.end, out + line.end);
  if (count == 0) return;
  out += line.begin;
  positions += line.begin;
  if (run == ASCENDING) memcpy(out, source + positions[0], (size_t)count * sizeof(T));
  else if (run == DESCENDING) copy_reversed(source + positions[0], count, out);
  else if (line.is_direct) gather(source, positions, count, out);
  else gather_or_fill(source, positions, value, count, out);
}

// -- regions ---------------------------------------------------------------------------------------------------------

struct RegionReader {
  const MaskRegion &region;
  const MaskLayer *layers;
  MaskScratch &scratch;
  i64 width, height;
  Path path;
  Extent extent;
  Run run;
  bool by_borders, by_grid;

  RegionReader(const Stages *all, const MaskRegion &region, const MaskLayer *layers, MaskScratch &scratch)
      : region(region), layers(layers), scratch(scratch) {
    width = region.right - region.left;
    height = region.bottom - region.top;
    path = fill_tables(all, region, scratch.line);
    extent = extent_of(scratch.line.table[0], scratch.line.is_inside[0], width);
    run = ANY_ORDER;
    by_borders = by_grid = false;
    if (path.is_covered()) {
      const i64 step = path.is_transposed ? region.image_width : 1;
      run = fill_positions(scratch.line.table[0], scratch.line.is_inside[0], step, extent.columns, scratch.positions);
    } else if (!path.is_transposed) {
      const Stage last = path.last_step();
      by_borders = extent.direction != 0 && is_bounded_affine(last);
      by_grid = last.kind() == StageKind::GRID;
      if (by_grid) prepare_grid(Grid(last), extent.columns.end, scratch.line);
      for (i64 &border : scratch.line.borders) border = extent.columns.first;
    }
  }

  // An affine step whose positions rise or fall with the columns: none is so large that it has no number.
  static bool is_bounded_affine(const Stage &stage) {
    constexpr f64 LARGE = 0x1p60;
    const f64 *m = stage.inverse();
    bool is_bounded = stage.kind() == StageKind::MAP && m[6] == 0.0 && m[7] == 0.0;
    for (int i = 0; i < 6; i++) is_bounded = is_bounded && fabs(m[i]) < LARGE;
    return is_bounded;
  }

  // What a line reads, by tables alone or into `positions`.
  Line read_line(i64 number, i32 *positions) {
    LineScratch &line = scratch.line;
    const f64 v = line.table[1][number];
    Range columns = extent.columns;
    if (!line.is_inside[1][number]) return {columns.first, columns.first, 0, true};
    if (path.is_covered())
      return {columns.first, columns.end, (i64)v * (path.is_transposed ? 1 : region.image_width), extent.is_contiguous};
    const Stage stage = path.last_step();
    if (by_borders) {
      columns = columns_inside(stage, line.table[0], v, columns, extent.direction > 0, line.borders);
      if (path.last == path.first) {
        affine_positions(stage.inverse(), line.table[0], v, region.image_width, columns, positions);
        return {columns.first, columns.end, 0, true};
      }
      affine_line(stage, v, columns, line);
    } else if (by_grid) {
      grid_line(stage, v, columns, line);
    } else {
      begin_line(v, columns);
    }
    const i64 last = by_borders || by_grid ? path.last - 1 : path.last;
    follow_line(path.all, last, path.first, columns, line);
    write_positions(line, region.image_width, columns, positions);
    return {columns.first, columns.end, 0, false};
  }

  void begin_line(f64 v, Range columns) {
    LineScratch &line = scratch.line;
    for (i64 i = columns.first; i < columns.end; i++) {
      const f64 u = line.table[0][i];
      line.x[i] = !line.is_inside[0][i] ? NAN : path.is_transposed ? v : u;
      line.y[i] = path.is_transposed ? u : v;
    }
  }

  void write(const MaskLayer &layer, i64 number, const Line &line, const i32 *positions) {
    const i64 at = (region.top + number) * layer.result_width + region.left;
    u8 *out = layer.result + (at << layer.bits);
    switch (layer.bits) {
      case 0: return write_line(line, run, layer, positions, width, out);
      case 1: return write_line(line, run, layer, positions, width, (u16 *)out);
      case 2: return write_line(line, run, layer, positions, width, (u32 *)out);
      default: return write_line(line, run, layer, positions, width, (u64 *)out);
    }
  }

  // Brings masks into the cache, of a region that shows most of them, if they fit.
  void fetch(i64 first, i64 end) {
    const i64 pixels = path.all->before[2 * path.first] * region.image_width;
    i64 bytes = 0;
    for (i64 n = first; n < end; n++) bytes += pixels << layers[n].bits;
    if (2 * width * height < pixels || bytes > NEAR_BYTES) return;
    for (i64 n = first; n < end; n++) prefetch(layers[n].source, pixels << layers[n].bits);
  }

  // A line at a time, for all masks.
  void read_by_lines() {
    if (!path.is_covered()) fetch(region.first_layer, region.end_layer);
    for (i64 number = 0; number < height; number++) {
      const Line line = read_line(number, scratch.positions);
      for (i64 n = region.first_layer; n < region.end_layer; n++) write(layers[n], number, line, scratch.positions);
    }
  }

  // Positions of many lines, for one mask after another: a mask stays in the cache.
  void read_by_layers() {
    const i64 together = min_of(max_of<i64>(scratch.num_positions / max_of<i64>(width, 1), 1), height);
    for (i64 first = 0; first < height; first += together) {
      const i64 count = min_of(together, height - first);
      for (i64 k = 0; k < count; k++) scratch.lines[k] = read_line(first + k, scratch.positions + k * width);
      for (i64 n = region.first_layer; n < region.end_layer; n++) {
        if (together == height) fetch(n, n + 1);
        for (i64 k = 0; k < count; k++) write(layers[n], first + k, scratch.lines[k], scratch.positions + k * width);
      }
    }
  }

  bool has_several() const { return region.end_layer - region.first_layer > 1; }

  void read() {
    if (!path.is_covered() && has_several()) read_by_layers();
    else read_by_lines();
  }
};

bool reserve_for(const MaskRegion *regions, i64 count, MaskScratch *scratch) {
  i64 longest = 1, positions = 1;
  for (const MaskRegion *region = regions; region < regions + count; region++) {
    const i64 width = region->right - region->left, height = region->bottom - region->top;
    longest = max_of(longest, max_of(width, height));
    const bool has_several = region->end_layer - region->first_layer > 1;
    if (has_several) positions = max_of(positions, min_of(width * height, MAX_POSITIONS));
  }
  return scratch->reserve(longest, max_of(longest, positions));
}

}  // namespace

// Reads `count` regions, later ones on top of earlier ones.
VG_EXPORT i64 VG_ENTRY(vg_read_masks)(const Stages *stages, const MaskRegion *regions, i64 count,
                                      const MaskLayer *layers) {
  MaskScratch scratch;
  if (!reserve_for(regions, count, &scratch)) return OUT_OF_MEMORY;
  for (i64 r = 0; r < count; r++) RegionReader(stages, regions[r], layers, scratch).read();
  return OK;
}

}  // namespace vg::VG_LEVEL
