// Interpreter of pixel functions: runs a record (variegate/program/pixel_functions.py) on a row of pixels, in float32.
//
// An instruction is a loop over a block of pixels, whose registers stay in the first-level cache. Values that are equal
// for all pixels (constants, the magnitude, and functions of these) are scalars. GPU counterpart:
// executors/cuda/pixel_functions.py; definition: tests/oracle/pixel_functions.py.
#include "pixel_functions.h"
#include "arithmetic.h"
#include "lanes.h"

namespace vg::VG_LEVEL {
namespace {

// Pixels are processed in multiples of this, so that loops need no remainder.
constexpr i64 STEP = 2 * LANES;

// Otherwise GCC does not inline the lambdas of such a long switch, and calls them for each pixel.
#define VG_LAMBDA __attribute__((always_inline))

struct Pixels {
  const f32 *at;

  VG_MEMBER f32 operator[](i64 i) const { return at[i]; }
};

struct Shared {
  f32 value;

  VG_MEMBER f32 operator[](i64) const { return value; }
};

struct Machine {
  i64 num_numbers, block;
  f32 *numbers, *registers;  // [num_registers, block]
  i64 steps;  // of STEP pixels each

  VG_MEMBER bool is_number(i64 index) const { return index < num_numbers; }
  VG_MEMBER f32 *pixels(i64 index) const { return registers + (index - num_numbers) * block; }
  // Calls function(operand) with Pixels or Shared.
  template <class F> VG_MEMBER void with(i64 index, F function) const {
    if (is_number(index)) {
      function(Shared{numbers[index]});
    } else {
      function(Pixels{pixels(index)});
    }
  }
  // to[i] = compute(i) for all pixels. `to` may be an operand, because each pixel is read before it is written.
  template <class F> VG_MEMBER void store(i64 to, F compute) const {
    f32 *const at = pixels(to);
    const i64 n = steps * STEP;
#pragma GCC ivdep
    for (i64 i = 0; i < n; i++) at[i] = compute(i);
  }
};

template <class F> VG_INLINE void compute_one(const Machine &machine, const DrawInstruction &in, F function) {
  if (machine.is_number(in.to)) {
    machine.numbers[in.to] = function(machine.numbers[in.a]);
    return;
  }
  const f32 *a = machine.pixels(in.a);
  machine.store(in.to, [=](i64 i) VG_LAMBDA { return function(a[i]); });
}

template <class F> VG_INLINE void compute_two(const Machine &machine, const DrawInstruction &in, F function) {
  if (machine.is_number(in.to)) {
    machine.numbers[in.to] = function(machine.numbers[in.a], machine.numbers[in.b]);
    return;
  }
  machine.with(in.a, [&](auto a) VG_LAMBDA {
    machine.with(
        in.b, [&](auto b) VG_LAMBDA { machine.store(in.to, [=](i64 i) VG_LAMBDA { return function(a[i], b[i]); }); });
  });
}

template <class F> VG_INLINE void compute_three(const Machine &machine, const DrawInstruction &in, F function) {
  if (machine.is_number(in.to)) {
    machine.numbers[in.to] = function(machine.numbers[in.a], machine.numbers[in.b], machine.numbers[in.c]);
    return;
  }
  machine.with(in.a, [&](auto a) VG_LAMBDA {
    machine.with(in.b, [&](auto b) VG_LAMBDA {
      machine.with(in.c, [&](auto c) VG_LAMBDA {
        machine.store(in.to, [=](i64 i) VG_LAMBDA { return function(a[i], b[i], c[i]); });
      });
    });
  });
}

#define VG_COMPUTE_ONE(NAME, VALUE) \
  case DrawOp::NAME: compute_one(machine, in, [](f32 a) VG_LAMBDA -> f32 { return (f32)(VALUE); }); break;
#define VG_COMPUTE_TWO(NAME, VALUE) \
  case DrawOp::NAME: compute_two(machine, in, [](f32 a, f32 b) VG_LAMBDA -> f32 { return (f32)(VALUE); }); break;
#define VG_COMPUTE_THREE(NAME, VALUE)                                                              \
  case DrawOp::NAME:                                                                               \
    compute_three(machine, in, [](f32 a, f32 b, f32 c) VG_LAMBDA -> f32 { return (f32)(VALUE); }); \
    break;

void run(const Machine &machine, const DrawInstruction *code, i64 begin, i64 end) {
  for (i64 pc = begin; pc < end; pc++) {
    const DrawInstruction &in = code[pc];
    switch (in.op) {
      VG_OF_ONE(VG_COMPUTE_ONE)
      VG_OF_TWO(VG_COMPUTE_TWO)
      VG_OF_THREE(VG_COMPUTE_THREE)
    }
  }
}

void load_pixels(const Machine &machine, const u8 *plane, i64 to) {
  f32 *const at = machine.pixels(to);
  for (i64 i = 0; i < machine.steps * STEP; i += LANES) store(at + i, to_floats(load_bytes(plane + i)));
}

void run_record(const PixelFunction &function, Planes planes, Range columns, f32 magnitude) {
  alignas(64) f32 registers[PIXEL_FUNCTION_FLOATS], numbers[MAX_PIXEL_FUNCTION_NUMBERS];
  const i64 block = PIXEL_FUNCTION_FLOATS / function.num_registers / BLOCK * BLOCK;
  Machine machine = {function.num_numbers, block, numbers, registers, 0};
  for (i64 i = 0; i < function.num_constants; i++) numbers[i] = function.constants[i];
  numbers[function.num_constants] = magnitude;
  run(machine, function.code, 0, function.num_numeric);
  const i64 results[] = {function.red, function.green, function.blue};
  for (i64 first = columns.first; first < columns.end; first += block) {
    u8 *const plane[] = {planes[0] + first, planes[1] + first, planes[2] + first};
    const i64 size = min_of(block, columns.end - first);
    machine.steps = ceil_div(size, STEP);
    for (int c = 0; c < 3; c++) load_pixels(machine, plane[c], function.num_numbers + c);
    run(machine, function.code, function.num_numeric, function.length);
    store_columns(plane, {0, size}, [&](i64 x, Halves *out) {
      for (int c = 0; c < 3; c++) {
        Ints rounded[2];
        for (int half = 0; half < 2; half++) {
          Floats values;
          if (machine.is_number(results[c])) {
            values = all_floats(numbers[results[c]]);
          } else {
            values = load<Floats>(machine.pixels(results[c]) + x + half * LANES);
          }
          rounded[half] = round_to_byte(values);
        }
        out[c] = pack(rounded[0], rounded[1]);
      }
    });
  }
}

}  // namespace

void apply_pixel_function(const PixelFunction &function, Planes planes, Range columns, f32 magnitude) {
  if (!function.compiled) return run_record(function, planes, columns, magnitude);
  const auto row = (void (*)(u8 *, u8 *, u8 *, i64, f32))function.compiled;
  const i64 first = columns.first;
  row(planes[0] + first, planes[1] + first, planes[2] + first, columns.size(), magnitude);
}

}  // namespace vg::VG_LEVEL
