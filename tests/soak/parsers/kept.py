"""What Variegate wrote and finds again: disk caches, policies, statistics, states of loaders, and all that lies in the
destination of an expansion."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

import variegate as vg
from tests.images import photo
from tests.jobs.augment.samples import expansion, lay_photos, threads
from tests.ops.examples import EXAMPLES, MIXERS, POLICIES
from tests.soak.mutating import NUMBERS, Parser, changed, kept_folder, mutated, mutated_json
from variegate.data.base import SourceError
from variegate.data.packed import ImageSums, PixelSums, parse_statistics, statistics_bytes
from variegate.data.storage import open_storage
from variegate.jobs.arguments import build_transform
from variegate.jobs.augment.replay import replay
from variegate.jobs.output.manifest import read_manifest, write_checksum
from variegate.jobs.output.parts import write_record
from variegate.jobs.output.verify import verify
from variegate.loader import cache as disk_cache
from variegate.policies.load import scaled_policy
from variegate.program.depth import Depth

_RECORD = disk_cache._RECORD


def _make_cache(random: Random, folder: Path) -> Path:
    """Records with the checksums that belong to them, mostly."""
    root = folder / "cache"
    made = disk_cache.DiskCache(root, "key", 1 << 20)
    for number in range(4):
        made.put(number, photo(5 + number, 7), number / 2 if number % 2 else number)
    (index,) = root.rglob("*.index")
    if random.random() < 0.3:
        file = random.choice((index, index.with_suffix(".pixels")))
        file.write_bytes(mutated(file.read_bytes(), random))
        return root
    records, pixels = np.fromfile(index, _RECORD), index.with_suffix(".pixels").read_bytes()
    for _ in range(random.randint(1, 3)):
        field = random.choice(_RECORD.names or ())
        kind = _RECORD[field]
        value = np.array(random.choice(NUMBERS) & ((1 << 8 * kind.itemsize) - 1), f"<u{kind.itemsize}").view(kind)
        records[field][random.randrange(4)] = value
    for row in records:
        begin = int(row["offset"])
        end = begin + int(row["height"]) * int(row["width"]) * int(row["channels"])
        row["checksum"] = disk_cache._checksum(row, pixels[begin:end])
    records.tofile(index)
    return root


def _parse_cache(root: Path) -> None:
    found = disk_cache.DiskCache(root, "key", 1 << 20)
    for number in (*range(5), *NUMBERS):
        one = found.get(number)
        assert one is None or (one[0].ndim == 3 and one[0].size and one[0].shape[2] in (1, 3))


@cache
def _described() -> list[dict[str, Any]]:
    """Transforms of every kind, and what policy files may be besides."""
    one = [[["Rotate", 0.8, 9], ["Invert", 0.1, None]]]
    whole = vg.load_policy("pba-cifar10").resolved.to_dict()  # type: ignore[attr-defined]
    files = [{"format": "variegate-policy/1", "policy": one, "space": "imagenet"}, whole]
    every = [t for some in (*EXAMPLES.values(), *MIXERS.values(), POLICIES) for t in some]
    return files * 5 + [t.to_dict() for t in every]


def _make_policy(random: Random, folder: Path) -> Path:
    described = random.choice(_described())
    if random.random() < 0.7:
        path, data = folder / "p.json", mutated_json(described, random)
        if random.random() < 0.7:  # else most of what is changed is the name of a class
            data = json.dumps(changed(described, random, 2) | {"type": described.get("type", "Compose")}).encode()
    else:
        path, data = folder / "p.yaml", yaml.safe_dump(described, default_flow_style=None).encode()
        data = mutated(data, random)
    path.write_bytes(data)
    return path


def _parse_policy(path: Path) -> None:
    """As commands take it; what is taken is drawn, and run on a small image."""
    transform = build_transform(str(path), None)
    scaled_policy(str(path), 7)
    try:
        vg.Augmenter(transform, num_threads=1)([photo(20, 30)] * 2, ids=[3, 4], partners="batch")
    except ValueError as error:  # such as a crop that is larger than the image, which no file is to blame for
        if "accepted: " not in str(error):
            raise


def _make_statistics(random: Random, folder: Path) -> Path:
    sums = PixelSums()
    sums.add(ImageSums(3, [300, 400, 500], [60_000, 80_000, 90_000]))
    path = folder / "statistics.json"
    path.write_bytes(mutated_json(json.loads(statistics_bytes(sums, random.choice(list(Depth)).white)), random))
    return path


def _parse_statistics(path: Path) -> None:
    parse_statistics(path.read_bytes(), str(path))


def _loader() -> vg.Loader:
    source = (np.zeros((12, 5, 6, 3), np.uint8), list(range(12)))
    return vg.Loader(source, vg.transforms.Invert(), batch_size=4, num_threads=1, rank=0, world_size=1)


@cache
def _state() -> dict[str, Any]:
    loader = _loader()
    next(iter(loader))
    return loader.state_dict()


def _make_state(random: Random, folder: Path) -> Path:
    path = folder / "state_dict"  # named so, as messages speak of the argument
    path.write_bytes(json.dumps(changed(_state(), random, 2)).encode())
    return path


def _parse_state(path: Path) -> None:
    loader, state = _loader(), json.loads(path.read_bytes())
    try:
        loader.load_state_dict(state)
    except ValueError as error:
        if not str(error).startswith("state_dict: "):
            raise
        raise SourceError(str(error)) from error
    list(loader)


@cache
def _template() -> Path:
    """``photos``, ``out``: a run that is complete; ``begun``: one of which a part is done."""
    root = kept_folder()
    photos, out, begun = lay_photos(root / "photos"), root / "out", root / "begun"
    expansion(photos, out, threads(1), size=(8, 8), copies=2).run()
    stop = Event()
    stop.set()
    expansion(photos, begun, threads(1), size=(8, 8), copies=2, stop=stop).run()
    rows = pq.read_table(out / "manifest.parquet").to_pylist()
    plan = expansion(photos, begun, threads(1), size=(8, 8), copies=2).plan
    write_record(open_storage(begun), 0, rows[: len(plan.outputs_of(0))])
    for row in rows[: len(plan.outputs_of(0))]:
        place = begun / row["file"]
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(out / row["file"], place)
    return root


def _make_manifest(random: Random, folder: Path) -> Path:
    out = folder / "out"
    shutil.copytree(_template() / "out", out)
    file = out / "manifest.parquet"
    if random.random() < 0.3:
        file.write_bytes(mutated(file.read_bytes(), random))
    else:
        _mutate_table(file, random)
    if random.random() < 0.8:
        write_checksum(open_storage(out))
    return out


def _mutate_table(file: Path, random: Random) -> None:
    """A value of a column, or the settings in the metadata."""
    table = pq.read_table(file)
    metadata = dict(table.schema.metadata or {})
    if b"variegate.settings" in metadata and random.random() < 0.5:
        metadata[b"variegate.settings"] = mutated_json(json.loads(metadata[b"variegate.settings"]), random)
    else:
        place = random.randrange(table.num_columns)
        field, values = table.field(place), table.column(place).to_pylist()
        row = random.randrange(len(values))
        if field.name in ("operations", "targets", "packed"):
            values[row] = mutated_json(json.loads(values[row]), random).decode(errors="ignore")
        elif pa.types.is_string(field.type):
            values[row] = random.choice((None, "", "../../x", "a\nb", "/", ".", "7", "\x1b[2J", "x" * 5000))
        else:
            values[row] = random.choice([n for n in (None, *NUMBERS) if n is None or _fits(n, field.type)])
        table = table.set_column(place, field, pa.array(values, field.type))
    pq.write_table(table.replace_schema_metadata(metadata), file, write_page_checksum=True)


def _fits(number: int, kind: pa.DataType) -> bool:
    lowest = 0 if pa.types.is_unsigned_integer(kind) else -(1 << kind.bit_width - 1)
    return lowest <= number < lowest + (1 << kind.bit_width)


def _parse_manifest(out: Path) -> None:
    manifest = read_manifest(out)
    verify(out, 1)
    for row, _ in enumerate(manifest.rows()):
        if row < 3:
            replay(out, row, _template() / "photos")


def _make_expansion(random: Random, folder: Path) -> Path:
    """What lies beside the outputs of a run that resumes, and its record."""
    out = folder / "out"
    shutil.copytree(_template() / random.choice(("begun", "begun", "begun", "out")), out)
    file = random.choice([one for name in _BESIDE for one in out.glob(name)])
    if file.suffix == ".json" and random.random() < 0.9:
        file.write_bytes(mutated_json(json.loads(file.read_bytes()), random))
    elif file.name in ("variegate.source", "manifest.parquet") and random.random() < 0.7:
        _mutate_table(file, random)
    else:
        file.write_bytes(mutated(file.read_bytes(), random))
    if file.name == "manifest.parquet" and random.random() < 0.8:
        write_checksum(open_storage(out))
    return out


_BESIDE = ("variegate.json", "variegate.source", "manifest.*", ".variegate/parts/*", ".variegate/parts/*", "a/*")


def _parse_expansion(out: Path) -> None:
    """Gone on with, in the end: it is made, or refused."""
    expansion(_template() / "photos", out, threads(1), size=(8, 8), copies=2).run()


PARSERS = (
    Parser("cache", _make_cache, _parse_cache),
    Parser("policy", _make_policy, _parse_policy),
    Parser("statistics", _make_statistics, _parse_statistics),
    Parser("state", _make_state, _parse_state),
    Parser("manifest", _make_manifest, _parse_manifest),
    Parser("expansion", _make_expansion, _parse_expansion),
)
