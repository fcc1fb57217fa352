// Operations on the levels of each channel by itself.
#pragma once
#include "constants.h"

// By opcode: true for LUT and, of images of 256 levels, the operations that lowering makes one.
struct Tabulated {
  bool at[MAX_OPCODE] = {};

  constexpr Tabulated() {
    constexpr int OPS[] = {Op::LUT,      Op::BRIGHTNESS,   Op::GAMMA,  Op::POSTERIZE,
                           Op::SOLARIZE, Op::SOLARIZE_ADD, Op::INVERT, Op::RGB_SHIFT};
    for (int op : OPS) at[op] = true;
  }
};
constexpr Tabulated IS_TABLE;
