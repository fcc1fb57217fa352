"""Decorators of this folder's kernels, arrays over memory known by its address, and calls of parts by address.

A kernel's code contains that of all kernels it calls, and every kernel is optimised with all that it contains. So the
tree of calls is kept shallow, and each kernel has one type for each argument: most of the seconds before a first batch
are spent here.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from variegate.program.compiled import pixel_kernel

inlined = partial(pixel_kernel, inline="always")
"""A kernel whose statements are put in place of its call, before anything is compiled: for what is small, and for what
one kernel calls in one place. Many statements in many places would cost more than they save."""


def _view_of(element: Any, size_of_element: int) -> Any:
    """An intrinsic that looks at memory as a one-dimensional array, without owning it."""

    @intrinsic
    def view(typing_context: Any, address: Any, size: Any) -> Any:
        array_type = types.Array(element, 1, "C")
        signature = array_type(types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = make_array(array_type)(context, builder)
            data = builder.inttoptr(args[0], context.get_data_type(element).as_pointer())
            item = context.get_constant(types.intp, size_of_element)
            populate_array(array, data=data, shape=[args[1]], strides=[item], itemsize=item, meminfo=None)
            return array._getvalue()

        return signature, codegen

    return view


# uint8[size], int32[size], float32[size] and int64[size] at an address; the caller keeps the memory alive.
bytes_at = _view_of(types.uint8, 1)
ints_at = _view_of(types.int32, 4)
floats_at = _view_of(types.float32, 4)
longs_at = _view_of(types.int64, 8)


@intrinsic
def address_of(typing_context: Any, array: Any) -> Any:
    """Of an array's first element."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(array), codegen


# The parts of ``run_rows``, see memory.py.
PARTS = 11
STATISTICS, MAPS, NEAREST, FILTER, RESIZE, NOISE, ERASED, DISPLACED, FOLDED, SEAM, CODEC = range(PARTS)
# Columns of ``Scratch.sweep``, arguments of a part: the image that is read, and the result.
SWEEP_FIELDS = 8
(
    IMAGE,  # addresses
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
    CHANNELS,
    RESULT,
    RESULT_KIND,
    RESULT_HEIGHT,
    RESULT_WIDTH,
) = range(SWEEP_FIELDS)

part_kernel = partial(pixel_kernel, no_cpython_wrapper=True)
"""A part of ``run_rows`` that is not in its code, but compiled beside it, and called by its address: most of its code
is needed by few programs, and code is optimised once more with every kernel that contains it. A part is
``part(batch, scratch, r, i, j)``, five int64 of which the first two are addresses, and returns an int64."""

PART = (types.int64,) * 5


@intrinsic
def call_part(typing_context: Any, address: Any, batch: Any, scratch: Any, r: Any, i: Any, j: Any) -> Any:
    """Call the part kernel at ``address``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(64)
        function = ir.FunctionType(word, [word] * len(PART))
        return builder.call(builder.inttoptr(args[0], function.as_pointer()), args[1:])

    return types.int64(types.int64, *PART), codegen


class Pixels(NamedTuple):
    """An image."""

    levels: Any  # uint8[H * W * C], HWC
    height: int
    width: int
    channels: int


@inlined
def set_image(image: Any, address: Any, sweep: Any) -> None:
    sweep[IMAGE], sweep[IMAGE_HEIGHT], sweep[IMAGE_WIDTH] = address, image.height, image.width
    sweep[CHANNELS] = image.channels


@inlined
def set_target(target: Any, sweep: Any) -> None:
    sweep[RESULT], sweep[RESULT_KIND] = target.address, target.kind
    sweep[RESULT_HEIGHT], sweep[RESULT_WIDTH] = target.height, target.width


@inlined
def image_of_sweep(sweep: Any) -> Any:
    height, width, channels = sweep[IMAGE_HEIGHT], sweep[IMAGE_WIDTH], sweep[CHANNELS]
    return Pixels(bytes_at(sweep[IMAGE], height * width * channels), height, width, channels)
