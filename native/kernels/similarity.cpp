// Comparison of two small pictures by a least-squares fit of six parameters, repeated once without outliers.
#include "similarity.h"

namespace vg::VG_LEVEL {
namespace {

constexpr int SIDE = SIGNATURE_SIDE, CHROMA = SIGNATURE_CHROMA_SIDE;
constexpr int LUMA_BYTES = SIDE * SIDE, CHROMA_BYTES = 2 * CHROMA * CHROMA;
constexpr int TERMS = 6;
// Difference in pixel values that images which look alike may have.
constexpr f64 NOISE = 1.0;
// Small pictures with a smaller standard deviation are blank; these are alike if their mean colors differ by less than
// SAME_COLOR.
constexpr f64 BLANK = 1.5, SAME_COLOR = 3;
// Limits of mean Cb and Cr: for gray images; for the difference of two images; for that difference relative to their
// sum.
constexpr f64 GRAY = 1.5, HUES = 5.0, HUES_PART = 0.35;
// The second fit excludes pixels whose residual exceeds this many standard deviations.
constexpr f64 OUTLIER = 2.0;

// Numbers per row of the system, the width of the widest vectors: six terms, the value, and a zero.
constexpr int WIDTH = 8;
typedef f64 SystemRow __attribute__((vector_size(8 * WIDTH)));

// Index in the picture of pixel (v, u) of the flipped picture.
VG_INLINE int flipped_index(int v, int u, int flip, int side) {
  return (flip & 2 ? side - 1 - v : v) * side + (flip & 1 ? side - 1 - u : u);
}

// Calls compare(a, b) with the bytes of Cb and Cr of both.
template <class Compare> VG_INLINE void for_each_chroma(const u8 *one, const u8 *other, int flip, Compare compare) {
  for (int begin = LUMA_BYTES; begin < LUMA_BYTES + CHROMA_BYTES; begin += CHROMA * CHROMA)
    for (int v = 0; v < CHROMA; v++)
      for (int u = 0; u < CHROMA; u++)
        compare(one[begin + flipped_index(v, u, flip, CHROMA)], other[begin + v * CHROMA + u]);
}

int greatest_chroma_difference(const u8 *one, const u8 *other, int flip) {
  int greatest = 0;
  for_each_chroma(one, other, flip, [&](int a, int b) { greatest = max_of(greatest, abs(a - b)); });
  return greatest;
}

// True if the colors differ by much, both absolutely and relative to their saturation. A gray image may be a copy of an
// image of any color.
bool have_other_hues(const u8 *one, const u8 *other, int flip) {
  int strength = 0, strength_other = 0, difference = 0;
  for_each_chroma(one, other, flip, [&](int a, int b) {
    strength += abs(a - 128);
    strength_other += abs(b - 128);
    difference += abs(a - b);
  });
  if (min_of(strength, strength_other) < GRAY * CHROMA_BYTES) return false;
  return difference > max_of(HUES * CHROMA_BYTES, HUES_PART * (strength + strength_other));
}

// The fit of a picture to another one.
struct Fit {
  f64 picture[LUMA_BYTES];
  f64 rest[LUMA_BYTES];
  SystemRow system[TERMS];

  // Terms of brightness, contrast, translation and scale: 1, the picture, its slopes, its slopes times the position.
  SystemRow terms_at(f64 mean, int v, int u) const {
    const f64 *at = picture + v * SIDE + u;
    const f64 middle = (SIDE - 1) / 2.0;
    const f64 across = (at[1] - at[-1]) * 0.5, down = (at[SIDE] - at[-SIDE]) * 0.5;
    return SystemRow{1.0, at[0] - mean, across, across * (u - middle) / middle, down, down * (v - middle) / middle};
  }

  // Adds up the equations of all pixels whose residual is within the limit.
  void add_equations(f64 mean, const u8 *other, f64 mean_other, f64 limit) {
    SystemRow sums[TERMS] = {};
    for (int v = 1; v < SIDE - 1; v++) {
      for (int u = 1; u < SIDE - 1; u++) {
        const int at = v * SIDE + u;
        if (limit < INFINITY && fabs(rest[at]) > limit) continue;
        SystemRow row = terms_at(mean, v, u);
        const SystemRow terms = row;
        row[TERMS] = (f64)other[at] - mean_other;
        for (int i = 0; i < TERMS; i++) sums[i] += terms[i] * row;
      }
    }
    memcpy(system, sums, sizeof system);
  }

  // Solves the symmetric equations by elimination; number TERMS of each row becomes the solution. Undetermined
  // parameters become 0.
  void solve() {
    for (int i = 0; i < TERMS; i++)
      for (int j = 0; j < i; j++) system[i][j] = system[j][i];
    for (int i = 0; i < TERMS; i++) {
      const f64 least = 1e-9 * (fabs(system[i][i]) + 1.0);
      for (int k = 0; k < i; k++) {
        const f64 pivot = system[k][k];
        if (pivot == 0.0) continue;
        const f64 factor = system[i][k] / pivot;
        for (int j = k; j <= TERMS; j++) system[i][j] -= factor * system[k][j];
      }
      if (system[i][i] <= least) system[i][i] = 0.0;
    }
    for (int i = TERMS - 1; i >= 0; i--) {
      f64 value = system[i][TERMS];
      for (int j = i + 1; j < TERMS; j++) value -= system[i][j] * system[j][TERMS];
      system[i][TERMS] = system[i][i] != 0.0 ? value / system[i][i] : 0.0;
    }
  }

  // Computes all residuals, and the limit for the next inliers; returns the unexplained part of `other`.
  f64 add_residuals(f64 mean, const u8 *other, f64 mean_other, f64 &limit) {
    f64 square = 0.0, seen = 0.0, square_seen = 0.0, solution[TERMS];
    i64 inliers = 0;
    for (int i = 0; i < TERMS; i++) solution[i] = system[i][TERMS];
    for (int v = 1; v < SIDE - 1; v++) {
      for (int u = 1; u < SIDE - 1; u++) {
        const int at = v * SIDE + u;
        const bool is_inlier = limit == INFINITY || fabs(rest[at]) <= limit;
        const SystemRow terms = terms_at(mean, v, u);
        const f64 level = (f64)other[at] - mean_other;
        f64 value = level;
        for (int i = 0; i < TERMS; i++) value -= terms[i] * solution[i];
        rest[at] = value;
        if (!is_inlier) continue;
        square += value * value;
        seen += level;
        square_seen += level * level;
        inliers++;
      }
    }
    const f64 left = sqrt(square / (f64)inliers), fraction = seen / (f64)inliers;
    limit = OUTLIER * left + NOISE;
    return left / (sqrt(max_of(square_seen / (f64)inliers - fraction * fraction, 0.0)) + NOISE);
  }

  // The standard deviation of the fit's residual relative to that of the same pixels of `other`. If only a small object
  // before a plain sky does not fit, the other pixels have no deviation, so nothing is alike. UNLIKE if the fit would
  // invert the picture.
  f64 compare(f64 mean, const u8 *other, f64 mean_other) {
    f64 limit = INFINITY, result = UNLIKE;
    for (int time = 0; time < 2; time++) {
      add_equations(mean, other, mean_other, limit);
      solve();
      if (system[1][TERMS] <= 0.0) return UNLIKE;
      result = add_residuals(mean, other, mean_other, limit);
    }
    return result;
  }
};

}  // namespace

f64 unlikeness(const u8 *one, const u8 *other, int flip) {
  Fit fit;
  i64 sum = 0, sum_other = 0, squares = 0, squares_other = 0;
  for (int v = 0; v < SIDE; v++) {
    for (int u = 0; u < SIDE; u++) {
      const int value = one[flipped_index(v, u, flip, SIDE)], value_other = other[v * SIDE + u];
      fit.picture[v * SIDE + u] = value;
      sum += value;
      squares += value * value;
      sum_other += value_other;
      squares_other += value_other * value_other;
    }
  }
  const f64 mean = (f64)sum / LUMA_BYTES, mean_other = (f64)sum_other / LUMA_BYTES;
  const f64 deviation = sqrt(max_of((f64)squares / LUMA_BYTES - mean * mean, 0.0));
  const f64 deviation_other = sqrt(max_of((f64)squares_other / LUMA_BYTES - mean_other * mean_other, 0.0));
  if (min_of(deviation, deviation_other) < BLANK) {
    const bool is_same =
        fabs(mean - mean_other) <= SAME_COLOR && greatest_chroma_difference(one, other, flip) <= SAME_COLOR;
    return is_same && max_of(deviation, deviation_other) < 2.0 * BLANK ? 0.0 : UNLIKE;
  }
  if (have_other_hues(one, other, flip)) return UNLIKE;
  return fit.compare(mean, other, mean_other);
}

}  // namespace vg::VG_LEVEL
