// Headers of JPEG files, read as leniently as libjpeg reads them: bytes between segments are skipped.
#include "../constants.h"
#include "segments.h"

namespace vg::jpeg {
namespace {

// The end marker is searched in this many last bytes of a file.
constexpr i64 TAIL = 64;
// Bytes searched without an early exit, so that GCC vectorizes the loop.
constexpr i64 PIECE = 512;
constexpr int TEM = 0x01;
constexpr int JPG = 0xC8, DAC = 0xCC;

bool is_frame(int marker) {
  return marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG && marker != DAC;
}

// True for markers without a segment.
bool is_standalone(int marker) { return marker == 0 || marker == TEM || (marker >= RST0 && marker < EOI); }

// True if the bytes of the file from `at` on begin with the text of `size` bytes.
bool starts_with(Bytes file, i64 at, const char *text, i64 size) {
  return at + size <= file.size && !memcmp(file.at + at, text, (size_t)size);
}

// True if metadata contain EXIF's orientation tag in either byte order, or XMP's name of it: a hint that the image may
// have to be rotated.
bool mentions_orientation(Bytes metadata) {
  static const char NAME[] = "Orientation";
  for (i64 i = 0; i + 1 < metadata.size; i++) {
    const i64 word = read_u16(metadata.at + i);
    if (word == 0x0112 || word == 0x1201) return true;
    if (word == 0x4F72 && starts_with(metadata, i, NAME, sizeof NAME - 1)) return true;
  }
  return false;
}

// True if another scan, or a table, follows `begin`.
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

// Parser of the segments before the first scan.
struct Header {
  int frame_marker = 0;
  i64 frame = 0, scan = 0;  // offsets of the markers; 0 if not found
  bool has_exif = false, may_be_oriented = false, is_rgb = false, is_odd = false;

  void read(Bytes file, int marker, i64 at, i64 length) {
    const i64 body = at + 4;
    if (is_frame(marker)) {
      is_odd |= frame > 0;
      frame = at;
      frame_marker = marker;
    } else if (marker == APP0 && starts_with(file, body, "JFIF", 5)) {
      // A version that JFIF never had.
      const int version = body + 5 < file.size ? file.at[body + 5] : 0;
      is_odd |= version < 1 || version > 2;
    } else if (marker == APP1) {
      const Bytes metadata = {file.at + body, max_of<i64>(0, min_of(file.size, at + 2 + length) - body)};
      const bool is_exif = starts_with(metadata, 0, "Exif", 4);
      // Pillow concatenates several EXIF segments.
      may_be_oriented |= mentions_orientation(metadata) || (has_exif && is_exif);
      has_exif |= is_exif;
    } else if (marker == APP14 && starts_with(file, body, "Adobe", 5)) {
      // 0: RGB, or CMYK.
      is_rgb |= body + 11 < file.size && file.at[body + 11] == 0;
    } else if (marker == SOS) {
      scan = at;
    }
  }
};

Header read_segments(Bytes file) {
  Header header;
  i64 at = 2;
  while (at + 4 <= file.size && !header.scan) {
    const int marker = file.at[at + 1];
    if (file.at[at] != 0xFF) {
      at++;
      header.is_odd = true;
    } else if (marker == 0xFF) {
      at++;  // a fill byte, which a marker may have
    } else if (is_standalone(marker)) {
      at += 2;
      header.is_odd = true;
    } else if (marker == EOI) {
      break;
    } else {
      const i64 length = read_u16(file.at + at + 2);
      header.read(file, marker, at, length);
      at += 2 + length;
    }
  }
  return header;
}

int read_head(Bytes file, JpegHead *head) {
  *head = {};
  if (!starts_with(file, 0, "\xFF\xD8\xFF", 3)) return JpegStatus::NOT_JPEG;
  const Header header = read_segments(file);
  if (!header.frame || !header.scan) return JpegStatus::NO_SCAN;
  const u8 *frame = file.at + header.frame;
  if (header.frame + 10 > file.size) return JpegStatus::CUT_FRAME;
  const i64 components = frame[9];
  const bool is_whole = header.frame + 10 + 3 * components <= file.size && header.scan + 5 <= file.size;
  if (components == 0 || !is_whole) return JpegStatus::NO_COMPONENTS;
  i64 down = 1;
  // With a single component, an MCU is one block, independent of its sampling factors.
  for (i64 i = 0; components > 1 && i < components; i++) down = max_of<i64>(down, frame[11 + 3 * i] & 15);
  // Files without an Adobe segment may declare RGB by their component ids.
  const bool is_rgb = header.is_rgb || (components == 3 && frame[10] == 'R' && frame[13] == 'G' && frame[16] == 'B');
  const bool is_ycc = (components == 1 || components == 3) && !is_rgb;
  const bool is_single_scan = header.frame_marker <= SOF1 && file.at[header.scan + 4] == components;
  head->height = read_u16(frame + 5);
  head->width = read_u16(frame + 7);
  head->components = components;
  head->height_offset = header.frame + 5;
  head->mcu_height = 8 * down;
  head->is_sequential = is_single_scan && !has_more_scans(file, header.scan + 2);
  head->is_ordinary = header.frame_marker <= SOF2 && frame[4] == 8 && is_ycc && !header.is_odd;
  head->may_be_oriented = header.may_be_oriented;
  head->is_complete = has_end(file);
  return JpegStatus::OK;
}

}  // namespace

// Reads the header of each file. All fields except the status are 0 if the status is not OK.
VG_EXPORT void vg_jpeg_heads(const u8 *const *files, const i64 *sizes, i64 count, JpegHead *heads) {
  for (i64 i = 0; i < count; i++) heads[i].status = read_head({files[i], sizes[i]}, heads + i);
}

}  // namespace vg::jpeg
