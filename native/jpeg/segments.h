// Segments of a JPEG before its first scan, and its frame header. Nothing is read beyond the file's bytes.
#pragma once
#include "../core.h"

namespace vg::jpeg {

enum Marker : int {
  SOF0 = 0xC0,
  SOF1 = 0xC1,
  SOF2 = 0xC2,
  DHT = 0xC4,
  SOF15 = 0xCF,
  RST0 = 0xD0,
  EOI = 0xD9,
  SOS = 0xDA,
  DRI = 0xDD,
  APP0 = 0xE0,
  APP1 = 0xE1,
  APP13 = 0xED,
  APP14 = 0xEE,
  APP15 = 0xEF,
  COM = 0xFE,
};

VG_INLINE i64 read_u16(const u8 *at) { return at[0] << 8 | at[1]; }

// A file in memory.
struct Bytes {
  const u8 *at;
  i64 size;
};

struct Segment {
  i64 at;  // of the marker in the file
  int marker;
  const u8 *body;  // after the two bytes of the length
  i64 size;        // of the body
  i64 end() const { return at + 4 + size; }
};

// Reads the segment that begins at `at`. False for bytes between segments, fill bytes, markers without a segment, or if
// the file ends first.
inline bool read_segment(Bytes file, i64 at, Segment *segment) {
  if (at + 4 > file.size) return false;
  const u8 *head = file.at + at;
  const int marker = head[1];
  if (head[0] != 0xFF || marker < SOF0 || (marker >= RST0 && marker <= EOI) || marker == 0xFF) return false;
  const i64 length = read_u16(head + 2);
  if (length < 2 || length > file.size - at - 2) return false;
  *segment = {at, marker, head + 4, length - 2};
  return true;
}

// Header of a frame; `at` is 0 if none was read yet.
struct Frame {
  i64 at = 0;
  bool is_progressive = false;
  int precision = 0;
  i64 height = 0, width = 0;
  i64 components = 0;
  const u8 *of_component = nullptr;  // three bytes each: id, sampling factors, quantization table

  int id(i64 i) const { return of_component[3 * i]; }
  i64 across(i64 i) const { return of_component[3 * i + 1] >> 4; }
  i64 down(i64 i) const { return of_component[3 * i + 1] & 15; }
};

// Reads a frame header. False if there was a frame before, or the segment's length does not match its components.
inline bool read_frame(const Segment &segment, Frame *frame) {
  const u8 *body = segment.body;
  if (frame->at || segment.size < 6 || segment.size != 6 + 3 * body[5]) return false;
  frame->at = segment.at;
  frame->is_progressive = segment.marker == SOF2;
  frame->precision = body[0];
  frame->height = read_u16(body + 1);
  frame->width = read_u16(body + 3);
  frame->components = body[5];
  frame->of_component = body + 6;
  return true;
}

}  // namespace vg::jpeg
