// Words of random numbers for whole batches, and shuffled orders. See variegate/program/rng.py,
// variegate/loader/shuffle.py.
#include "philox.h"

namespace vg {
namespace {

// A Feistel network over a keyed random function is a random permutation after four rounds (Luby and Rackoff 1988,
// doi:10.1137/0217022). For small data sets the halves have few bits, and more rounds mix better.
constexpr u32 FEISTEL_ROUNDS = 8;

// A keyed permutation of 0..length-1, by cycle-walking (Black and Rogaway 2002, doi:10.1007/3-540-45760-7_9).
struct Permutation {
  u64 length;
  u64 half;  // bits of either half of the network
  u32 group;
  u32 key_0, key_1;

  u64 word(u64 half_value, u32 round) const {
    return philox4x32({{0, group, (u32)half_value, round}}, key_0, key_1).at[0];
  }
  // The network permutes up to four times as many numbers; a result outside is permuted again until it is inside.
  u64 forward(u64 value) const {
    const u64 mask = ((u64)1 << half) - 1;
    do {
      u64 left = value >> half, right = value & mask;
      for (u32 round = 0; round < FEISTEL_ROUNDS; round++) {
        const u64 mixed = left ^ (word(right, round) & mask);
        left = right;
        right = mixed;
      }
      value = left << half | right;
    } while (value >= length);
    return value;
  }
  u64 inverse(u64 value) const {
    const u64 mask = ((u64)1 << half) - 1;
    do {
      u64 left = value >> half, right = value & mask;
      for (u32 round = FEISTEL_ROUNDS; round-- > 0;) {
        const u64 mixed = right ^ (word(left, round) & mask);
        right = left;
        left = mixed;
      }
      value = left << half | right;
    } while (value >= length);
    return value;
  }
};

// Bits per half of the network for `length` numbers.
u64 half_bits(u64 length) {
  u64 half = 1;
  while ((length - 1) >> (2 * half)) half++;
  return half;
}

}  // namespace

// The parameter words of samples in some slots: u32[rows, count, 4]. `ids`: u64[rows]; `keys`: u32[rows, 2].
VG_EXPORT void vg_fill_words(const u64 *ids, const u32 *keys, i64 rows, const u32 *slots, i64 count, u32 *out) {
  for (i64 r = 0; r < rows; r++) {
    const u32 low = (u32)ids[r], high = (u32)(ids[r] >> 32);
    for (i64 i = 0; i < count; i++, out += 4) {
      const PhiloxWords words = philox4x32({{0, slots[i], low, high}}, keys[2 * r], keys[2 * r + 1]);
      memcpy(out, words.at, sizeof words.at);
    }
  }
}

// The first `count` blocks of the noise of a slot: u32[rows, count, 4].
VG_EXPORT void vg_fill_noise_words(const u64 *ids, const u32 *keys, i64 rows, i64 slot, i64 count, u32 *out) {
  for (i64 r = 0; r < rows; r++) {
    const u32 low = (u32)ids[r], high = (u32)(ids[r] >> 32);
    for (i64 i = 0; i < count; i++, out += 4) {
      const PhiloxWords words = philox4x32({{(u32)i, (u32)slot, low, high}}, keys[2 * r], keys[2 * r + 1]);
      memcpy(out, words.at, sizeof words.at);
    }
  }
}

// The first two words of each counter, u32[count, 4], under one key: u32[count, 2].
VG_EXPORT void vg_fill_keys(const u32 *counters, i64 count, const u32 *key, u32 *out) {
  for (i64 i = 0; i < count; i++, counters += 4) {
    const PhiloxWords words = philox4x32({{counters[0], counters[1], counters[2], counters[3]}}, key[0], key[1]);
    out[2 * i] = words.at[0];
    out[2 * i + 1] = words.at[1];
  }
}

// Looks up positions in a shuffled order of 0..length-1: values at positions or, with `inverse`, positions of values.
// i64[count].
VG_EXPORT void vg_permute(const i64 *values, i64 count, u64 length, const u32 *key, i64 inverse, i64 *out) {
  const Permutation order = {length, half_bits(length), 0, key[0], key[1]};
  for (i64 i = 0; i < count; i++) {
    const u64 value = (u64)values[i];
    out[i] = (i64)(inverse ? order.inverse(value) : order.forward(value));
  }
}

// The same in many orders at once: the order of group groups[i], of 0..lengths[i]-1, at positions[i].
VG_EXPORT void vg_permute_within(const i64 *positions, const i64 *lengths, const i64 *groups, i64 count, const u32 *key,
                                 i64 *out) {
  for (i64 i = 0; i < count; i++) {
    const u64 length = (u64)lengths[i];
    const Permutation order = {length, half_bits(length), (u32)groups[i], key[0], key[1]};
    out[i] = (i64)order.forward((u64)positions[i]);
  }
}

}  // namespace vg
