"""What the kernels of this folder are made with: their decorators, and arrays over memory that is known by its address.

A kernel's code contains that of all kernels it calls, and every kernel is optimised with all that it contains. So the
tree of calls is kept shallow, and each kernel has one type for each argument: most of the seconds before a first batch
are spent here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

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


# uint8[size] and float32[size] at an address; the caller keeps the memory alive.
bytes_at = _view_of(types.uint8, 1)
floats_at = _view_of(types.float32, 4)


@intrinsic
def address_of(typing_context: Any, array: Any) -> Any:
    """Of an array's first element."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(array), codegen
