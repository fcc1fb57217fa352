"""Shards of raw pixels: any numbers in their columns, any classes, and any bytes."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa

from tests.soak.mutating import NUMBERS, Parser, mutated, mutated_json
from variegate.data.opening import open_source
from variegate.data.raw import raw_schema
from variegate.data.shards import Labels
from variegate.decode.depth import note_once
from variegate.program.depth import Depth


def _make(random: Random, folder: Path) -> Path:
    depth = random.choice(list(Depth))
    schema = raw_schema(Labels("int", 0, ("one", "two")), depth)
    columns = {
        "id": [0, 1, 2],
        "height": [4, 4, 4],
        "width": [5, 5, 5],
        "channels": [3, 1, 3],
        "shown": [3, 3, 3],
        "name": [b"a", b"b", b"c"],
        "label": [0, 1, 0],
        "pixels": [random.randbytes(count * depth.dtype.itemsize) for count in (60, 20, 60)],
    }
    if random.random() < 0.5:
        name = random.choice(("id", "height", "width", "channels", "shown"))
        bits = schema.field(name).type.bit_width
        columns[name][random.randrange(3)] = random.choice(NUMBERS) & ((1 << bits) - 1)
    if random.random() < 0.3:
        classes = mutated_json(json.loads(schema.metadata[b"classes"]), random)
        schema = schema.with_metadata({**schema.metadata, b"classes": classes})
    if random.random() < 0.2:
        dtype = random.choice((*map(str, Depth), ">u2", "float64", "object", "", "\udcff", "uint16\n"))
        schema = schema.with_metadata({**schema.metadata, b"dtype": dtype.encode(errors="surrogateescape")})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(pa.table(columns, schema=schema))
    data = sink.getvalue().to_pybytes()
    path = folder / "s.arrow"
    path.write_bytes(mutated(data, random) if random.random() < 0.4 else data)
    return path


def _parse(path: Path) -> None:
    source = open_source(path)
    labels = source.labels(np.arange(len(source)))  # type: ignore[union-attr]
    assert len(labels) == len(source)  # type: ignore[arg-type]
    for index in range(len(source)):  # type: ignore[arg-type]
        source.name(index)  # type: ignore[union-attr]
        with note_once(set(), keeps_depth=True):
            source.read(index).data.max()  # type: ignore[union-attr]


PARSERS = (Parser("raw", _make, _parse),)
