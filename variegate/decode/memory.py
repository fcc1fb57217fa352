"""Memory known by its address: words of it in the order of a JPEG's bits, and pixels where Pillow keeps them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from PIL import Image

from variegate.program.compiled import pixel_kernel


def value_at(kind: Any) -> Any:
    """An intrinsic ``(address, i)``: value ``i`` of the integers of ``kind`` that begin at an address."""

    @intrinsic
    def value(typing_context: Any, address: Any, at: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = builder.inttoptr(args[0], ir.IntType(kind.bitwidth).as_pointer())
            return builder.load(builder.gep(values, [args[1]]))

        return kind(types.int64, types.int64), codegen

    return value


byte_at = value_at(types.uint8)
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, ir.IntType(64).as_pointer())


@intrinsic
def address_of(typing_context: Any, array: Any) -> Any:
    """Of an array's first value. (``array.ctypes.data`` says the same, and takes long to compile.)"""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(values.data, ir.IntType(64))

    return types.int64(array), codegen


@intrinsic
def word_at(typing_context: Any, address: Any) -> Any:
    """uint64 of the eight bytes from ``address``, as they lie in memory."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(builder, args[0]), align=1)

    return types.uint64(types.int64), codegen


@intrinsic
def put_word(typing_context: Any, address: Any, value: Any) -> Any:
    """Eight bytes to ``address``, as they lie in memory."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], _pointer(builder, args[0]), align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64), codegen


@intrinsic
def put_byte(typing_context: Any, address: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        builder.store(builder.trunc(args[1], ir.IntType(8)), pointer)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def swapped(typing_context: Any, value: Any) -> Any:
    """The eight bytes of a uint64 in the other order."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bswap(args[0])

    return types.uint64(types.uint64), codegen


@pixel_kernel(inline="always")
def has_ff(word: Any) -> Any:
    """True if one of the eight bytes is 0xFF."""
    rest = ~word
    return ((rest - _ONES) & ~rest & _TOPS) != np.uint64(0)


@pixel_kernel(inline="always")
def bits_at(buffer: Any, bit: Any) -> Any:
    """uint64 whose upper 57 bits are those from bit ``bit`` of the memory at ``buffer``, first bits first."""
    return swapped(word_at(buffer + (bit >> 3))) << np.uint64(bit & 7)


@pixel_kernel(inline="always")
def short_at(data: Any, at: Any) -> Any:
    """The number in two bytes of a JPEG, ``at`` bytes behind the address ``data``."""
    return np.int64(byte_at(data, at)) << 8 | np.int64(byte_at(data, at + 1))


# Pillow keeps four bytes for a pixel of colour; its own export (``np.asarray``) packs them one by one, into a buffer
# that is copied once more. From version 11.2 on it says by Arrow's C data interface where an image's memory is.
# Words of eight bytes in Arrow's ``struct ArrowArray``.
_LENGTH, _OFFSET, _NUM_BUFFERS, _NUM_CHILDREN, _BUFFERS, _CHILDREN = 0, 2, 3, 4, 5, 6
_BLOCK = 16  # pixels

_address_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def rgb_of(image: Image.Image) -> npt.NDArray[np.uint8] | None:
    """uint8[H, W, 3] of an image in mode RGB; None where Pillow's memory is not known, or not its own."""
    export = getattr(image, "__arrow_c_array__", None)
    if export is None or image.mode != "RGB":
        return None
    image.load()
    # Borrowed memory has a layout of its own; to ask for that of a mapped file or buffer crashes Pillow 11 and 12. Rows
    # that are aligned have gaps between them, of which Arrow does not know.
    if image.readonly or Image.core.get_alignment() != 1:  # type: ignore[attr-defined]
        return None
    try:
        _, capsule = export()  # which keeps the memory
    except ValueError:  # an image of more than 16 MB, in several pieces
        return None
    img_HWC = np.empty((image.height, image.width, 3), np.uint8)
    return img_HWC if _unpack(_address_in(capsule, b"arrow_array"), img_HWC) else None


def unpack_nothing() -> None:
    """Have the kernel ready, whatever Pillow there is: an array of no pixels is not that of an image."""
    _unpack(np.zeros(8, np.int64).ctypes.data, np.empty((1, 1, 3), np.uint8))


_word = value_at(types.int64)


def _narrowing(pixels: int) -> Any:
    """An intrinsic ``(source, target)``: so many pixels of four bytes at one address become three bytes at another."""

    @intrinsic
    def narrow(typing_context: Any, source: Any, target: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            byte, index = ir.IntType(8), ir.IntType(32)
            wide, kept = ir.VectorType(byte, 4 * pixels), ir.VectorType(byte, 3 * pixels)
            places = [4 * pixel + channel for pixel in range(pixels) for channel in range(3)]
            values = builder.load(builder.inttoptr(args[0], wide.as_pointer()), align=1)
            chosen = ir.Constant(ir.VectorType(index, len(places)), places)
            values = builder.shuffle_vector(values, values, chosen)
            builder.store(values, builder.inttoptr(args[1], kept.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return narrow


_narrow, _narrow_one = _narrowing(_BLOCK), _narrowing(1)


@pixel_kernel
def _unpack(array: Any, img_HWC: Any) -> bool:
    """Fill ``img_HWC`` from the ``ArrowArray`` at an address; False where that does not hold four bytes a pixel."""
    number = img_HWC.shape[0] * img_HWC.shape[1]
    if _word(array, _LENGTH) != number or _word(array, _OFFSET) != 0 or _word(array, _NUM_CHILDREN) != 1:
        return False
    values = _word(_word(array, _CHILDREN), 0)
    if _word(values, _LENGTH) != 4 * number or _word(values, _OFFSET) != 0 or _word(values, _NUM_BUFFERS) != 2:
        return False
    source, target = _word(_word(values, _BUFFERS), 1), img_HWC.ctypes.data
    if source == 0:
        return False
    if number < _BLOCK:
        for pixel in range(number):
            _narrow_one(source + 4 * pixel, target + 3 * pixel)
        return True
    for pixel in range(0, number - _BLOCK, _BLOCK):
        _narrow(source + 4 * pixel, target + 3 * pixel)
    # The last ones end where the image does, and do some of the others again.
    _narrow(source + 4 * (number - _BLOCK), target + 3 * (number - _BLOCK))
    return True
