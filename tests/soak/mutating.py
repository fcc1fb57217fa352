"""Files that are nearly right: what was well formed, with a few things changed, always the same for the same seed.

A parser of foreign bytes joins the soak (``mutations.py``) and its quick tests with a ``Parser``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

# What a field may hold that nobody expects: ends of integers, what float32 or nothing holds, other kinds of things.
NUMBERS = (0, -1, 1, 255, 256, 65_535, 1 << 20, -(1 << 31), (1 << 31) - 1, 1 << 32, -(1 << 63), (1 << 63) - 1, 1 << 64)
ODD: tuple[Any, ...] = (
    *NUMBERS,
    *(10**30, 0.5, -0.0, 1e-45, 1e39, 3.4e38, 1e308, float("nan"), float("inf"), -float("inf")),
    *(None, True, "", "7", "1e999", "a\nb", "\ud800", [], [[]], {}, [1, 2, 3, 4, 5, 6]),
    {"size": [1, 1], "counts": [1]},
)
_NUMBER = re.compile(rb"-?\d+(\.\d+)?")
_IN_TEXT = (b"-1", b"1e39", b"1e999", b"nan", b"-inf", b"9223372036854775807", b"1" + b"0" * 400, b"", b"''", b"\xff")


@dataclass(frozen=True)
class Parser:
    """``make`` writes an input of the seed into an empty folder -> what ``parse`` is called with. That may refuse it,
    with an error of the house (``is_refusal``) that names the file, or one beside it."""

    name: str
    make: Callable[[Random, Path], Path]
    parse: Callable[[Path], object]


def random_for(name: str, seed: int, number: int) -> Random:
    """Of input ``number`` of a parser."""
    return Random(f"{name} {seed} {number}")


_KEPT: list[TemporaryDirectory[str]] = []


def kept_folder() -> Path:
    """Of what inputs are made of, to the end of the process."""
    _KEPT.append(TemporaryDirectory(prefix="variegate-mutations-"))
    return Path(_KEPT[-1].name)


def is_refusal(error: BaseException) -> bool:
    """Whether it is an error that commands say in one line, and mean: one of this package, or the system's about a
    file. What Python and NumPy raise by themselves is none, though ``ValueError`` would be one line, too."""
    if isinstance(error, OSError):
        return error.filename is not None
    return isinstance(error, ValueError) and type(error).__module__.split(".")[0] == "variegate"


def fault_of(path: Path, error: BaseException) -> str:
    """What is wrong with an error; nothing where it is as it should be."""
    text = str(error)
    told = f"{type(error).__name__}: {' '.join(text.split())[:300]}"
    if isinstance(error, MemoryError):
        return f"growth: {told}"
    if not is_refusal(error):
        return f"no error of the house: {told}"
    if "\n" in text or len(text) > 1000:
        return f"no line of at most 1,000 characters: {told}"
    if path.name not in text and str(path.parent) not in text:
        return f"without the name of the file: {told}"
    return ""


def check(parser: Parser, seed: int, numbers: range, folder: Path) -> int:
    """For quick tests, in their own process -> how many inputs were taken."""
    taken = 0
    for number in numbers:
        place = folder / str(number)
        place.mkdir()
        path = parser.make(random_for(parser.name, seed, number), place)
        try:
            parser.parse(path)
            taken += 1
        except Exception as error:
            fault = fault_of(path, error)
            assert not fault, f"{parser.name} --seed {seed} --only {number}: {fault}"
    return taken


def mutated(data: bytes, random: Random, most: int = 4) -> bytes:
    """Bytes of any kind of file, with 1 to ``most`` changes."""
    changed = bytearray(data)
    for _ in range(random.randint(1, most)):
        random.choice(_CHANGES)(changed, random)
    return bytes(changed)


def _flip(data: bytearray, random: Random) -> None:
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _huge(data: bytearray, random: Random) -> None:
    """An integer of a binary field."""
    size = random.choice((1, 2, 4, 8))
    value = random.choice(NUMBERS) & ((1 << 8 * size) - 1)
    at = random.randrange(len(data))
    data[at : at + size] = value.to_bytes(size, random.choice(("little", "big")))


def _number(data: bytearray, random: Random) -> None:
    """A number that stands as text."""
    found = list(_NUMBER.finditer(data[: 1 << 16]))
    if found:
        one = random.choice(found)
        data[one.start() : one.end()] = random.choice(_IN_TEXT)


def _cut(data: bytearray, random: Random) -> None:
    del data[random.randrange(len(data)) :]


def _without(data: bytearray, random: Random) -> None:
    begin = random.randrange(len(data))
    del data[begin : begin + random.randint(1, 16)]


def _twice(data: bytearray, random: Random) -> None:
    begin = random.randrange(len(data))
    data[begin:begin] = data[begin : begin + random.randint(1, 64)] * random.choice((1, 1, 50))


def _swap(data: bytearray, random: Random) -> None:
    size = random.choice((1, 2, 4, 8, 32))
    one, other = (random.randrange(max(1, len(data) - size)) for _ in range(2))
    if abs(one - other) >= size:
        data[one : one + size], data[other : other + size] = data[other : other + size], data[one : one + size]


def _guarded(change: Callable[[bytearray, Random], None]) -> Callable[[bytearray, Random], None]:
    return lambda data, random: change(data, random) if data else data.append(random.randrange(256))


_CHANGES = [_guarded(one) for one in (_flip, _flip, _huge, _huge, _number, _number, _cut, _without, _twice, _swap)]


def mutated_json(value: Any, random: Random, most: int = 3) -> bytes:
    """JSON that was changed; now and then bytes of it."""
    text = json.dumps(changed(value, random, most)).encode()
    return mutated(text, random, 1) if random.random() < 0.1 else text


def changed(value: Any, random: Random, most: int) -> Any:
    """A copy with 1 to ``most`` values or keys changed."""
    value = deepcopy(value)
    for _ in range(random.randint(1, most)):
        places = list(_places(value))
        if places:
            _change(*random.choice(places), random)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(what holds it, where) of every value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


def _change(holder: Any, key: Any, random: Random) -> None:
    what = random.random()
    if what < 0.6:
        holder[key] = deepcopy(random.choice(ODD))
    elif what < 0.7:
        del holder[key]
    elif what < 0.8:
        other = random.choice(list(holder)) if isinstance(holder, dict) else random.randrange(len(holder))
        holder[key], holder[other] = holder[other], holder[key]
    elif what < 0.9:
        for _ in range(random.choice((1, 3, 2000))):
            holder[key] = [holder[key]]
            if random.random() < 0.3:
                break
    elif isinstance(holder, list):
        holder.append(deepcopy(holder[key]))
    else:
        holder[random.choice(("id", "", "\u0073ize", "counts", "segmentation"))] = deepcopy(holder[key])
