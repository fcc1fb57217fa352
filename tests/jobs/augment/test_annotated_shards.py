"""Shards with boxes, masks and key points: written with the same members, or columns, as they were read from."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.annotated.test_members import mask_of
from tests.data.tars import Members, as_json, encoded, png, write_tar
from tests.jobs.augment.samples import digest, rows, threads
from tests.jobs.augment.test_annotated import POLICY, expansion
from variegate import transforms as T
from variegate.augmenter.augmenter import Augmenter
from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.decode import read_image
from variegate.jobs.augment.replay import replay
from variegate.jobs.engine import Engine
from variegate.jobs.output.verify import verify
from variegate.targets.settings import Targets

COUNT = 5
ENDINGS = {"webdataset": "tar", "parquet": "parquet"}


def objects(n: int) -> dict[str, Any]:
    """Of a photo 24 + n high and 32 wide; of every third, none."""
    boxes: list[Any] = [[2.0 + n, 3, 12, 9], [10, 8, 20, 14]][: n % 3]  # x, y, width, height
    points = [[[x + 1.5, y + 2.5, 2], [x + w, y, 0 if k else 1]] for k, (x, y, w, _) in enumerate(boxes)]
    return {
        "bbox": boxes,
        "category": [n % 2, 2][: len(boxes)],
        "keypoints": points,
        "weight": [0.5 + n, 7.0][: len(boxes)],
    }


def one_by_one(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(record, values, strict=True)) for values in zip(*record.values(), strict=True)]


def put_tar(root: Path, form: str = "lists") -> tuple[Path, dict[str, Any]]:
    some: Members = []
    for n in range(COUNT):
        record: Any = objects(n)
        text = {"lists": record, "list": one_by_one(record), "under": {"objects": one_by_one(record), "more": 1}}[form]
        some += [(f"{n}.jpg", encoded(n)), (f"{n}.json", as_json(text)), (f"{n}.mask.png", png(mask_of(n)))]
    root.mkdir(parents=True, exist_ok=True)
    (root / "classnames.txt").write_text("ant\nbee\ncat\n")
    write_tar(root / "a.tar", some)
    return root / "a.tar", {"objects": "json", "mask": "mask.png", "per_box": ["weight"]}


def put_parquet(root: Path, form: str = "objects") -> tuple[Path, dict[str, Any]]:
    root.mkdir(parents=True, exist_ok=True)
    records: list[Any] = [objects(n) for n in range(COUNT)]
    names = {"names": ["ant", "bee", "cat"], "_type": "ClassLabel"}
    columns: dict[str, Any]
    if form == "flat":
        columns = {name: [record[name] for record in records] for name in records[0]}
        features: Any = {"category": {"feature": names, "_type": "Sequence"}}
    else:
        columns = {"objects": records if form == "objects" else [one_by_one(record) for record in records]}
        features = {"objects": {"feature": {"category": names}, "_type": "Sequence"}}
    columns["photo"] = [{"bytes": encoded(n), "path": None} for n in range(COUNT)]
    columns["mask"] = [{"bytes": png(mask_of(n)), "path": None} for n in range(COUNT)]
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), root / "a.parquet")
    return root / "a.parquet", {"format": "columns", "image": "photo", "per_box": ["weight"]}


def laid(layout: str, root: Path, *form: str) -> tuple[Path, dict[str, Any]]:
    return (put_tar if layout == "webdataset" else put_parquet)(root, *form)


def run(layout: str, place: Path, annotations: Any, out: Path, engine: Engine | None = None, **more: Any) -> Any:
    return expansion(place, annotations, out, engine, **{"layout": layout, "shard_size": 4, "format": "jpg"} | more)


FORMS = [("webdataset", form) for form in ("lists", "list", "under")]
FORMS += [("parquet", form) for form in ("objects", "list", "flat")]


@pytest.mark.parametrize(("layout", "form"), FORMS)
def test_what_is_read_back_is_the_augmenters(tmp_path: Path, layout: str, form: str) -> None:
    """Whatever made it; every row can be made again, and a lost shard too."""
    place, annotations = laid(layout, tmp_path / "data", form)
    out, settings = tmp_path / "out", {"targets": Targets(mask_fill=9)}
    run(layout, place, annotations, out, **settings).run()
    run(layout, place, annotations, tmp_path / "three", threads(3), **settings).run()
    whole = digest(out)
    assert whole == digest(tmp_path / "three")
    assert verify(out).problems == []
    shards = sorted(out.glob(f"shard-*.{ENDINGS[layout]}"))
    source: Any = open_source(place, annotations=annotations)
    back: Any = open_source(list(map(str, shards)), annotations=annotations)
    assert back.classes == source.classes == ("ant", "bee", "cat")
    assert len(back) == 3 * COUNT
    augmenter = Augmenter(POLICY, seed=4, layout="NHWC")
    options = Targets(mask_fill=9, per_box=["weight"])
    counted = 0
    for number, row in enumerate(rows(out)):
        item = source.read(row["index"])
        sample = {"image": read_image(item.data), **item.targets}
        [made] = augmenter([sample], ids=[row["id"]], copy=row["copy"], targets=options)
        found = back.read(number).targets
        np.testing.assert_allclose(found["boxes"], made["boxes"], atol=0.0011)
        np.testing.assert_array_equal(found["mask"], made["mask"])
        assert found["labels"].tolist() == made["labels"].tolist()
        assert list(found["weight"]) == list(made["weight"])
        if len(made["boxes"]):
            np.testing.assert_allclose(found["keypoints"], made["keypoints"], atol=0.0006)
        counted += len(made["labels"])
        again = replay(out, number)
        assert again.is_same
        assert again.targets == row["targets"]
        assert again.mask is not None
    assert counted > 6
    for path in out.glob("*.index"):  # of the reader
        path.unlink()
    shards[1].unlink()
    with pytest.warns(UserWarning, match="of an earlier run again"):
        run(layout, place, annotations, out, **settings).run()
    assert digest(out) == whole


def member_of(out: Path, name: str) -> bytes:
    with tarfile.open(out / "shard-000000.tar") as opened:
        member = opened.extractfile(name)
        assert member is not None
        return member.read()


FRAMES: list[tuple[dict[str, Any], list[Any], list[Any], list[Any], list[Any]]] = [
    (
        {"box_format": "cxcywh", "normalized": True},
        [0.5, 0.5, 0.25, 0.5],
        [0.5, 0.25, 2],
        [0.5, 0.5, 0.25, 0.5],
        [0.5, 0.25, 2],
    ),
    ({"box_format": "xywh", "point_origin": "center"}, [4, 6, 8, 12], [9, 6, 2], [20, 6, 8, 12], [22, 6, 2]),
]


@pytest.mark.parametrize(("options", "box", "point", "flipped", "moved"), FRAMES, ids=["parts of sides", "centres"])
def test_numbers_stay_in_the_frame_they_have(
    tmp_path: Path, options: dict[str, Any], box: Any, point: Any, flipped: Any, moved: Any
) -> None:
    record = {"boxes": [box], "labels": [1], "keypoints": [[point, [0, 0, 0]]]}
    file = write_tar(tmp_path / "a.tar", [("7.jpg", encoded(0)), ("7.json", as_json(record))])
    run("webdataset", Path(file), options, tmp_path / "out", transform=T.RandomHorizontalFlip(1.0), copies=1).run()
    told = json.loads(member_of(tmp_path / "out", "00000000_0.json"))
    assert (told["boxes"], told["labels"]) == ([flipped], [1])
    assert told["keypoints"][0][0] == moved
    assert told["keypoints"][0][1][2] == 0


def test_rows_of_yolo(tmp_path: Path) -> None:
    some: Members = [("7.jpg", encoded(0)), ("7.txt", b"2 0.25 0.5 0.25 0.5 0.25 0.5 2\n"), ("8.jpg", encoded(1))]
    file = write_tar(tmp_path / "a.tar", some)
    annotations = {"rows": "txt", "points": [1, 3]}
    run("webdataset", Path(file), annotations, tmp_path / "out", transform=T.RandomHorizontalFlip(1.0), copies=1).run()
    written = member_of(tmp_path / "out", "00000000_0.txt")
    assert written == b"2 0.750000 0.500000 0.250000 0.500000 0.750000 0.500000 2\n"
    with tarfile.open(tmp_path / "out/shard-000000.tar") as opened:
        assert opened.getnames() == [f"0000000{n}_0.{kind}" for n in range(2) for kind in ("jpg", "json", "txt")]


def test_what_shards_cannot_hold_is_refused(tmp_path: Path) -> None:
    place, annotations = put_tar(tmp_path / "data")
    with pytest.raises(ValueError, match=r"layout: got 'parquet'; accepted: 'webdataset' for this source"):
        run("parquet", place, annotations, tmp_path / "out")
    some: Members = [("7.jpg", encoded(0)), ("7.png", png(mask_of(0)))]
    file = Path(write_tar(tmp_path / "b.tar", some))
    with pytest.raises(SourceError, match="format: got 'png', as the members of masks end; accepted here: jpg, webp"):
        run("webdataset", file, {"mask": "png"}, tmp_path / "out", format="png")
