// Search for images with near hashes in one index of hashes: see variegate/apps/check/near_hashes.py.
#include "../simd.h"
#include "similarity.h"

namespace vg::VG_LEVEL {
namespace {

constexpr u32 NOBODY = 0xffffffff;
// An image is compared with no more images after this many that have near hashes but are not alike.
constexpr i32 MOST_FAILURES = 32;
// If this many hashes have one value, a hash is compared with earlier rows only.
constexpr i64 LONG = 64;

// Maximal number of flips searched together.
constexpr i64 FLIPS = 4;

#if defined(__AVX512VPOPCNTDQ__)
// Counts the set bits in each 64-bit lane.
VG_INLINE __m512i count_bits(__m512i value) { return _mm512_popcnt_epi64(value); }
#elif VG_AVX512  // vpshufb, vpsadbw
VG_INLINE __m512i count_bits(__m512i value) {
  const __m512i low = _mm512_set1_epi8(15);
  const __m512i counts = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
  const __m512i lower = _mm512_shuffle_epi8(counts, _mm512_and_si512(value, low));
  const __m512i upper = _mm512_shuffle_epi8(counts, _mm512_and_si512(_mm512_srli_epi16(value, 4), low));
  return _mm512_sad_epu8(_mm512_add_epi8(lower, upper), _mm512_setzero_si512());
}
#elif VG_AVX2
VG_INLINE __m256i count_bits(__m256i value) {
  const __m256i low = _mm256_set1_epi8(15);
  const __m256i counts =
      _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i lower = _mm256_shuffle_epi8(counts, _mm256_and_si256(value, low));
  const __m256i upper = _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16(value, 4), low));
  return _mm256_sad_epu8(_mm256_add_epi8(lower, upper), _mm256_setzero_si256());
}
#endif

// A bit mask of the HASH_GROUP hashes at an address that differ from `mine` in at most `distance` bits.
VG_INLINE u32 near_hashes(const u64 *hashes, u64 mine, i64 distance) {
#if VG_AVX512
  const __m512i bits = count_bits(_mm512_xor_si512(_mm512_loadu_si512(hashes), _mm512_set1_epi64((i64)mine)));
  return _mm512_cmple_epu64_mask(bits, _mm512_set1_epi64(distance));
#elif VG_AVX2
  const __m256i each = _mm256_set1_epi64x((i64)mine), limit = _mm256_set1_epi64x(distance);
  u32 near = 0;
  for (int part = 0; part < HASH_GROUP; part += 4) {
    const __m256i value = _mm256_loadu_si256((const __m256i *)(hashes + part));
    const __m256i is_far = _mm256_cmpgt_epi64(count_bits(_mm256_xor_si256(value, each)), limit);
    near |= (u32)(~_mm256_movemask_pd(_mm256_castsi256_pd(is_far)) & 15) << part;
  }
  return near;
#else
  u32 near = 0;
  for (int k = 0; k < HASH_GROUP; k++) near |= (u32)(__builtin_popcountll(hashes[k] ^ mine) <= distance) << k;
  return near;
#endif
}

// The search of one image among hashes with an equal part of the hash.
struct ImageSearch {
  const HashSearch &all;
  f64 most_unlike;
  u32 row;

  u32 *partners(int kind) const { return all.partners + (row * (i64)NEAR_KINDS + kind) * NEAR_KEPT; }

  // The kinds, as bits, for which `other` would be a new partner.
  u32 wanted_kinds(u32 other) const {
    u32 kinds = all.splits[row] == all.splits[other] ? 1 : 2, wanted = 0;
    if (all.labels[row] >= 0 && all.labels[other] >= 0 && all.labels[row] != all.labels[other]) kinds |= 4;
    for (int kind = 0; kind < NEAR_KINDS; kind++) {
      const u32 *kept = partners(kind);
      if (!(kinds >> kind & 1) || kept[NEAR_KEPT - 1] <= other) continue;
      bool is_kept = false;
      for (int k = 0; k < NEAR_KEPT; k++) is_kept |= kept[k] == other;
      if (!is_kept) wanted |= 1u << kind;
    }
    return wanted;
  }

  // True if no partner from `other` on is wanted, for all kinds.
  bool is_full(u32 other) const {
    bool is_full = true;
    for (int kind = 0; kind < NEAR_KINDS; kind++) is_full &= !all.kinds[kind] || partners(kind)[NEAR_KEPT - 1] <= other;
    return is_full;
  }

  void insert(u32 wanted, u32 other) const {
    for (int kind = 0; kind < NEAR_KINDS; kind++) {
      if (!(wanted >> kind & 1)) continue;
      u32 *kept = partners(kind);
      int k = NEAR_KEPT - 1;
      for (; k > 0 && kept[k - 1] > other; k--) kept[k] = kept[k - 1];
      kept[k] = other;
    }
  }

  // True if either image explains the other: an image may be a crop of the other one.
  bool are_alike(u32 other, int flip) const {
    if (all.signature_bytes == 0) return true;
    const u8 *mine = all.signatures + row * all.signature_bytes, *its = all.signatures + other * all.signature_bytes;
    return unlikeness(mine, its, flip) <= most_unlike || unlikeness(its, mine, flip) <= most_unlike;
  }

  bool has_failed() const { return all.failures[row] >= MOST_FAILURES; }

  // Adds partners among the near ones of `number` hashes from `at` on; returns whether later hashes can be partners.
  bool take_partners(i64 at, i64 number, u32 near, int flip) const {
    for (i64 k = 0; k < number; k++) {
      if (!(near >> k & 1)) continue;
      const u32 other = all.rows[at + k];
      if (other >= row) continue;
      const u32 wanted = wanted_kinds(other);
      if (!wanted) {
        if (is_full(other)) return false;
      } else if (are_alike(other, flip)) {
        insert(wanted, other);
      } else {
        all.failures[row]++;
        if (has_failed()) return false;
      }
    }
    return true;
  }

  // The same for each flip; near[k]: near hashes of flip k.
  VG_NOINLINE bool take_flips(i64 at, i64 number, const u32 *near, i64 flips) const {
    bool goes_on = true;
    for (i64 k = 0; k < flips; k++)
      if (near[k]) goes_on &= take_partners(at, number, near[k], all.flips[k]);
    return goes_on;
  }

  // Compares `mine` with hashes start..stop of one value, at most `left` of them.
  void search(u64 mine, i64 start, i64 stop, i64 &left) const {
    const bool is_long = stop - start > LONG;
    const i64 until = min_of(stop, start + left), flips = min_of(all.num_flips, FLIPS), distance = all.distance;
    const u64 *hashes = all.hashes;
    u64 flipped[FLIPS];
    for (i64 k = 0; k < flips; k++) flipped[k] = mine ^ all.inverted[k];
    i64 at = start;
    for (; at < until; at += HASH_GROUP) {
      if (is_long && all.rows[at] >= row) break;
      u32 near[FLIPS], any = 0;
      for (i64 k = 0; k < flips; k++) any |= near[k] = near_hashes(hashes + at, flipped[k], distance);
      if (any == 0 || take_flips(at, min_of<i64>(HASH_GROUP, until - at), near, flips)) continue;
      if (has_failed()) left = 0;
      break;
    }
    left -= at - start;
  }
};

// Searches `count` queries from `first` on, which share one value of the hash's part.
void search_value(const HashSearch &all, u64 value, i64 first, i64 count, i64 *left, f64 most_unlike) {
  for (i64 m = 0; m < all.num_masks; m++) {
    const i64 near = (i64)(value ^ all.masks[m]), start = all.starts[near], stop = all.starts[near + 1];
    if (start == stop) continue;
    for (i64 i = 0; i < count; i++) {
      const ImageSearch image = {all, most_unlike, all.query_rows[first + i]};
      image.search(all.query_hashes[first + i], start, stop, left[i]);
    }
  }
}

}  // namespace

// Writes partners of the images of queries begin..end. No other call may write to these images.
VG_EXPORT i64 VG_ENTRY(vg_search_hashes)(const HashSearch *all, i64 begin, i64 end, f64 most_unlike) {
  Buffer<i64> left;
  if (!left.reserve(end - begin)) return OUT_OF_MEMORY;
  for (i64 i = 0; i < end - begin; i++) left[i] = all->most_compared;
  auto value_of = [&](u64 hash) { return hash >> all->shift & (u64)(all->values - 1); };
  for (i64 first = begin; first < end;) {
    const u64 value = value_of(all->query_hashes[first]);
    i64 last = first + 1;
    while (last < end && value_of(all->query_hashes[last]) == value) last++;
    search_value(*all, value ^ value_of(all->inverted[0]), first, last - first, left.at + first - begin, most_unlike);
    first = last;
  }
  return OK;
}

// Sets `first`, initially each image itself, to the first image of its group. Groups are connected by `partners`,
// [images, NEAR_KEPT].
VG_EXPORT void VG_ENTRY(vg_find_first_alike)(const u32 *partners, i64 images, i64 *first) {
  for (i64 row = 0; row < images; row++) {
    const u32 *kept = partners + row * NEAR_KEPT;
    for (int k = 0; k < NEAR_KEPT && kept[k] != NOBODY; k++) {
      if (first[kept[k]] != kept[k]) continue;
      first[row] = kept[k];
      break;
    }
  }
}

}  // namespace vg::VG_LEVEL
