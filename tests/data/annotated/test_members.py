"""Objects and masks in members of WebDataset shards: the same by index and in shards."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.data.tars import Members, as_json, encoded, indices_of, png, read_all, tar_bytes, write_tar
from variegate.errors import DecodeError


def mask_of(n: int) -> Any:
    return np.full((24 + n, 32), n + 1, np.uint8)


def members(count: int, mask: str = "mask.png", first: int = 0) -> Members:
    found: Members = []
    for n in range(first, first + count):
        record = {"boxes": [[n, 2, n + 5, 6]] * (n % 3), "labels": [n] * (n % 3)}
        row = f"{n} 0.5 0.5 0.25 0.5\n".encode()
        found += [(f"{n:04}.jpg", encoded(n)), (f"{n:04}.json", as_json(record)), (f"{n:04}.txt", row)]
        found.append((f"{n:04}.{mask}", png(mask_of(n))))
    return found


def read(source: Any) -> list[Any]:
    """(id, item) of every sample, in order, from either kind of source."""
    ids = source.ids(np.array(indices_of(source)))
    return list(zip(ids.tolist(), read_all(source), strict=True))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mask", ["mask.png", "png", "PNG"])
def test_members_by_name(tmp_path: Path, stream: bool, mask: str) -> None:
    for shard in range(2):
        write_tar(tmp_path / f"{shard}.tar", members(4, mask, 4 * shard))
    names = {"objects": "json", "mask": mask}
    source = vg.open_source(str(tmp_path / "{0..1}.tar"), annotations=names, stream=stream)
    found = read(pickle.loads(pickle.dumps(source)))
    assert [id for id, _ in found] == [shard << 32 | at for shard in range(2) for at in range(4)]
    for n, (_, item) in enumerate(found):
        assert item.data == encoded(n)
        assert item.targets["boxes"].tolist() == [[n, 2, n + 5, 6]] * (n % 3)
        assert item.targets["labels"].tolist() == [n] * (n % 3)
        np.testing.assert_array_equal(item.targets["mask"], mask_of(n))
    assert source.notes() == []


@pytest.mark.parametrize("stream", [False, True])
def test_rows_of_yolo(tmp_path: Path, stream: bool) -> None:
    some = members(3)
    some = [one for one in some if one[0] != "0001.txt"]  # no such member: no objects
    file = write_tar(tmp_path / "a.tar", some)
    found = read(vg.open_source(file, annotations="members,rows=txt", stream=stream))
    assert [item.targets["labels"].tolist() for _, item in found] == [[0], [], [2]]
    np.testing.assert_allclose(found[2][1].targets["boxes"], [[12, 6.5, 20, 19.5]])


def test_an_image_that_comes_after_its_mask_is_the_image(tmp_path: Path) -> None:
    file = write_tar(
        tmp_path / "a.tar", [("7.png", png(mask_of(0))), ("7.jpg", encoded(0)), ("8.png", encoded(1, "png"))]
    )
    for stream in (False, True):
        source = vg.open_source(file, annotations={"mask": "png"}, stream=stream)
        found = read_all(source)
        assert found[0].data == encoded(0)
        assert "no image: 8 has a mask alone" in str(found[1])


def test_a_missing_member_and_a_wrong_row_are_named(tmp_path: Path) -> None:
    some = [
        (name, b"0 0.5 0.5 2 x\n" if name == "0001.txt" else data) for name, data in members(2) if name != "0000.json"
    ]
    file = write_tar(tmp_path / "a.tar", some)
    with pytest.raises(DecodeError, match=r"0000\.jpg: no member 0000\.json next to it"):
        vg.open_source(file, annotations="members").read(0)
    with pytest.raises(DecodeError, match=r"0001\.txt: its annotations: line 1: got '0 0\.5 0\.5 2 x'"):
        vg.open_source(file, annotations={"rows": "txt"}).read(1)
    source = vg.open_source(file, annotations={"rows": "txt"}, on_error="skip")
    assert len(source.read(1).targets["boxes"]) == 0
    assert "skipped 1 invalid object" in source.notes()[-1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_shard_gives_what_is_whole(tmp_path: Path, stream: bool) -> None:
    whole = tar_bytes(members(3))
    file = tmp_path / "a.tar"
    file.write_bytes(whole[: len(whole) * 3 // 5])
    source = vg.open_source(file, annotations="members", on_error="skip", stream=stream)
    found = read_all(source)
    assert found[0].targets["boxes"].shape == (0, 4)
    assert isinstance(found[-1], DecodeError)


def test_excluded_samples_of_shards_leave_the_others_their_targets(tmp_path: Path) -> None:
    file = write_tar(tmp_path / "a.tar", members(3))
    source = vg.open_source(file, annotations="members", stream=True, exclude=["a.tar: 0001.jpg"])
    assert source.has_targets
    assert [item.targets["labels"].tolist() for _, item in read(source)] == [[], [2, 2]]
