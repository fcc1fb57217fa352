// XXH64 of bytes (Yann Collet, https://xxhash.com), with seed 0: the key that identifies the content of files.
#pragma once
#include "core.h"

namespace vg {
namespace xxh64 {

constexpr u64 P1 = 0x9E3779B185EBCA87, P2 = 0xC2B2AE3D27D4EB4F, P3 = 0x165667B19E3779F9, P4 = 0x85EBCA77C2B2AE63,
              P5 = 0x27D4EB2F165667C5;

VG_INLINE u64 rotate(u64 value, int by) { return value << by | value >> (64 - by); }
VG_INLINE u64 mix(u64 lane, u64 word) { return rotate(lane + word * P2, 31) * P1; }

}  // namespace xxh64

inline u64 hash_bytes(const u8 *data, i64 size) {
  using namespace xxh64;
  const u8 *at = data, *const end = data + size;
  u64 hash = P5;
  if (size >= 32) {
    u64 lanes[4] = {P1 + P2, P2, 0, 0 - P1};
    for (; end - at >= 32; at += 32) {
      for (int i = 0; i < 4; i++) lanes[i] = mix(lanes[i], load<u64>(at + 8 * i));
    }
    hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
    for (u64 lane : lanes) hash = (hash ^ mix(0, lane)) * P1 + P4;
  }
  hash += (u64)size;
  for (; end - at >= 8; at += 8) hash = rotate(hash ^ mix(0, load<u64>(at)), 27) * P1 + P4;
  if (end - at >= 4) {
    hash = rotate(hash ^ load<u32>(at) * P1, 23) * P2 + P3;
    at += 4;
  }
  for (; at < end; at++) hash = rotate(hash ^ *at * P5, 11) * P1;
  hash = (hash ^ hash >> 33) * P2;
  hash = (hash ^ hash >> 29) * P3;
  return hash ^ hash >> 32;
}

}  // namespace vg
