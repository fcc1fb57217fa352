"""Whole numbers that do not fit into int64, which batches hold: named, not wrapped around to other classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from variegate.data.base import SourceError
from variegate.data.objects.arrays import open_arrays
from variegate.data.objects.dataset import open_dataset
from variegate.data.parquet import open_parquet
from variegate.errors import DecodeError

IMAGES = np.zeros((3, 4, 4, 3), np.uint8)
MOST = 2**63 - 1
ACCEPTED = rf"accepted: whole numbers up to {MOST} \(int64\), of classes from 0 on, or -1 for none"


@pytest.mark.parametrize(
    ("labels", "where"),
    [
        (np.array([0, 2**63, 2**64 - 1], np.uint64), r"labels\[1\]: got 9223372036854775808"),
        ([0, 1, 2**63], r"labels\[2\]: got 9223372036854775808"),
        ([2**64, 1, 2], r"labels\[0\]: got 18446744073709551616"),
        ([0, -(2**63) - 1, 2], r"labels\[1\]: got -9223372036854775809"),
        (np.array([[0, 1], [2, 2**63], [1, 1]], np.uint64), r"labels\[1, 1\]: got 9223372036854775808"),
    ],
)
def test_of_arrays(labels: Any, where: str) -> None:
    with pytest.raises(SourceError, match=f"{where}; {ACCEPTED}"):
        open_arrays(IMAGES, labels)


def test_those_that_fit_stay_as_they_are() -> None:
    labels = np.array([0, 5, MOST], np.uint64)
    assert [open_arrays(IMAGES, labels).read(i).label for i in range(3)] == [0, 5, MOST]
    assert open_arrays(IMAGES, [1.5, float(2**63), 0]).read(1).label == float(2**63)
    assert open_arrays(IMAGES, [1, 2.5, 0]).read(0).label == 1.0


def write(path: Path, label: pa.Array) -> str:
    pq.write_table(pa.table({"image": pa.array([b"x"] * len(label)), "label": label}), path)
    return str(path)


@pytest.mark.parametrize(
    ("label", "where"),
    [
        (pa.array([0, None, 2**63], pa.uint64()), r"row 2: label 9223372036854775808 in column 'label'"),
        (pa.array([[1, 2], [2**63, 4]], pa.list_(pa.uint64(), 2)), r"column 'label'\[1, 0\]: got 9223372036854775808"),
    ],
)
def test_of_parquet_files(label: pa.Array, where: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=rf"a\.parquet: {where}; {ACCEPTED}"):
        open_parquet([write(tmp_path / "a.parquet", label)])


def test_of_parquet_files_that_fit(tmp_path: Path) -> None:
    source = open_parquet([write(tmp_path / "a.parquet", pa.array([0, None, MOST], pa.uint64()))])
    assert [source.read(i).label for i in range(3)] == [0, -1, MOST]


@pytest.mark.parametrize("label", [2**63, 2**64, np.uint64(2**63), np.array([1, 2**63], np.uint64)])
def test_of_data_sets(label: Any) -> None:
    source = open_dataset([(IMAGES[0], 1), (IMAGES[0], label)])
    assert source.read(0).label == 1
    with pytest.raises(DecodeError, match=rf"list: item 1: label.*: got \d+; {ACCEPTED}"):
        source.read(1)
