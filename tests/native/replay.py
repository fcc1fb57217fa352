"""Run random programs here, and compare the pixels on another processor or with another library.

    python -m tests.native.replay record FILE [PROGRAMS]
    python -m tests.native.replay compare FILE

``compare`` needs no package but NumPy: ``make test-aarch64`` runs it in an emulator.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import platform
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.executors.cpu import run
from variegate.native.library import level
from variegate.ops import tone, windows  # noqa: F401  # which declare instructions
from variegate.program.lowering import lower
from variegate.program.ops import Op
from variegate.program.program import Program

Image = npt.NDArray[np.uint8]
GEOMETRIES = ("composed", "exact")
# Programs are compared in their lowered form too, so that a difference of pixels is traced to lowering or kernels.
LOWERED = ("opcode", "args", "flags", "fill", "out_size", "window", "pass_of", "num_passes", "passes")


@dataclass(frozen=True)
class Case:
    """A program with the images that it reads, and fingerprints of what this processor made of them."""

    program: Program
    images: list[Image]
    geometry: str
    lowered: dict[str, str]
    results: list[str]


def make_case(program: Program, images: list[Image], geometry: str) -> Case:
    fused = lower(program, geometry)
    lowered = {name: fingerprint(used_slots(fused, name)) for name in LOWERED}
    lowered["tables"] = fingerprint([fused.tables.luts, fused.tables.kernels, fused.tables.filters])
    results = [fingerprint([result]) for result in run(fused, images, num_threads=1)]
    return Case(program, images, geometry, lowered, results)


def used_slots(fused: Program, name: str) -> list[npt.NDArray[Any]]:
    """An array of a lowered program, row by row, without slots that nobody has written."""
    array: npt.NDArray[Any] = getattr(fused, name)
    if name == "num_passes":
        return [array]
    numbers = fused.num_passes if name == "passes" else fused.length
    return [slots[:number] for slots, number in zip(array, numbers.tolist(), strict=True)]


def fingerprint(arrays: Sequence[npt.NDArray[Any]]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for array in arrays:
        state.update(f"{array.dtype.str}{array.shape}".encode())
        state.update(np.ascontiguousarray(array).tobytes())
    return state.hexdigest()


def random_cases(number: int) -> Iterator[Case]:
    from tests.programs import SEMANTIC, random_program

    for seed in range(number):
        program, images, _ = random_program(50_000 + seed, (*SEMANTIC, Op.JPEG))
        yield make_case(program, images, GEOMETRIES[seed % 2])


def record(file: Path, number: int) -> None:
    with file.open("wb") as opened:
        for case in random_cases(number):
            pickle.dump(case, opened)
    print(f"{file}: {number} programs, recorded on {platform.machine()} at level {level()}")


def read(file: Path) -> Iterator[Case]:
    with file.open("rb") as opened:
        while opened.peek(1):
            case: Case = pickle.load(opened)
            yield case


def compare(file: Path) -> int:
    """Print what differs -> the number of programs with other pixels."""
    programs = images = wrong = 0
    different_arrays: Counter[str] = Counter()
    for case in read(file):
        again = make_case(case.program, case.images, case.geometry)
        programs += 1
        images += len(case.images)
        different_arrays.update(name for name in case.lowered if again.lowered[name] != case.lowered[name])
        differing = [row for row, found in enumerate(again.results) if found != case.results[row]]
        wrong += bool(differing)
        for row in differing[: 3 if wrong < 10 else 0]:
            print(f"program {programs - 1}, row {row}, {case.geometry}: {case.program.operations(row)}")
    print(f"{programs} programs, {images} images on {platform.machine()} at level {level()}: {wrong} differ")
    if different_arrays:
        print(f"programs with another lowered form, by array: {dict(different_arrays)}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("programs", type=int, nargs="?", default=2000)
    arguments = parser.parse_args()
    if arguments.action == "record":
        record(arguments.file, arguments.programs)
    elif compare(arguments.file):
        sys.exit(1)


if __name__ == "__main__":
    # Pickles name the module that made them.
    from tests.native import replay

    replay.main()
