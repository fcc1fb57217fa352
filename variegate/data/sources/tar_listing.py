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

from variegate.data.sources.base import SourceError
from variegate.data.sources.paths import shown
from variegate.data.sources.remote import Stamp, stat
from variegate.data.sources.tar_index import ShardIndex, empty_index, index_shard, name_at
from variegate.data.sources.tar_index_file import load_index, save_index
from variegate.data.sources.tar_labels import Kind, Labelling
from variegate.data.sources.tar_remarks import Remarks, some
from variegate.data.sources.tar_samples import Loss, split_name

_INDEXING_THREADS = 16
ON_ERROR = ("raise", "skip")


@dataclass(frozen=True, eq=False)
class ListedShard:
    """``labels`` has an entry for each sample of the index, and one more where the shard ends in a loss."""

    path: str
    index: ShardIndex
    name_ends: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    broken: dict[int, str]  # what is wrong, for samples whose label is, and for the loss


def check_on_error(on_error: str) -> None:
    if on_error not in ON_ERROR:
        raise SourceError(f"on_error: got {on_error!r}; accepted: {', '.join(map(repr, ON_ERROR))}")


def sorted_shards(shards: Sequence[str]) -> list[str]:
    """Shards in the order of their numbers. Raises SourceError where there are none, or one is given twice."""
    paths = sorted(shards)
    if not paths:
        raise SourceError("no shards given; expected at least one .tar file")
    for one, other in pairwise(paths):
        if one == other:
            raise SourceError(f"{shown(one)}: given twice; each shard is expected once")
    return paths


def list_shards(
    shards: Sequence[str], classes: tuple[str, ...], *, on_error: str, cache_dir: str | os.PathLike[str] | None
) -> tuple[list[ListedShard], list[str]]:
    """The shards, sorted, and notes about them. Raises SourceError as ``open_webdataset`` says."""
    check_on_error(on_error)
    paths = sorted_shards(shards)
    with ThreadPoolExecutor(min(_INDEXING_THREADS, len(paths)), "variegate-index") as pool:
        try:
            found = list(pool.map(partial(_index, may_skip=on_error == "skip", cache_dir=cache_dir), paths))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    indexes = [index for index, _ in found]
    if not any(len(index) for index in indexes):
        reasons = [
            f"{shown(path)}: {index.loss.reason}" for path, index in zip(paths, indexes, strict=True) if index.loss
        ]
        raise SourceError(f"not one whole sample in {len(paths):,} shards: {some(reasons, 3)}")
    first = next(index for index in indexes if len(index))
    labelling = Labelling(classes, is_labelled=first.kinds[0] != Kind.NONE)
    listed = [_resolve(path, index, labelling, bool(classes)) for path, index in zip(paths, indexes, strict=True)]
    return listed, _notes(listed, [path for path, (_, is_kept) in zip(paths, found, strict=True) if not is_kept])


def _index(path: str, *, may_skip: bool, cache_dir: str | os.PathLike[str] | None) -> tuple[ShardIndex, bool]:
    """A shard's index, and whether it is kept in a file. Raises SourceError unless what is wrong may be skipped."""
    try:
        stamp = stat(path)
        index = load_index(path, stamp, cache_dir)
        is_kept = index is not None
        if index is None:
            index = index_shard(path, stamp)
            # A walk that the network broke off says nothing of the shard.
            is_kept = not (index.loss and index.loss.is_transient) and save_index(path, index, cache_dir)
    except SourceError as error:
        if not may_skip:
            raise
        reason = error.reason(shown(path))
        return empty_index(Stamp(0, ""), Loss(None, reason, is_transient=True)), True
    if index.loss and not may_skip:
        raise SourceError(f"{shown(path)}: {index.loss.reason}{_remedy(index)}")
    return index, is_kept


def _remedy(index: ShardIndex) -> str:
    if not index.seen.members:
        return ""
    if not len(index):
        return "; no whole sample comes before it" if index.loss and index.loss.member else ""
    return (
        f"; {len(index):,} whole samples come before it: "
        'on_error="skip" uses them, and counts the one that is lost as an error'
    )


def _resolve(path: str, index: ShardIndex, labelling: Labelling, has_classes: bool) -> ListedShard:
    ends = index.name_ends()
    labels = np.where(index.kinds == Kind.NUMBER, index.values, -1)
    broken: dict[int, str] = {}
    # Plain numbers, which most data sets have and nothing else, are resolved all at once.
    doubtful = np.arange(len(index)) if has_classes else np.flatnonzero(index.kinds != Kind.NUMBER)
    for position in doubtful.tolist():
        parts = split_name(name_at(index.names, ends, position))
        labels[position], problem = labelling.resolve(index.label(position), parts[0] if parts else "")
        if problem:
            broken[position] = problem
    if index.loss:
        labels = np.append(labels, -1)
        broken[len(index)] = index.loss.sentence
    return ListedShard(path, index, ends, labels, broken)


def _notes(shards: list[ListedShard], not_kept: list[str]) -> list[str]:
    remarks = Remarks()
    for number, shard in enumerate(shards):
        loss = shard.index.loss
        remarks.add(number, shown(shard.path), shard.index.seen, loss.reason if loss else "")
    lines = remarks.lines()
    samples = sum(len(shard.index) for shard in shards)
    unlabelled = sum(int(np.sum(shard.index.kinds == Kind.NONE)) for shard in shards)
    if unlabelled == samples:
        lines.append("no labels: no sample has a .cls or .json member with one; all labels are -1")
    elif unlabelled:
        lines.append(f"{unlabelled:,} of {samples:,} samples have no label")
    if wrong := sum(len(shard.broken) - bool(shard.index.loss) for shard in shards):
        shard = next(shard for shard in shards if len(shard.broken) > bool(shard.index.loss))
        position = min(shard.broken)
        name = name_at(shard.index.names, shard.name_ends, position)
        lines.append(
            f"{wrong:,} samples cannot be used for their labels; {shown(shard.path)}: {name}: {shard.broken[position]}"
        )
    if not_kept:
        lines.append(
            f"the index could not be written, and is made at every start: {some([shown(p) for p in not_kept])}"
        )
    return lines
