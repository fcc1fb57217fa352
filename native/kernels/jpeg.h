// JPEG of one quality, coded and decoded: as libjpeg-turbo does both.
#pragma once
#include "executor.h"

namespace vg::VG_LEVEL {

struct Scratch;

// Steps of 8 x 8 coefficients, repeated for as many blocks as a register holds. A coefficient is divided, and rounded
// half up, by two products: (|c| + half) * reciprocal * scale.
struct QuantTable {
  u16 half[8][32], reciprocal[8][32], scale[8][32], step[8][32];
};

struct JpegScratch {
  int quality;  // that the tables are of, or 0
  QuantTable tables[2];  // of luma and of chroma
  Buffer<u8> coded;  // the image afterwards
  Buffer<u8> memory;  // planes, and rows of planes
};

// The image through a JPEG; its pixels are in the scratch. False if there is no memory.
bool code_jpeg(Image &image, int quality, Scratch &s);

}  // namespace vg::VG_LEVEL
