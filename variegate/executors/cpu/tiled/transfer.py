"""Lines of a rectangle from and to a file, in one call that leaves Python's lock alone.

Of a picture in rows, a rectangle is a thousand short stretches. Threads that ask for them one by one, by ``os.pread``,
would wait for one another's turn to say so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from variegate.program.compiled import pixel_kernel

# Of the C library. Addresses are numbers.
_KIND = types.intp(types.int32, types.intp, types.uintp, types.int64)
_pread: Any = types.ExternalFunction("pread", _KIND)
_pwrite: Any = types.ExternalFunction("pwrite", _KIND)


@pixel_kernel
def read_lines(descriptor: Any, address: Any, lines: Any, size: Any, at: Any, step: Any) -> int:
    """``lines`` times ``size`` bytes to ``address``, from byte ``at`` of a file on, ``step`` bytes apart -> how many
    lines were read as a whole; fewer where the file ends, or the system refuses."""
    for i in range(lines):
        done = 0
        while done < size:
            number = _pread(np.int32(descriptor), address + i * size + done, size - done, at + i * step + done)
            if number <= 0:
                return i
            done += number
    return lines


@pixel_kernel
def write_lines(descriptor: Any, address: Any, lines: Any, size: Any, at: Any, step: Any) -> int:
    """The same to a file -> how many lines were written as a whole."""
    for i in range(lines):
        done = 0
        while done < size:
            number = _pwrite(np.int32(descriptor), address + i * size + done, size - done, at + i * step + done)
            if number <= 0:
                return i
            done += number
    return lines
