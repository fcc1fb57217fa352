// Framework of the fuzzers, which feed mutated bytes to a parser: random numbers, mutations, main loop.
#pragma once
#include <stdio.h>

#include "../core.h"

namespace fuzz {

// A xorshift generator (Marsaglia 2003).
struct Random {
  u64 state;

  u64 next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545F4914F6CDD1D;
  }
  // A random number of 0..count - 1.
  i64 below(i64 count) { return (i64)((next() >> 33) % (u64)count); }
  bool once_in(i64 count) { return below(count) == 0; }
};

// Bytes in memory of exactly their size, so that the sanitizer reports every access outside.
struct Input {
  u8 *at;
  i64 size;

  explicit Input(i64 size) : at((u8 *)malloc((size_t)size)), size(size) {}
  Input(const u8 *bytes, i64 size) : Input(size) {
    if (size) memcpy(at, bytes, (size_t)size);
  }
  Input(const Input &) = delete;
  Input &operator=(const Input &) = delete;
  ~Input() { free(at); }
};

// Applies one mutation to the bytes before `end`: changes a byte, a number or a bit, truncates, or duplicates or
// removes bytes. `bytes` has room for 8 more bytes. Returns the new size.
inline i64 mutate(Random *random, u8 *bytes, i64 size, i64 end) {
  static const u8 ODD[] = {0, 1, 2, 3, 8, 16, 17, 32, 63, 64, 127, 128, 254, 255};
  end = min_of(end, size);
  if (end < 1) return size;
  const i64 at = random->below(end);
  const i64 count = min_of<i64>(1 + random->below(8), size - at);
  switch (random->below(16)) {
    case 0: return at;
    case 1: memmove(bytes + at, bytes + at + count, (size_t)(size - at - count)); return size - count;
    case 2: memmove(bytes + at + count, bytes + at, (size_t)(size - at)); return size + count;
    case 3: memset(bytes + at, random->once_in(2) ? 0xFF : 0, (size_t)count); return size;
    case 4:
      if (size - at >= 2) store(bytes + at, (u16)random->next());
      return size;
    case 5:
    case 6:
    case 7: bytes[at] = ODD[random->below(sizeof ODD)]; return size;
    case 8:
    case 9: bytes[at] = (u8)(bytes[at] + (random->once_in(2) ? 1 : -1)); return size;
    case 10:
    case 11:
    case 12: bytes[at] = (u8)random->next(); return size;
    default: bytes[at] ^= (u8)(1 << random->below(8)); return size;
  }
}

// Calls `one` repeatedly; command line: [iterations [seed]].
template <class F> int run(int count, char **arguments, F one) {
  const i64 iterations = count > 1 ? atoll(arguments[1]) : 100000;
  Random random = {(count > 2 ? (u64)atoll(arguments[2]) : 1) * 0x9E3779B97F4A7C15 + 1};
  for (i64 i = 0; i < iterations; i++) one(&random);
  printf("%lld inputs\n", (long long)iterations);
  return 0;
}

inline void expect(bool condition, const char *text) {
  if (condition) return;
  fprintf(stderr, "expected: %s\n", text);
  abort();
}

}  // namespace fuzz
