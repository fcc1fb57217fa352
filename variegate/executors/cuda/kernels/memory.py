"""Typed loads from the buffer of a launch: arrays at byte offsets, and fields of headers."""

from __future__ import annotations

import triton
import triton.language as tl

from variegate.executors.cuda import layout as L
from variegate.program import passes as P


@triton.jit
def int16s_at(buffer, offset):
    return (buffer + offset).to(tl.pointer_type(tl.int16))


@triton.jit
def int32s_at(buffer, offset):
    return (buffer + offset).to(tl.pointer_type(tl.int32))


@triton.jit
def int64s_at(buffer, offset):
    return (buffer + offset).to(tl.pointer_type(tl.int64))


@triton.jit
def float32s_at(buffer, offset):
    return (buffer + offset).to(tl.pointer_type(tl.float32))


@triton.jit
def float64s_at(buffer, offset):
    return (buffer + offset).to(tl.pointer_type(tl.float64))


@triton.jit
def load_inside(addresses, inside):
    """Load numbers of any type; 0 where ``inside`` is false."""
    return tl.load(addresses, mask=inside, other=0)


@triton.jit
def load_int(address):
    """Load a number of any type as int32."""
    return tl.load(address).to(tl.int32)


@triton.jit
def load_word(address):
    """Load a number of any type as uint32."""
    return tl.load(address).to(tl.uint32)


@triton.jit
def load_float(address):
    """Load a number of any type as float32."""
    return tl.load(address).to(tl.float32)


@triton.jit
def size_of(header):
    """Height and width of the image that the pass writes."""
    return load_int(header + P.HEIGHT), load_int(header + P.WIDTH)


@triton.jit
def load_id(header):
    """The row's sample id, two uint32."""
    return load_word(header + L.ID_LOW), load_word(header + L.ID_HIGH)


@triton.jit
def load_key(header):
    """The row's stream key, two uint32."""
    key = tl.load(header + L.KEY)
    return key.to(tl.uint32), (key >> 32).to(tl.uint32)


@triton.jit
def elements_at(address, FORMAT: tl.constexpr):
    """A pointer to an image's elements."""
    if FORMAT == L.UINT16:
        elements = address.to(tl.pointer_type(tl.uint16))
    elif FORMAT == L.FLOAT32:
        elements = address.to(tl.pointer_type(tl.float32))
    else:
        elements = address.to(tl.pointer_type(tl.uint8))
    return elements


@triton.jit
def load_level(elements, inside, FORMAT: tl.constexpr):
    """Load values in the form that ``element.py`` describes; 0 where ``inside`` is false."""
    levels = load_inside(elements, inside)
    return levels.to(tl.float32) if FORMAT >= L.UINT16 else levels.to(tl.int32)
