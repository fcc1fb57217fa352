"""The contract of ``Source``, for all that is one."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.contract import SOURCES, Opener, Picture, pictures, pixels_of
from variegate.data.base import Item, SampleRef, Source

pytestmark = pytest.mark.parametrize("open_it", SOURCES.values(), ids=SOURCES)


def check_item(item: Item, expected: tuple[Any, Any]) -> None:
    np.testing.assert_array_equal(pixels_of(item), expected[0])
    assert item.label == expected[1]
    assert type(item.label) is type(expected[1])


def check_all(source: Source, expected: Sequence[tuple[Any, Any]], order: Sequence[int]) -> None:
    for index in order:
        check_item(source.read(index), expected[index])


def test_every_sample_in_any_order(open_it: Opener, tmp_path: Path) -> None:
    source, expected, _ = open_it(tmp_path / "data", pictures())
    assert isinstance(source, Source)
    assert len(source) == len(expected) == len(pictures())
    shuffled = np.random.default_rng(0).permutation(len(source)).tolist()
    check_all(source, expected, [*range(len(source)), *shuffled, *shuffled])


def test_no_index_outside(open_it: Opener, tmp_path: Path) -> None:
    source, *_ = open_it(tmp_path / "data", pictures())
    for index in (-1, len(source), len(source) + 5):
        with pytest.raises(IndexError, match=f"index: got {index}; accepted: 0 to {len(source) - 1}"):
            source.read(index)


def test_names_and_ids_tell_samples_apart(open_it: Opener, tmp_path: Path) -> None:
    source, *_ = open_it(tmp_path / "data", pictures())
    names = [source.name(index) for index in range(len(source))]
    assert all(isinstance(name, SampleRef) and name.file for name in names)
    assert len({str(name) for name in names}) == len(names)
    ids = source.ids(np.arange(len(source)))
    assert ids.dtype == np.uint64
    assert len(np.unique(ids)) == len(source)
    np.testing.assert_array_equal(source.ids(np.array([2, 0])), ids[[2, 0]])


def test_fingerprint_is_that_of_the_samples(open_it: Opener, tmp_path: Path) -> None:
    shown = pictures()
    first = open_it(tmp_path / "first", shown)
    fingerprint = first.source.fingerprint
    assert int(fingerprint, 16) >= 0
    assert open_it(tmp_path / "again", shown).source.fingerprint == fingerprint
    relabelled = [*shown[:-1], Picture(shown[-1].extension, shown[-1].data, 1)]
    fewer = shown[:-1]
    is_other = open_it(tmp_path / "labels", relabelled).source.fingerprint != fingerprint
    assert is_other == first.reads_labels
    assert open_it(tmp_path / "fewer", fewer).source.fingerprint != fingerprint


def test_a_pickled_copy_reads_the_same(open_it: Opener, tmp_path: Path) -> None:
    source, expected, _ = open_it(tmp_path / "data", pictures())
    source.read(0)
    copy = pickle.loads(pickle.dumps(source))
    assert copy.fingerprint == source.fingerprint
    assert [copy.name(i) for i in range(len(copy))] == [source.name(i) for i in range(len(source))]
    check_all(copy, expected, range(len(source)))


def test_eight_threads_read_the_same(open_it: Opener, tmp_path: Path) -> None:
    source, expected, _ = open_it(tmp_path / "data", pictures())
    orders = [np.random.default_rng(seed).permutation(len(source)).tolist() * 3 for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(check_all, source, expected, order) for order in orders]:
            done.result()


def test_it_is_one_line(open_it: Opener, tmp_path: Path) -> None:
    source, expected, _ = open_it(tmp_path / "data", pictures())
    kind, count = type(source).__name__, f"{len(expected)} samples"
    shown = repr(source)
    assert shown.startswith(f"{kind}(")
    assert count in shown
    assert "\n" not in shown
    assert len(shown) < 300
    assert ("3 classes" in shown) == bool(source.classes)
