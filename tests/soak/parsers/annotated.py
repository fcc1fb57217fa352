"""Annotations of every layout, read with their masks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from copy import deepcopy
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

from tests.data.annotated.made import coco_entries, put_coco, put_voc, put_yolo
from tests.data.tars import write_tar
from tests.soak.mutating import Parser, changed, kept_folder, mutated, mutated_json
from variegate.data.opening import open_source


@cache
def _template(put: Callable[[Path], Any]) -> Path:
    root = kept_folder()
    put(root)
    return root


def _read_all(opened: Callable[..., Any]) -> None:
    """Every sample, with wrong objects refused and left out; the last error is raised, once all was tried."""
    last: ValueError | None = None
    for on_error in ("raise", "skip"):
        try:
            source = opened(on_error=on_error)
        except ValueError as error:
            last = error
            continue
        for index in range(len(source)):
            try:
                source.read(index)
            except ValueError as error:
                last = error
    if last is not None:
        raise last


@cache
def _entries() -> dict[str, Any]:
    """With an object of each kind of outline."""
    entries = coco_entries()
    entries["annotations"][1] |= {"segmentation": {"size": [40, 60], "counts": "T3d0XW2"}}
    crowd = {"iscrowd": 1, "segmentation": {"size": [50, 50], "counts": [10, 20, 2470]}}
    entries["annotations"].append({**entries["annotations"][2], "id": 503, **crowd})
    entries["categories"][2]["keypoints"] = ["head", "tail"]
    entries["annotations"][0]["keypoints"] = [7, 11, 2, 0, 0, 0]
    return entries


def _make_coco(random: Random, folder: Path) -> Path:
    return _put_coco(folder, mutated_json(_entries(), random))


def _make_outlines(random: Random, folder: Path) -> Path:
    """Polygons and runs are all that is changed: what kernels get."""
    entries = deepcopy(_entries())
    one = random.choice(entries["annotations"])
    one["segmentation"] = changed([one["segmentation"]], random, 2)
    if len(one["segmentation"]) == 1:
        one["segmentation"] = one["segmentation"][0]
    return _put_coco(folder, json.dumps(entries).encode())


def _put_coco(folder: Path, text: bytes) -> Path:
    shutil.copytree(_template(put_coco) / "images", folder / "images")
    file = folder / "instances.json"
    file.write_bytes(text)
    return file


def _parse_coco(file: Path) -> None:
    options: dict[str, Any] = {"file": file, "mask": "each", "ignored": True}
    _read_all(partial(open_source, file.parent / "images", annotations=options))


def _make_beside(random: Random, folder: Path, put: Callable[[Path], Any], pattern: str) -> Path:
    """One of the files of text."""
    root = folder / "data"
    shutil.copytree(_template(put), root)
    file = random.choice(sorted(root.glob(pattern)))
    data = file.read_bytes()
    if pattern.endswith(".txt") and random.random() < 0.7:
        data = b"\n".join([data, b"1 0.1 0.1 0.9 0.1 0.9 0.9 0.1 0.8"])
    file.write_bytes(mutated(data, random))
    return root


def _parse_folder(root: Path, layout: str, **options: Any) -> None:
    _read_all(partial(open_source, root, annotations={"format": layout, **options}))


_RECORD = {"bbox": [[5, 10, 20, 20], [1, 2, 9, 9]], "category": [0, 1], "keypoints": [[[3, 4, 2]], [[5, 6, 0]]]}


def _make_members(random: Random, folder: Path) -> Path:
    shard = folder / "s-0.tar"
    image = (_template(put_coco) / "images" / "a.png").read_bytes()
    members = [("0.png", image), ("0.json", json.dumps(_RECORD).encode())]
    write_tar(shard, [*members, ("1.png", image), ("1.json", mutated_json(_RECORD, random))])
    return shard


def _parse_members(shard: Path) -> None:
    _read_all(partial(open_source, shard, annotations="members"))


PARSERS = (
    Parser("outlines", _make_outlines, _parse_coco),
    Parser("coco", _make_coco, _parse_coco),
    Parser(
        "yolo",
        partial(_make_beside, put=put_yolo, pattern="labels/*.txt"),
        partial(_parse_folder, layout="yolo", mask="each"),
    ),
    Parser(
        "voc",
        partial(_make_beside, put=put_voc, pattern="Annotations/*.xml"),
        partial(_parse_folder, layout="voc"),
    ),
    Parser("members", _make_members, _parse_members),
)
