// Headers of many JPEG files at once. Only plain files are read: all that variegate/decode/header.py would have to look
// at more closely is left to it.
#include "../constants.h"
#include "segments.h"

namespace vg::jpeg {
namespace {

// The end marker is looked for in the last bytes of a file.
constexpr i64 TAIL = 64;
// Bytes that are searched before the search may stop: GCC makes vector code of it.
constexpr i64 PIECE = 512;

// EXIF's tag in either byte order, or the beginning of XMP's "Orientation".
bool may_be_oriented(const Segment &segment) {
  for (i64 i = 0; i + 1 < segment.size; i++) {
    const i64 word = read_u16(segment.body + i);
    if (word == 0x0112 || word == 0x1201 || word == 0x4F72) return true;
  }
  return false;
}

bool starts_with(const Segment &segment, const char *text, i64 size) {
  return segment.size >= size && !memcmp(segment.body, text, (size_t)size);
}

// Another scan, or a table, from `begin` on.
bool has_more_scans(Bytes file, i64 begin) {
  while (begin < file.size - 1) {
    const i64 count = min_of(PIECE, file.size - 1 - begin);
    const u8 *bytes = file.at + begin;
    u8 found = 0;
    for (i64 i = 0; i < count; i++) {
      found |= (u8)(bytes[i] == 0xFF) & ((u8)(bytes[i + 1] == SOS) | (u8)(bytes[i + 1] == DHT));
    }
    if (found) return true;
    begin += count;
  }
  return false;
}

bool has_end(Bytes file) {
  for (i64 i = max_of<i64>(0, file.size - TAIL); i + 1 < file.size; i++) {
    if (read_u16(file.at + i) == (0xFF00 | EOI)) return true;
  }
  return false;
}

// Bytes of coefficients that libjpeg keeps for a picture in several scans: two for each sample, blocks filled up.
i64 coefficient_bytes(const Frame &frame) {
  i64 across = 1, down = 1, blocks = 0;
  for (i64 i = 0; i < frame.components; i++) {
    across = max_of(across, frame.across(i));
    down = max_of(down, frame.down(i));
    blocks += frame.across(i) * frame.down(i);
  }
  const i64 columns = ceil_div(frame.width, 8 * across), rows = ceil_div(frame.height, 8 * down);
  return 128 * columns * rows * blocks;
}

// Of gray and YCbCr frames of 8 bits. False for all others.
bool describe(Bytes file, const Frame &frame, const Segment &scan, JpegHead *head) {
  const i64 components = frame.components;
  if (!frame.at || (components != 1 && components != 3) || frame.precision != 8 || scan.size < 1) return false;
  // Files without Adobe's segment may name their components instead.
  if (components == 3 && frame.id(0) == 'R' && frame.id(1) == 'G' && frame.id(2) == 'B') return false;
  i64 kept = 0;
  if (frame.is_progressive || scan.body[0] != components || has_more_scans(file, scan.at + 2)) {
    kept = coefficient_bytes(frame);
    if (!kept) return false;
  }
  i64 down = 1;
  for (i64 i = 0; components > 1 && i < components; i++) down = max_of(down, frame.down(i));
  *head = {frame.height, frame.width, components, frame.at + 5, 8 * down, kept, has_end(file)};
  return true;
}

// False for a segment that makes a file odd.
bool is_plain(const Segment &segment, bool *has_exif) {
  const int marker = segment.marker;
  if (marker == APP0) {
    // "JFIF" of a version that never was.
    if (segment.size < 6) return false;
    return !starts_with(segment, "JF", 2) || (segment.body[5] >= 1 && segment.body[5] <= 2);
  }
  if (marker == APP1) {
    // Pillow joins the parts of EXIF that comes in several.
    const bool is_exif = starts_with(segment, "Exif", 4), is_first = !*has_exif;
    *has_exif |= is_exif;
    return !(is_exif && !is_first) && !may_be_oriented(segment);
  }
  // Adobe's: its last byte is 0 for RGB and CMYK.
  if (marker == APP14) return segment.size >= 12 && segment.body[11] != 0;
  return marker >= RST0 || marker == DHT;
}

bool read_head(Bytes file, JpegHead *head) {
  if (file.size < 4 || read_u16(file.at) != 0xFFD8) return false;
  Frame frame;
  Segment segment;
  bool has_exif = false;
  for (i64 at = 2; read_segment(file, at, &segment); at = segment.end()) {
    if (segment.marker == SOS) return describe(file, frame, segment, head);
    if (segment.marker <= SOF2 ? !read_frame(segment, &frame) : !is_plain(segment, &has_exif)) return false;
  }
  return false;
}

bool is_within(const JpegHead &head, i64 max_side, i64 max_pixels, i64 max_bytes) {
  const i64 pixels = head.height * head.width;
  return pixels > 0 && pixels <= max_pixels && 3 * pixels + head.coefficient_bytes <= max_bytes &&
         max_of(head.height, head.width) <= max_side;
}

}  // namespace

// The header of each file; zeros for files that are not plain or go beyond a limit.
VG_EXPORT void vg_jpeg_heads(const u8 *const *files, const i64 *sizes, i64 count, i64 max_side, i64 max_pixels,
                             i64 max_bytes, JpegHead *heads) {
  for (i64 i = 0; i < count; i++) {
    JpegHead head;
    const bool is_plain = read_head({files[i], sizes[i]}, &head);
    heads[i] = is_plain && is_within(head, max_side, max_pixels, max_bytes) ? head : JpegHead{};
  }
}

}  // namespace vg::jpeg
