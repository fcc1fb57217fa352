// Operations that map each channel's value independently.
#pragma once
#include "constants.h"

// By opcode: true for LUT, and for the operations that lowering converts to a LUT for images of uint8.
struct Tabulated {
  bool at[MAX_OPCODE] = {};

  constexpr Tabulated() {
    constexpr int OPS[] = {Op::LUT,      Op::WINDOW,       Op::BRIGHTNESS, Op::GAMMA,    Op::POSTERIZE,
                           Op::SOLARIZE, Op::SOLARIZE_ADD, Op::INVERT,     Op::RGB_SHIFT};
    for (int op : OPS) at[op] = true;
  }
};
constexpr Tabulated IS_TABLE;
