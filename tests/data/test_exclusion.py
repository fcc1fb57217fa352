"""Samples that are excluded by their names: lists, what is said of them, and that all else stays what it was."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.contract import folder, pictures, shards
from tests.data.tars import indices_of, read_all
from variegate.apps.preview.choosing import choose_images
from variegate.data.base import SourceError
from variegate.data.filtered import SourceWithExclusions, sample_keys
from variegate.data.indexing import index_source
from variegate.data.opening import open_source
from variegate.data.stamps import stamps_of
from variegate.loader import Loader
from variegate.transforms import Compose, RandomResizedCrop, Rotate


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder(tmp_path / "photos", pictures())
    return tmp_path / "photos"


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    path = tmp_path / "out.txt"
    path.write_text("# what was found\nant/000.jpg\r\n\ncat/006.jpg\nno/such.jpg\n")
    return path


def test_names_ids_labels_and_classes_stay_what_they_were(place: Path, listed: Path) -> None:
    whole, source = open_source(place), open_source(place, exclude=listed)
    assert sample_keys(source) == sample_keys(whole)[1:-1]
    assert source.classes == whole.classes
    every = np.arange(len(source))
    np.testing.assert_array_equal(source.ids(every), whole.ids(every + 1))
    np.testing.assert_array_equal(source.labels(every), whole.labels(every + 1))
    assert (source.folder, source.relative_path(0)) == (whole.folder, whole.relative_path(1))
    assert source.name(0) == whole.name(1)
    assert list(stamps_of(source).names) == sample_keys(source)  # type: ignore[union-attr]
    assert source.notes() == [
        "excluded: 2 of 7 images, by the names of out.txt",
        "of no image: 1 of the names to exclude of out.txt, such as 'no/such.jpg'",
    ]


def test_a_class_that_loses_all_its_images_keeps_its_number(place: Path) -> None:
    ants = [key for key in sample_keys(open_source(place)) if key.startswith("ant/")]
    source = open_source(place, exclude=ants)
    assert source.classes == ("ant", "bee", "cat")
    loader = Loader(source, RandomResizedCrop(8), 5, weights="balanced", seed=0, device="cpu", num_threads=1)
    assert set(np.concatenate([batch.labels for batch in loader]).tolist()) == {1, 2}


@pytest.mark.filterwarnings("ignore:.*of out.txt")
def test_the_others_are_augmented_indexed_and_shown_as_beside_those_left_out(
    place: Path, listed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VARIEGATE_CACHE", str(tmp_path / "cache"))
    transform = Compose([Rotate(30), RandomResizedCrop(16)])
    without = SourceWithExclusions(str(place), listed)

    def made(source: Any) -> dict[int, Any]:
        loader = Loader(source, transform, 2, seed=3, shuffle=False, num_threads=1, device="cpu")
        return {int(id): image.numpy() for batch in loader for id, image in zip(batch.ids, batch.images, strict=True)}

    whole, some = made(open_source(place)), made(without)
    assert len(some) == len(whole) - 2
    for id, image in some.items():
        np.testing.assert_array_equal(image, whole[id])
    indexed = [index_source(one) for one in (str(place), without)]
    assert indexed[0].path == indexed[1].path
    assert [one.images for one in indexed] == [7, 5]
    chosen = choose_images(without, 8).images
    assert [image.name for image in chosen] == sample_keys(open_source(place))[1:-1]
    assert [image.sample_id for image in chosen] == [1, 2, 3, 4, 5]
    with pytest.raises(SourceError, match=r"--exclude: got .* is one image; leave it out"):
        choose_images(SourceWithExclusions(str(place / "ant" / "000.jpg"), listed), 8)


def test_fingerprints_tell_what_is_left_out_and_not_how_it_is_said(place: Path, listed: Path) -> None:
    lists: list[Any] = [None, [], listed, ["cat/006.jpg", "ant/000.jpg"], ["ant/000.jpg"]]
    prints = [open_source(place, exclude=given).fingerprint for given in lists]
    assert prints[0] == prints[1]
    assert prints[2] == prints[3]
    assert len(set(prints)) == 3


def test_shards_give_what_the_index_gives(tmp_path: Path) -> None:
    shards(tmp_path / "tars", pictures())
    names = ["a.tar: 001.png", "b.tar: 000.png", "c.tar: 0.png"]
    place = str(tmp_path / "tars" / "*.tar")
    by_index = open_source(place, exclude=names)
    source = open_source(place, stream=True, exclude=names)
    indices = indices_of(source)
    assert source.ids(np.array(indices)).tolist() == by_index.ids(np.arange(len(by_index))).tolist()
    assert [source.name(index) for index in indices] == [by_index.name(index) for index in range(len(by_index))]
    assert read_all(source) == read_all(by_index)
    assert source.by_index().fingerprint == by_index.fingerprint
    assert source.fingerprint != open_source(place, stream=True).fingerprint
    assert source.count() == len(by_index)
    assert [file.samples for file in open_source(place).stored_files()] == [3, 4]
    assert [file.samples for file in pickle.loads(pickle.dumps(by_index)).stored_files()] == [2, 3]


def test_a_name_of_several_images_leaves_out_all_of_them_and_is_said(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shards(tmp_path / name, pictures())
    both = [str(tmp_path / name / "a.tar") for name in ("one", "two")]
    source = open_source(both, classes=["ant", "bee", "cat"], exclude=["a.tar: 000.jpg"])
    assert len(source) == 4
    assert any("is that of several images" in note for note in source.notes())


def _parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"file": ["a"]}), out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no.jpg\n", "none of the 1 names of list.txt, such as 'no.jpg', is in .* such as 'ant/000.jpg'"),
        (_parquet(), "list.txt: a Parquet file; accepted: a text file with a name per line"),
        (b"a\xff.jpg\n", "list.txt: not UTF-8 at byte 1"),
        (None, "list.txt: .*no such file"),
        (3, "got int; accepted: a text file"),
        (["ant/000.jpg", 3], "got 3 in the sequence; accepted: a text file"),
        ("all", "all 7 images of .* are excluded"),
    ],
)
def test_a_list_that_is_none_is_named(place: Path, tmp_path: Path, content: Any, message: str) -> None:
    exclude: Any = tmp_path / "list.txt"
    if content == "all":
        exclude = sample_keys(open_source(place))
    elif isinstance(content, bytes):
        exclude.write_bytes(content)
    elif content is not None:
        exclude = content
    with pytest.raises((SourceError, TypeError), match=f"exclude: .*{message}"):
        open_source(place, exclude=exclude)
