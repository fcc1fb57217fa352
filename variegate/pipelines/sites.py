"""Call sites: map each drawing call of a function to a slot of Philox.

A site is the chain of calls in the user's code, from the pipeline's function to the draw. Each link is a function, and
which of its calls it is, in the order of the source. So neither formatting nor comments, nor anything outside of these
functions, moves a draw. Frames of Variegate and of Python's standard library are no links.
"""

from __future__ import annotations

import dis
import hashlib
import os
import sys
import sysconfig
import types
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

Codes = Sequence[tuple[types.CodeType, int]]

# Slots of sites are above the slots of transforms, which count from 0. The gap leaves room for inner slots of a called
# transform, and for the noise of further channels.
_FIRST = 1 << 31
_NUMBER = (1 << 31) - (1 << 24)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Pipelines as users write them; converters produce them from other libraries' pipelines.
CONVERTED = "variegate.interop.convert.drawn"
_CONVERTED_FILE = os.path.join(os.path.dirname(_PACKAGE.rstrip(os.sep)), *CONVERTED.split(".")) + ".py"
_PYTHON = sysconfig.get_paths()["stdlib"] + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
# Before Python 3.12 they are functions of their own.
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
_HAS_COLUMNS = sys.version_info >= (3, 11)
_MAX_CODES = 10_000


class _Code:
    """Facts about a code object, which is kept so that its id stays its own."""

    def __init__(self, code: types.CodeType) -> None:
        self.code = code
        self.is_users = _is_users_file(code.co_filename)

    @cached_property
    def _offsets(self) -> list[int]:
        return [instruction.offset for instruction in dis.get_instructions(self.code)]

    def instruction_at(self, offset: int) -> int:
        """The offset of the instruction there: a frame may be anywhere in one with its caches."""
        return self._offsets[bisect_right(self._offsets, offset) - 1]

    @cached_property
    def order_of_calls(self) -> dict[tuple[int, int], int]:
        """The position in the source of each call, by the id of its code and its offset there."""
        places = dict(_places_of_calls(self.code))
        order = {place: number for number, place in enumerate(sorted(set(places.values())))}
        return {call: order[place] for call, place in places.items()}

    @cached_property
    def nested_names(self) -> dict[int, str]:
        """Names of the functions within this one, by the ids of their codes: their order in it."""
        codes = [code for code in _within(self.code) if code.co_name not in _COMPREHENSIONS]
        return {id(code): f"#{number}" for number, code in enumerate(codes)}


# By the id, as hashing a code object takes its time.
_codes: dict[int, _Code] = {}


def _known(code: types.CodeType) -> _Code:
    known = _codes.get(id(code))
    if known is None:
        if len(_codes) >= _MAX_CODES:
            _codes.clear()
        known = _codes[id(code)] = _Code(code)
    return known


def is_users(code: types.CodeType) -> bool:
    """True unless the code belongs to Variegate or to the standard library."""
    return _known(code).is_users


def _is_users_file(file: str) -> bool:
    if file == _CONVERTED_FILE:
        return True
    if file.startswith("<frozen "):
        return False
    if any(part in file for part in _INSTALLED):
        return not file.startswith(_PACKAGE)
    return not file.startswith((_PACKAGE, _PYTHON))


def frames_below(frame: types.FrameType | None, root: types.CodeType) -> Iterator[types.FrameType]:
    """The frames from ``frame`` out to the one that ``root`` called."""
    while frame is not None and frame.f_code is not root:
        yield frame
        frame = frame.f_back


def chain_of(codes: Codes) -> str:
    """The name of a site. ``codes``: the code and the offset of each of the user's frames, from the outermost on."""
    root = codes[0][0]
    nested = _known(root).nested_names
    links = []
    function = root
    for place, (code, offset) in enumerate(codes):
        if code.co_name not in _COMPREHENSIONS:
            function = code
        if place + 1 < len(codes) and codes[place + 1][0].co_name in _COMPREHENSIONS:
            continue  # the call of a comprehension, which later versions of Python do not have
        name = "" if function is root else nested.get(id(function), function.co_name)
        call = id(code), _known(code).instruction_at(offset)
        links.append(f"{name}.{_known(function).order_of_calls.get(call, -1)}")
    return "/".join(links)


@lru_cache(maxsize=65_536)
def slot_of(chain: str, visit: int, first: int) -> int:
    """The slot of the ``visit``-th draw at a site. ``first``: the slot of the pipeline."""
    digest = hashlib.blake2b(f"{first}:{chain}:{visit}".encode(), digest_size=8).digest()
    return _FIRST + int.from_bytes(digest, "little") % _NUMBER


def _within(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _within(constant)


def _places_of_calls(code: types.CodeType) -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
    """Calls with their positions in the source, also in comprehensions. The compiler may write a call twice:
    both are at one place. Python 3.10 knows the lines alone."""
    line = 0
    before: list[tuple[str, Any]] = []
    for instruction in dis.get_instructions(code):
        if not _HAS_COLUMNS and instruction.starts_line is not None:
            line = instruction.starts_line
        name = instruction.opname
        if "CALL" in name and "INTRINSIC" not in name and not _is_hidden(before):
            yield (id(code), instruction.offset), _place(instruction, line)
        if name != "PRECALL":
            before = [*before[-2:], (name, instruction.argval)]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name in _COMPREHENSIONS:
            yield from _places_of_calls(constant)


def _is_hidden(before: list[tuple[str, Any]]) -> bool:
    """True for a call that only some versions of Python have: of a comprehension, and at the end of a ``with``."""
    names = [name for name, _ in before]
    values = [value for _, value in before]
    ends_with = names[-1:] == ["DUP_TOP"] or (names == ["LOAD_CONST"] * 3 and values == [None] * 3)
    return ends_with or names[-1:] == ["GET_ITER"]


def _place(instruction: dis.Instruction, line: int) -> tuple[int, ...]:
    if not _HAS_COLUMNS:
        return line, instruction.offset
    at: Any = instruction.positions
    return at.lineno or 0, at.col_offset or 0, at.end_lineno or 0, at.end_col_offset or 0
