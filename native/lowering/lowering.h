// Rewrites of sampled programs into fused passes. Each works on all rows of a batch, in place.
#pragma once
#include "../coords.h"
#include "../levels.h"

namespace vg::VG_LEVEL {

// One program, rewritten in place.
struct Rewritten {
  const Lowering *all;
  i64 row;

  i64 at(i64 slot) const { return row * all->slots + slot; }
  i16 &opcode(i64 k) const { return all->opcode[at(k)]; }
  i16 &flags(i64 k) const { return all->flags[at(k)]; }
  i16 &label(i64 k) const { return all->label[at(k)]; }
  i16 &pass_of(i64 k) const { return all->pass_of[at(k)]; }
  f64 *args(i64 k) const { return all->args + at(k) * NUM_ARGS; }
  u8 *fill(i64 k) const { return all->fill + at(k) * 3; }
  i32 *out_size(i64 k) const { return all->out_size + at(k) * 2; }
  i32 *window(i64 k) const { return all->window + at(k) * 4; }
  i32 *breaks(i64 k) const { return all->breaks + at(k) * 2; }
  i32 *pass(i64 p) const { return all->passes + at(p) * PASS_FIELDS; }
  i32 &length() const { return all->length[row]; }
  i32 &num_passes() const { return all->num_passes[row]; }
  const i32 *in_shape() const { return all->in_shape + row * 3; }
  // Height and width before slot `k`.
  const i32 *in_size(i64 k) const { return k > 0 ? out_size(k - 1) : in_shape(); }

  int kind(i64 k) const { return KIND_OF[opcode(k)]; }
  int interpolation(i64 k) const { return flags(k) & INTERPOLATION_MASK; }
  MapSlots map_slots() const {
    return map_slots_of(all->opcode + at(0), args(0), all->flags + at(0), window(0), out_size(0));
  }
  bool folds(i64 k) const { return flags(k) > INTERPOLATION_MASK; }
  bool is_integer_map(i64 k) const { return opcode(k) == Op::MAP_FIXED && moves_whole_pixels(args(k)); }
};

constexpr int LUT_CACHE_BITS = 7;

// The lookup tables of a batch. Equal operations share a table while it is in the cache.
class LutTables {
  // A cache entry. Key: opcode and arguments, or a pair of tables.
  struct Entry {
    f64 key[4];
    i64 lut;  // -1: none
  };
  Entry entries[1 << LUT_CACHE_BITS];
  u8 *luts;

 public:
  const i64 size;  // bytes of a table
  i64 count;

  LutTables(u8 *luts, i64 channels);
  u8 *at(i64 lut) const { return luts + size * lut; }
  // Sets `lut` to the index of the table of a key. Returns the memory of a new table to fill; null if it exists.
  u8 *find(const f64 (&key)[4], i64 &lut);
};

// Removes instructions whose opcode is NOP, keeping order.
void close_gaps(const Rewritten &program);
// Removes instructions that change no pixel.
void remove_neutral(const Rewritten &program);
// Converts the six coefficients of an integer map to continuous coordinates.
void make_real(f64 *a);
// Replaces the maps of a mask by nearest-neighbor maps.
void take_nearest(const Rewritten &program);
// Converts every geometric instruction to a map, with its window in the source.
void rewrite_maps(const Rewritten &program);
// Converts every operation on values of single channels to a LUT, for images of uint8.
void build_luts(const Rewritten &program, LutTables &tables);
// Composes maps until no rule applies.
void merge_maps(const Rewritten &program);
// Composes adjacent LUTs of images of uint8.
void compose_luts(const Rewritten &program, LutTables &tables);
// Assigns instructions to passes.
void assign_passes(const Rewritten &program);
// Writes the pass table.
void describe_passes(const Rewritten &program);

// Converts the `blurs` blurs of a batch to CONVOLVE with integer weights. Returns the number of weights; if there is no
// room for them, nothing is rewritten. -1: no memory.
i64 build_kernels(const Lowering *all, i64 blurs);

}  // namespace vg::VG_LEVEL
