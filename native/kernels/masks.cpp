// Masks through rows of programs: pixels are followed back as real places, to the pixel that the last one lies in.
#include "mask_lines.h"

namespace vg::VG_LEVEL {
namespace {

// Places of pixels that are kept at a time, for masks of one image.
constexpr i64 MAX_PLACES = 1 << 20;
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

struct Room {
  Memory memory;
  LineRoom line;
  i32 *places;
  Line *lines;
  i64 num_places;

  // `longest`: side of a region; `count`: places, at least as many.
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
    line.shares = memory.take<f64>(longest);
    lines = memory.take<Line>(longest);
    places = memory.take<i32>(count);
    num_places = count;
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

// Writes element(place) for each place. Two places come by one load.
template <class T, class Element>
VG_INLINE void for_each_place(const i32 *__restrict places, i64 count, T *__restrict out, Element element) {
  i64 i = 0;
  for (; i + 8 <= count; i += 8)
    for (i64 pair = i; pair < i + 8; pair += 2) {
      const i64 both = load<i64>(places + pair);
      out[pair] = element((i32)both);
      out[pair + 1] = element((i32)(both >> 32));
    }
  for (; i < count; i++) out[i] = element(places[i]);
}

template <class T> void gather(const T *__restrict source, const i32 *places, i64 count, T *__restrict out) {
  for_each_place(places, count, out, [=](i32 place) { return source[(u32)place]; });
}

// With `value` for negative places.
template <class T>
void gather_or_fill(const T *__restrict source, const i32 *places, T value, i64 count, T *__restrict out) {
  for_each_place(places, count, out, [=](i32 place) {
    // What is not there reads the first element of the source, so that nothing branches.
    const T found = source[place >= 0 ? place : 0];
    return place >= 0 ? found : value;
  });
}

template <class T>
void write_line(const Line &line, Run run, const MaskLayer &layer, const i32 *places, i64 width, T *out) {
  const T *source = (const T *)layer.source + line.base;
  const T value = (T)(u64)layer.fill;
  const i64 count = line.end - line.begin;
  fill(value, line.begin, out);
  fill(value, width - line.end, out + line.end);
  if (count == 0) return;
  out += line.begin;
  places += line.begin;
  if (run == ASCENDING) memcpy(out, source + places[0], (size_t)count * sizeof(T));
  else if (run == DESCENDING) copy_reversed(source + places[0], count, out);
  else if (line.is_direct) gather(source, places, count, out);
  else gather_or_fill(source, places, value, count, out);
}

// -- regions ---------------------------------------------------------------------------------------------------------

struct RegionReader {
  const MaskRegion &region;
  const MaskLayer *layers;
  Room &room;
  i64 width, height;
  Path path;
  Extent extent;
  Run run;
  bool by_borders, by_grid;

  RegionReader(const Stages *all, const MaskRegion &region, const MaskLayer *layers, Room &room)
      : region(region), layers(layers), room(room) {
    width = region.right - region.left;
    height = region.bottom - region.top;
    path = fill_tables(all, region, room.line);
    extent = extent_of(room.line.table[0], room.line.is_inside[0], width);
    run = ANY_ORDER;
    by_borders = by_grid = false;
    if (path.is_covered()) {
      const i64 step = path.is_turned ? region.image_width : 1;
      run = fill_places(room.line.table[0], room.line.is_inside[0], step, extent.columns, room.places);
    } else if (!path.is_turned) {
      const Stage last = path.last_step();
      by_borders = extent.direction != 0 && is_bounded_affine(last);
      by_grid = last.kind() == StageKind::GRID;
      if (by_grid) prepare_grid(Grid(last), extent.columns.end, room.line);
      for (i64 &border : room.line.borders) border = extent.columns.first;
    }
  }

  // An affine step whose places rise or fall with the columns: none is so large that it has no number.
  static bool is_bounded_affine(const Stage &stage) {
    constexpr f64 LARGE = 0x1p60;
    const f64 *m = stage.inverse();
    bool is_bounded = stage.kind() == StageKind::MAP && m[6] == 0.0 && m[7] == 0.0;
    for (int i = 0; i < 6; i++) is_bounded = is_bounded && fabs(m[i]) < LARGE;
    return is_bounded;
  }

  // What a line reads, by tables alone or into `places`.
  Line read_line(i64 number, i32 *places) {
    LineRoom &line = room.line;
    const f64 v = line.table[1][number];
    Range columns = extent.columns;
    if (!line.is_inside[1][number]) return {columns.first, columns.first, 0, true};
    if (path.is_covered())
      return {columns.first, columns.end, (i64)v * (path.is_turned ? 1 : region.image_width), extent.is_whole};
    const Stage stage = path.last_step();
    if (by_borders) {
      columns = columns_inside(stage, line.table[0], v, columns, extent.direction > 0, line.borders);
      if (path.last == path.first) {
        affine_places(stage.inverse(), line.table[0], v, region.image_width, columns, places);
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
    places_of_line(line, region.image_width, columns, places);
    return {columns.first, columns.end, 0, false};
  }

  void begin_line(f64 v, Range columns) {
    LineRoom &line = room.line;
    for (i64 i = columns.first; i < columns.end; i++) {
      const f64 u = line.table[0][i];
      line.x[i] = !line.is_inside[0][i] ? NAN : path.is_turned ? v : u;
      line.y[i] = path.is_turned ? u : v;
    }
  }

  void write(const MaskLayer &layer, i64 number, const Line &line, const i32 *places) {
    const i64 at = (region.top + number) * layer.result_width + region.left;
    u8 *out = layer.result + (at << layer.bits);
    switch (layer.bits) {
      case 0: return write_line(line, run, layer, places, width, out);
      case 1: return write_line(line, run, layer, places, width, (u16 *)out);
      case 2: return write_line(line, run, layer, places, width, (u32 *)out);
      default: return write_line(line, run, layer, places, width, (u64 *)out);
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
      const Line line = read_line(number, room.places);
      for (i64 n = region.first_layer; n < region.end_layer; n++) write(layers[n], number, line, room.places);
    }
  }

  // Places of many lines, for one mask after another: a mask stays in the cache.
  void read_by_layers() {
    const i64 together = min_of(max_of<i64>(room.num_places / max_of<i64>(width, 1), 1), height);
    for (i64 first = 0; first < height; first += together) {
      const i64 count = min_of(together, height - first);
      for (i64 k = 0; k < count; k++) room.lines[k] = read_line(first + k, room.places + k * width);
      for (i64 n = region.first_layer; n < region.end_layer; n++) {
        if (together == height) fetch(n, n + 1);
        for (i64 k = 0; k < count; k++) write(layers[n], first + k, room.lines[k], room.places + k * width);
      }
    }
  }

  bool has_several() const { return region.end_layer - region.first_layer > 1; }

  void read() {
    if (!path.is_covered() && has_several()) read_by_layers();
    else read_by_lines();
  }
};

bool reserve_for(const MaskRegion *regions, i64 count, Room *room) {
  i64 longest = 1, places = 1;
  for (const MaskRegion *region = regions; region < regions + count; region++) {
    const i64 width = region->right - region->left, height = region->bottom - region->top;
    longest = max_of(longest, max_of(width, height));
    if (region->end_layer - region->first_layer > 1) places = max_of(places, min_of(width * height, MAX_PLACES));
  }
  return room->reserve(longest, max_of(longest, places));
}

}  // namespace

// Reads `count` regions, later ones on top of earlier ones.
VG_EXPORT i64 VG_ENTRY(vg_read_masks)(const Stages *stages, const MaskRegion *regions, i64 count,
                                      const MaskLayer *layers) {
  Room room;
  if (!reserve_for(regions, count, &room)) return OUT_OF_MEMORY;
  for (i64 r = 0; r < count; r++) RegionReader(stages, regions[r], layers, room).read();
  return OK;
}

}  // namespace vg::VG_LEVEL
