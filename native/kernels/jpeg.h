// JPEG of one quality, coded and decoded: as libjpeg-turbo does both.
#pragma once
#include "executor.h"

namespace vg {
namespace VG_LEVEL {

struct Scratch;

struct JpegScratch {
  Buffer<u8> coded;  // the image afterwards
  Buffer<u8> memory;  // what it is made in
};

// The image through a JPEG; its pixels are in the scratch. False where there is no memory.
bool code_jpeg(Image &image, int quality, Scratch &s);

}  // namespace VG_LEVEL
}  // namespace vg
