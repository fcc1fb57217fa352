"""Shards of raw pixels, with checksums that are right."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np

from tests.soak.mutating import NUMBERS, Parser, mutated, mutated_json
from variegate.formats.opening import open_source
from variegate.formats.raw import FIRST_LINE, PLACES, index_bytes, padding, tail_bytes


def _make(random: Random, folder: Path) -> Path:
    head = FIRST_LINE + padding(len(FIRST_LINE))
    pixels = random.randbytes(64 * 4)
    places = np.zeros(3, PLACES)
    places["offset"], places["id"], places["channels"], places["shown"] = (64, 128, 192), (0, 1, 2), (3, 1, 3), 3
    places["height"], places["width"] = 4, 5
    if random.random() < 0.5:
        field = random.choice(PLACES.names or ())
        size = PLACES[field].itemsize
        places[field][random.randrange(3)] = random.choice(NUMBERS) & ((1 << 8 * size) - 1)
    index = index_bytes(places, [0, 1, 0], "int", ["a", "b", "c"], ["one", "two"])
    line, _, rest = index.partition(b"\n")
    if random.random() < 0.5:
        line = mutated_json(json.loads(line), random)
        begin = -(-(len(line) + 1) // 64) * 64 - len(line) - 1
        index = line + b"\n" + bytes(begin) + rest[-(-(len(index) - len(rest)) // 64) * 64 - (len(index) - len(rest)) :]
    if random.random() < 0.3:
        index = mutated(index, random)
    path = folder / "s.vgraw"
    body = head + pixels
    path.write_bytes(body + index + tail_bytes(len(body), index))
    return path


def _parse(path: Path) -> None:
    source = open_source(path)
    labels = source.labels(np.arange(len(source)))  # type: ignore[union-attr]
    assert len(labels) == len(source)  # type: ignore[arg-type]
    for index in range(len(source)):  # type: ignore[arg-type]
        source.name(index)  # type: ignore[union-attr]
        source.read(index)  # type: ignore[union-attr]


PARSERS = (Parser("raw", _make, _parse),)
