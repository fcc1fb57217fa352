// JPEG compression and decompression at one quality, as libjpeg-turbo does both. Definition: tests/oracle/codec.py.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

// Quantization steps of 8 x 8 coefficients, repeated for all blocks in a register. Two multiplications divide a
// coefficient and round half up: (|c| + half) * reciprocal * scale.
struct QuantTable {
  u16 half[8][32], reciprocal[8][32], scale[8][32], step[8][32];
};

struct JpegScratch {
  int quality;  // of `tables`; 0 before the first call
  QuantTable tables[2];  // of luma and of chroma
  Buffer<u8> coded;  // the image afterwards
  Buffer<u8> memory;  // planes, and rows of planes
};

// Replaces the image by its JPEG-compressed pixels, in the scratch. False if there is no memory.
bool code_jpeg(Image &image, int quality, Scratch &s);

}  // namespace vg::VG_LEVEL
