"""All shards of a data set indexed, by several threads, and their labels resolved over all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from variegate.formats.base import SourceError, check_on_error, first_names
from variegate.formats.reading import FileVersion, version_of
from variegate.formats.tar.index import ShardIndex, empty_index, index_shard, load_index, save_index
from variegate.formats.tar.labels import LabelKind, resolve_label
from variegate.formats.tar.samples import ShardFailure, notes_of_walks, split_name
from variegate.io.location import Location, LocationLike

_INDEXING_THREADS = 16
NO_LABELS = "no labels"


@dataclass(frozen=True, eq=False)
class ListedShard:
    """``labels`` has an entry for each sample of the index, and one more where the shard ends in a failure."""

    location: Location
    index: ShardIndex
    labels: npt.NDArray[np.int64]
    broken: dict[int, str]  # what is wrong, for samples whose label is, and for the failure


def sorted_shards(shards: Sequence[LocationLike]) -> list[Location]:
    """Shards in the order of their numbers. Raises SourceError where there are none, or one is given twice."""
    locations = sorted(map(Location.parse, shards), key=Location.address)
    if not locations:
        raise SourceError("no shards given; expected at least one .tar file")
    for one, other in pairwise(locations):
        if one == other:
            raise SourceError(f"{one}: given twice; each shard is expected once")
    return locations


def list_shards(
    shards: Sequence[LocationLike],
    classes: tuple[str, ...],
    *,
    on_error: str,
    cache_dir: str | os.PathLike[str] | None,
) -> tuple[list[ListedShard], list[str]]:
    """The shards, sorted, and notes about them. Raises SourceError as ``open_webdataset`` says."""
    check_on_error(on_error)
    locations = sorted_shards(shards)
    with ThreadPoolExecutor(min(_INDEXING_THREADS, len(locations)), "variegate-index") as pool:
        try:
            indexed = list(pool.map(partial(_index, may_skip=on_error == "skip", cache_dir=cache_dir), locations))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    indexes = [index for index, _ in indexed]
    first = next((index for index in indexes if len(index)), None)
    if first is None:
        pairs = zip(locations, indexes, strict=True)
        reasons = [f"{shard}: {index.failure.reason}" for shard, index in pairs if index.failure]
        raise SourceError(f"not one whole sample in {len(locations):,} shards: {first_names(reasons, 3)}")
    is_labelled = bool(first.kinds[0] != LabelKind.NONE)
    listed = [_resolve(*one, classes, is_labelled) for one in zip(locations, indexes, strict=True)]
    not_kept = [str(shard) for shard, (_, is_kept) in zip(locations, indexed, strict=True) if not is_kept]
    return listed, _notes(listed, not_kept)


def _index(shard: Location, *, may_skip: bool, cache_dir: str | os.PathLike[str] | None) -> tuple[ShardIndex, bool]:
    """A shard's index, and whether it is kept in a file. Raises SourceError unless what is wrong may be skipped."""
    try:
        version = version_of(shard)
        index = load_index(shard, version, cache_dir)
        is_kept = index is not None
        if index is None:
            index = index_shard(shard, version)
            # A walk that the network broke off says nothing of the shard.
            is_kept = not (index.failure and index.failure.is_transient) and save_index(shard, index, cache_dir)
    except SourceError as error:
        if not may_skip:
            raise
        reason = error.reason(str(shard))
        return empty_index(FileVersion(0, ""), ShardFailure(None, reason, is_transient=True)), True
    if index.failure and not may_skip:
        raise SourceError(f"{shard}: {index.failure.reason}{_remedy(index)}")
    return index, is_kept


def _remedy(index: ShardIndex) -> str:
    if not index.counts.members:
        return ""
    if not len(index):
        return "; no whole sample comes before it" if index.failure and index.failure.member else ""
    return (
        f"; {len(index):,} whole samples come before it: "
        'on_error="skip" uses them, and counts the one that is lost as an error'
    )


def _resolve(location: Location, index: ShardIndex, classes: tuple[str, ...], is_labelled: bool) -> ListedShard:
    numbers = {name: number for number, name in enumerate(classes)}
    labels = np.where(index.kinds == LabelKind.NUMBER, index.values, -1)
    broken: dict[int, str] = {}
    # Plain numbers, which most data sets have and nothing else, are resolved all at once.
    doubtful = np.arange(len(index)) if classes else np.flatnonzero(index.kinds != LabelKind.NUMBER)
    for position in doubtful.tolist():
        key, _ = split_name(index.name(position)) or ("", "")
        labels[position], problem = resolve_label(index.label(position), key, numbers, is_labelled)
        if problem:
            broken[position] = problem
    if index.failure:
        labels = np.append(labels, -1)
        broken[len(index)] = index.failure.sentence
    return ListedShard(location, index, labels, broken)


def _notes(shards: list[ListedShard], not_kept: list[str]) -> list[str]:
    lines = notes_of_walks((str(shard.location), shard.index.counts, shard.index.failure) for shard in shards)
    samples = sum(len(shard.index) for shard in shards)
    unlabelled = sum(int(np.sum(shard.index.kinds == LabelKind.NONE)) for shard in shards)
    if unlabelled == samples:
        lines.append(f"{NO_LABELS}: no sample has a .cls or .json member with one; all labels are -1")
    elif unlabelled:
        lines.append(f"{unlabelled:,} of {samples:,} samples have no label")
    if wrong := sum(len(shard.broken) - bool(shard.index.failure) for shard in shards):
        shard = next(shard for shard in shards if len(shard.broken) > bool(shard.index.failure))
        position = min(shard.broken)
        first = f"{shard.location}: {shard.index.name(position)}: {shard.broken[position]}"
        lines.append(f"{wrong:,} samples cannot be used for their labels; {first}")
    if not_kept:
        lines.append(f"the index could not be written, and is made at every start: {first_names(not_kept)}")
    return lines
