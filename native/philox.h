// Philox4x32-10 (Salmon et al., SC'11) of one counter. See variegate/program/rng.py. Counterparts:
// kernels/philox_lanes.h for many counters, `philox` in executors/cuda/kernels/values.py, tests/oracle/philox.py.
#pragma once
#include "constants.h"

namespace vg {

struct PhiloxWords {
  u32 at[4];
};

// The four words of a counter (index, slot, id_low, id_high) under a key.
VG_INLINE PhiloxWords philox4x32(PhiloxWords counter, u32 key0, u32 key1) {
  u32 c0 = counter.at[0], c1 = counter.at[1], c2 = counter.at[2], c3 = counter.at[3];
  for (int round = 0; round < PHILOX_ROUNDS; round++) {
    const u64 product0 = (u64)c0 * (u32)PHILOX_M0, product1 = (u64)c2 * (u32)PHILOX_M1;
    c0 = (u32)(product1 >> 32) ^ c1 ^ key0;
    c1 = (u32)product1;
    c2 = (u32)(product0 >> 32) ^ c3 ^ key1;
    c3 = (u32)product0;
    key0 += (u32)PHILOX_W0;
    key1 += (u32)PHILOX_W1;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace vg
