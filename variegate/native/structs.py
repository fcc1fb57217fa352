"""Arguments of the native library: structs of 64-bit words, whose C++ twins ``native/constants.py`` writes."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from variegate.arrays import Int64Array
from variegate.native.library import data_ptr


class Storage(IntEnum):
    """Layouts in which rows of a pass are stored: planes for a filter, or a result."""

    PLANES = 0
    BYTES_HWC = 1
    BYTES_CHW = 2
    FLOATS_CHW = 3
    FLOATS_HWC = 4


class PointState(IntEnum):
    """Fates of a key point."""

    LEFT_IMAGE = 0
    """Some step moved it out of the image."""
    ERASED = 1
    """It is in the image, where something was erased."""
    SEEN = 2


class JpegRefusal(IntEnum):
    """Why a JPEG has no entry points into its Huffman code."""

    NONE = 0
    NOT_BASELINE = 1
    SEVERAL_SCANS = 2
    RESTARTS = 3
    NOT_EIGHT_BITS = 4
    OTHER_COLORS = 5
    NO_CODE = 6
    DAMAGED = 7


class JpegStatus(IntEnum):
    """State of a JPEG's header: why it cannot be read."""

    OK = 0
    NOT_JPEG = 1
    NO_SCAN = 2
    CUT_FRAME = 3
    NO_COMPONENTS = 4


INSTRUCTION_FIELDS = [
    ("opcode", "const i16 *"),  # [R, K]
    ("args", "const f64 *"),  # [R, K, 8]
    ("flags", "const i16 *"),  # [R, K]
    ("fill", "const u8 *"),  # [R, K, 3]
    ("out_size", "const i32 *"),  # [R, K, 2]
    ("window", "const i32 *"),  # [R, K, 4]
    ("passes", "const i32 *"),  # [R, P, PASS_FIELDS]
    ("length", "const i32 *"),  # [R]
    ("num_passes", "const i32 *"),  # [R]
    ("in_shape", "const i32 *"),  # [R, 3]
    ("ids", "const u64 *"),  # [R]
    ("key", "const u32 *"),  # [R, 2]
]
"""Arrays of fused programs that all executors read."""

FUSED_ARRAYS = [name for name, _ in INSTRUCTION_FIELDS]
TABLES = ("luts", "matrices", "kernels", "rectangles", "grids")
"""Side tables of programs that all executors read."""

PROGRAM_SIZES = [("rows", "i64"), ("slots", "i64"), ("max_passes", "i64")]

BATCH = [
    *PROGRAM_SIZES,
    *INSTRUCTION_FIELDS,
    ("luts", "const u8 *"),  # [T, 3, 256]
    ("curves", "const f64 *"),  # [E, 3, 256]: of LUTs of images of more than 256 levels
    ("matrices", "const f32 *"),  # [M, 3, 4]
    ("kernels", "const i16 *"),  # weights of convolutions
    ("rectangles", "const i32 *"),  # [Q, 4]
    ("grids", "const i16 *"),  # nodes of grids and layers
    ("grid_values", "i64"),  # the length of `grids`
    ("pixel_functions", "const PixelFunction *"),  # [P]
    ("segments", "const f32 *"),  # rng.SEGMENTS
    ("sources", "const u8 *const *"),  # [R]: images
    ("targets", "u8 *const *"),  # [R]: results
    ("scale", "const f32 *"),  # [2, 3]: for images of one channel, and of three
    ("bias", "const f32 *"),  # [2, 3]
    ("storage", "i64"),  # a Storage
    ("streams", "i64"),  # 1: results are written past the caches
    ("depth", "i64"),  # a Depth: of images, and of results that are not normalized
]
"""Fields of the C++ struct ``Batch`` and their types."""

SAMPLED_ARRAYS = [
    ("opcode", "i16 *"),  # [R, K]
    ("args", "f64 *"),  # [R, K, 8]
    ("flags", "i16 *"),  # [R, K]
    ("fill", "u8 *"),  # [R, K, 3]
    ("out_size", "i32 *"),  # [R, K, 2]
    ("label", "i16 *"),  # [R, K]
    ("length", "i32 *"),  # [R]
    ("in_shape", "i32 *"),  # [R, 3]
    ("ids", "u64 *"),  # [R]
    ("key", "u32 *"),  # [R, 2]
]
"""Arrays of programs that are drawn, and then lowered in place."""

LOWERING = [
    ("rows", "i64"),
    ("slots", "i64"),
    *SAMPLED_ARRAYS,
    ("window", "i32 *"),  # [R, K, 4]
    ("pass_of", "i16 *"),  # [R, K]
    ("num_passes", "i32 *"),  # [R]
    ("passes", "i32 *"),  # [R, K, PASS_FIELDS]
    ("breaks", "i32 *"),  # [R, K, 2]: a PassBreak, and the slot that an instruction could not join
    ("curves", "const f64 *"),  # [E, C, 256]: of LUTs
    ("luts", "u8 *"),  # [T, C, 256]: room for a table for each instruction that becomes a LUT, and each pair
    ("room_for_luts", "i64"),
    ("lut_channels", "i64"),  # C
    ("filters", "const f32 *"),  # weights of FILTER
    ("kernels", "i16 *"),  # room for weights of convolutions
    ("kernel_values", "i64"),  # its length
    ("neutral", "const f64 *"),  # [MAX_OPCODE, 2]: ops.NEUTRAL_OF
    ("kinds", "const i8 *"),  # [MAX_OPCODE]: ops.KIND_OF
    ("records", "const i64 *"),  # [length, INSTRUCTION_RECORD]: instructions of the only program as records, or null
    ("composed", "i64"),  # interpolating maps are joined
    ("nearest", "i64"),  # images are masks, whose maps take the nearest pixel
    ("measured_once", "i64"),  # statistics of a pass are measured together
    ("is_deep", "i64"),  # images have more than 256 levels
    ("longest", "i64"),  # out: instructions of the longest row before maps and tables were merged
    # Out: tables in use, and weights of convolutions. If there is not room for as many, nothing is lowered.
    ("num_luts", "i64"),
    ("num_kernel_values", "i64"),
    ("unknown", "i64"),  # out: row * slots + slot of the first unknown opcode, or -1
]

STAGES = [
    ("rows", "i64"),
    ("begin", "i64 *"),  # [R + 1]
    ("kind", "i64 *"),  # [S]
    ("back", "f64 *"),  # [S, 9]
    ("ahead", "f64 *"),  # [S, 9]
    ("before", "i64 *"),  # [S, 2]
    ("after", "i64 *"),  # [S, 2]
    ("is_aligned", "u8 *"),  # [S]
    ("rounds", "u8 *"),  # [S]
    ("numbers", "i64 *"),  # [S, 6]
    ("grids", "const i16 *"),
    ("rectangles", "const i32 *"),  # [T, 4]
    ("tables", "f64 *"),
]

STAGES_CALL = [
    ("rows", "i64"),
    ("slots", "i64"),
    ("opcode", "const i16 *"),  # [R, K]
    ("args", "const f64 *"),  # [R, K, 8]
    ("flags", "const i16 *"),  # [R, K]
    ("out_size", "const i32 *"),  # [R, K, 2]
    ("length", "const i32 *"),  # [R]
    ("in_shape", "const i32 *"),  # [R, 3]
]

JPEG_HEAD = [
    ("status", "i64"),  # JpegStatus
    ("height", "i64"),
    ("width", "i64"),
    ("components", "i64"),
    ("height_offset", "i64"),  # of its two bytes in the file
    ("mcu_height", "i64"),
    ("is_sequential", "i64"),  # one scan, top to bottom, in Huffman code
    ("is_ordinary", "i64"),  # 8 bits, gray or YCbCr, in Huffman code, and nothing odd before the scan
    ("may_be_oriented", "i64"),  # its metadata may say how to turn it
    ("is_complete", "i64"),  # the file ends as a JPEG should
]

LAYERS = [("count", "i64"), ("planes", "i64"), ("lines", "i64"), ("columns", "i64"), ("nodes", "u8 *")]
"""Fields of ``Layers``, which brushes draw."""

FIELD_NOISE = [
    ("rows", "i64"),
    ("ids", "const u64 *"),  # [R]
    ("keys", "const u32 *"),  # [R, 2]
    ("slot", "i64"),
    ("taps_x", "const f32 *"),
    ("num_taps_x", "i64"),
    ("taps_y", "const f32 *"),
    ("num_taps_y", "i64"),
    ("gains", "const f32 *"),  # [R, num_fields]
    ("lines", "i64"),
    ("columns", "i64"),
    ("num_fields", "i64"),
    ("grids", "i16 *"),  # out: [R, lines, columns, num_fields]
    ("farthest", "i64 *"),  # out: [R], the greatest magnitudes
]
"""Fields of ``FieldNoise``: blurred noise at the nodes of grids."""

HASH_SEARCH = [
    ("hashes", "const u64 *"),  # of the index, with GROUP more behind the last one
    ("rows", "const u32 *"),  # whose they are
    ("starts", "const i32 *"),  # [values + 1]
    ("values", "i64"),  # a power of two
    ("query_hashes", "const u64 *"),
    ("query_rows", "const u32 *"),
    ("masks", "const u16 *"),  # bit differences of the searched values of the part
    ("num_masks", "i64"),
    ("flips", "const u8 *"),
    ("inverted", "const u64 *"),  # the bits that each flip inverts
    ("num_flips", "i64"),
    ("shift", "i64"),  # the first bit of the part
    ("distance", "i64"),
    ("most_compared", "i64"),  # hashes that an image is compared with
    ("signatures", "const u8 *"),
    ("signature_bytes", "i64"),  # of an image; 0: hashes alone decide
    ("splits", "const u8 *"),
    ("labels", "const i64 *"),
    ("kinds", "const u8 *"),  # [KINDS]: which there are
    ("failures", "i32 *"),  # by image, so far
    ("partners", "u32 *"),  # [images, KINDS, KEPT]
]
"""Fields of ``HashSearch``: see variegate/apps/check/near_search.py."""

RUN_CALL = [("batch", "const Batch *"), ("scratch", "void *"), ("begin", "i64"), ("end", "i64")]

MOVE_CALL = [
    *RUN_CALL,
    ("bits", "i64"),  # the binary logarithm of an element's size
    ("fill", "i64"),  # value outside of the image; its lowest bytes count
]


class SingleStatus(IntEnum):
    """Statuses of vg_make_one, besides the common statuses of native calls: the call must be repeated."""

    OTHER_SIZE = 32
    """The result has another height and width, which are in the call by then."""
    NO_ROOM_FOR_WEIGHTS = 33
    """The program is to be lowered with more memory for the weights of convolutions."""


SINGLE_CALL = [
    ("draw", "const DrawCall *"),  # null: the program is given as records
    ("records", "const i64 *"),  # see Lowering
    ("is_lowered", "i64"),
    ("composed", "i64"),  # see Lowering
    ("streams", "i64"),  # see Batch
    ("source", "const u8 *"),  # the image; the batch's ``sources`` points here
    ("target", "u8 *"),  # the result; the batch's ``targets`` points here
    ("height", "i64"),  # of the result
    ("width", "i64"),
    ("lowering", "Lowering *"),
    ("batch", "Batch *"),
    ("scratch", "void *"),
]
"""Fields of the C++ struct ``SingleCall``."""


class BandStep(IntEnum):
    """Steps of a pass in shared memory, each complete before the next begins."""

    CODE = 0  # the image through a JPEG, to the target
    MEASURE = 1  # statistics of the image, to the tables
    INPUT = 2  # lines read by a filter, or by a map through tables
    TILES = 3  # statistics of a CLAHE's input, to the tiles
    PASS = 4  # lines of the result


BAND_CALL = [
    ("batch", "const Batch *"),
    ("scratch", "void *"),
    ("row", "i64"),
    ("pass", "i64"),
    ("step", "i64"),  # a BandStep
    ("begin", "i64"),
    ("end", "i64"),
    ("source", "const u8 *"),  # the image that the pass reads
    ("height", "i64"),
    ("width", "i64"),
    ("channels", "i64"),
    ("input", "u8 *"),  # vg_input_bytes of the call
    ("target", "u8 *"),
    ("is_last", "i64"),  # 1: the target is as the batch's results; else interleaved bytes
    ("tables", "u8 *"),  # [K, 3, 256]
    ("tiles", "u8 *"),  # [MAX_TILES * MAX_TILES, 256]
]

BLEND_CALL = [
    ("batch", "const Batch *"),
    ("scratch", "void *"),
    ("begin", "i64"),
    ("end", "i64"),
    ("begins", "const i64 *"),  # [outputs + 1]
    ("row", "const i64 *"),  # [E]
    ("weight", "const f32 *"),  # [E]
    ("box", "const i32 *"),  # [E, 4]
    ("start", "const f32 *"),  # [outputs]
    ("pastes", "const u8 *"),  # [outputs]
    ("alpha_at", "const i64 *"),  # [E]
    ("alpha", "const u8 *"),
    ("canvases", "const u8 *const *"),  # [R]: what rows made
    ("targets", "u8 *const *"),  # [outputs]
    ("storage", "i64"),  # a Storage: of the outputs
    ("streams", "i64"),  # 1: outputs are written past the caches
]

PICK_CALL = [
    ("images", "const i64 *"),  # [N, 4]: address of the first of the channels, bytes per line, height, width
    ("begin", "i64"),
    ("end", "i64"),
    ("channels", "i64"),  # of the images
    ("depth", "i64"),  # of the images
    ("target", "u8 *"),
    ("sources", "i64 *"),  # [N]: where the results begin
]

PIXEL_FUNCTION = [
    ("compiled", "void *"),  # void row(u8 *red, u8 *green, u8 *blue, i64 count, f32 magnitude); null: a record
    ("code", "const DrawInstruction *"),
    ("length", "i64"),
    ("num_numeric", "i64"),  # the first instructions, which compute numbers that all pixels share
    ("constants", "const f32 *"),  # the first numbers, which the magnitude follows
    ("num_constants", "i64"),
    ("num_numbers", "i64"),
    ("num_registers", "i64"),  # of pixels: numbers that differ; the first three begin as red, green and blue
    ("red", "i64"),  # results: numbers, then registers
    ("green", "i64"),
    ("blue", "i64"),
]
"""A pixel function; operands of its code below ``num_numbers`` are numbers, and others registers."""

DRAW_COMMENT = "One call of vg_draw: instructions begin..end of a record, see variegate/program/draws."
DRAW_CALL = [
    ("code", "const DrawInstruction *"),
    ("constants", "const f64 *"),  # the first registers
    ("num_constants", "i64"),
    ("arrays", "const f64 *"),  # of LOOKUP and SEARCH
    ("emissions", "const DrawEmission *"),
    ("begin", "i64"),
    ("end", "i64"),
    ("registers", "f64 *"),
    ("register_stride", "i64"),
    ("rows", "i64"),
    ("row_index", "const i64 *"),  # [rows]: the rows of the program; null: all, in order
    ("first_slot", "i64"),  # of random numbers
    ("slots", "i64"),
    *SAMPLED_ARRAYS,
    ("size", "i32 *"),  # [R, 2]: of images so far
    ("columns", "const f64 *"),  # [C, column_rows]
    ("column_rows", "i64"),
    ("bases", "const f64 *"),  # where the side tables of this record begin
    ("first_label", "i64"),
    ("rectangles", "i32 *"),  # room for the record's rectangles
    ("num_rectangles", "i64 *"),  # so far
    ("first_rectangle", "i64"),  # rectangles of the program before these
    ("max_side", "i64"),
    ("chain_rows", "i64"),  # rows before the first copies
    ("weights", "f32 *"),  # [R]: see BLEND
    ("failure", "f64 *"),  # out: what failed, the row, and numbers for the message
]

PLAN_CALL = [
    ("images", "i64"),
    ("shapes", "const i32 *"),  # [images, 3]
    ("ids", "const u64 *"),  # [images]
    ("keys", "const u32 *"),  # [images, 2], or [1, 2] for all
    ("key_step", "i64"),  # numbers from one image's key to the next one's
    ("views", "const i32 *"),  # [num_views, 2]: group and position of each
    ("num_views", "i64"),
    ("copies", "i64"),  # rows of a view, the second ones behind the first ones of all
    ("draws", "const DrawCall *"),
    ("num_draws", "i64"),
    ("lowering", "Lowering *"),
    ("failed", "i64"),  # out: the draw that failed
    ("height", "i64"),  # out: of all results; 0 if their shapes differ
    ("width", "i64"),
    ("channels", "i64"),
]
"""Fields of ``PlanCall``: batches that are drawn and lowered at once."""

DEVICE_PROGRAM = [
    *PROGRAM_SIZES,
    *INSTRUCTION_FIELDS,
    ("source", "const i32 *"),  # [R]: the image that a row reads
    ("luts", "const u8 *"),
    ("luts_size", "i64"),  # sizes are bytes
    ("matrices", "const u8 *"),
    ("matrices_size", "i64"),
    ("kernels", "const u8 *"),
    ("kernels_size", "i64"),
    ("rectangles", "const u8 *"),
    ("rectangles_size", "i64"),
    ("grids", "const u8 *"),
    ("grids_size", "i64"),
    ("segments", "const u8 *"),  # rng.SEGMENTS
    ("segments_size", "i64"),
    ("scale_and_bias", "const f32 *"),  # [4, 3]: for images of one channel, then of three
    ("lut_size", "i64"),  # bytes of a table: of uint8, or of float32 for deep images
    ("canvas_pixel", "i64"),  # bytes of a pixel of the images between passes
    ("outputs", "i64"),  # of the blend; 0: rows are not blended
    ("begins", "const i64 *"),  # [outputs + 1]; from here on see program.BlendEntries
    ("entry_row", "const i64 *"),  # [E]
    ("weight", "const f32 *"),  # [E]
    ("box", "const i32 *"),  # [E, 4]
    ("start", "const f32 *"),  # [outputs]
    ("alpha_at", "const i64 *"),  # [E]
    ("alpha", "const u8 *"),
    ("alpha_size", "i64"),
    ("at", "i64 *"),  # out: [NUM_SECTIONS], offsets of the sections
    ("depth", "i64"),  # out: passes of the row that has most
    ("draws_noise", "i64"),  # out: instructions read the table of normal numbers
    ("list_length", "i64"),  # out: entries that each list of rows has room for
    ("uploaded", "i64"),  # out: bytes that are packed
    ("buffer_size", "i64"),  # out: bytes of the buffer on the device, which begins with these
    ("canvas_size", "i64"),  # out: bytes of the images between passes
]
"""Fields of the C++ struct ``DeviceProgram``; those that vg_plan_buffer writes are marked ``out``."""

PACK_CALL = [
    ("program", "const DeviceProgram *"),
    ("memory", "u8 *"),  # the bytes that are uploaded
    ("addresses", "const i64 *"),  # [images], on the device
    ("strides", "const i64 *"),  # [images, 3], elements along y, x and channels
    ("images", "i64"),
    ("targets", "const i64 *"),  # [outputs]: addresses of results
    ("canvases", "i64"),  # address of the images between passes
    ("block_y", "i64"),  # height and width of a tile
    ("block_x", "i64"),
    ("region_x", "i64"),  # column and line of the region that all rows show of a larger image
    ("region_y", "i64"),
    ("whole_height", "i64"),  # of the larger image; 0: rows show no region
    ("whole_width", "i64"),
    ("launches", "i64 *"),  # out: [1 + depth + 1, 3], fields of launches: of the preparation, the passes, the blend
]


def pack_struct(fields: list[tuple[str, str]], **values: npt.NDArray[np.generic] | int) -> Int64Array:
    """A struct in memory. Arrays are given by their address: they must outlive it, and neither move nor grow."""
    ordered = [values[name] for name, _ in fields]
    words = [data_ptr(value) if isinstance(value, np.ndarray) else value for value in ordered]
    return np.array(words, np.int64)
