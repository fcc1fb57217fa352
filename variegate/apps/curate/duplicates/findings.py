"""Findings of images that are the same as, or look like, others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variegate.apps.curate.duplicates.columns import TEST, TRAIN, Fingerprints, read_fingerprints
from variegate.apps.curate.duplicates.grouping import Rows, distances, first_of_alike, first_of_same
from variegate.apps.curate.duplicates.lookup import MOST_DISTANCE, find_partners
from variegate.apps.curate.duplicates.nearness import distance_for
from variegate.apps.curate.duplicates.search import NOBODY
from variegate.apps.curate.finding import KINDS_SHOWN, SPLITS, DataFinding

UNLIKE = 0.35
# Of images with fewer pixels a side, the small pictures have all that there is: digits of 8 pixels all look alike.
LEAST_SIDE = 16
_BITS = 64
_TURNED = ("", ", mirrored left to right", ", mirrored upside down", ", turned by 180 degrees")


class _Link(NamedTuple):
    """Row ``row`` is found because of row ``partner``, in the group that begins with row ``group``."""

    row: int
    partner: int
    group: int


def find_duplicates(table: pa.Table, distance: int | None = None, unlike: float = UNLIKE) -> list[DataFinding]:
    """What ``table`` (of a check, over all splits) says of images that are there more than once:

    - ``duplicates``: images of a split with the same pixels, a group for each picture, measure 0. All of a group are
      named, the first one too: leaving out all but one of each group leaves one of each picture.
    - ``near_duplicates``: images of a split that look alike, flipped or not: ``measure`` is the number of 64 bits that
      their hashes differ in, up to ``distance`` (0 to 15; None: what ``distance_for`` gives), and no more of their
      signatures than ``unlike`` (0 to 1) may differ. Every image of a group looks like its first one. Of images with
      the same pixels, the first one speaks for all. Images of less than ``LEAST_SIDE`` pixels a side look like none.
    - ``leaks``: images of split train that are, or look like, one of split test; measure 0 where pixels are the same.
      A group is a test image and what of it is in the train split: both splits' images are named.
    - ``contradictions``: images of different classes, of any split, that are the same or look alike. Images without a
      known class contradict none.

    Images beside class folders are (near) duplicates of those of their own half, train or test, and leak nothing. They
    stand behind all others in ``table`` and change no finding of these: an image that loaders read is no duplicate of
    one that they do not.

    ``why`` names the partner's file. Groups are numbered over all kinds; one that is alone in its group has no number.
    Images without a fingerprint are passed over. Raises ValueError for a distance or an ``unlike`` out of range.
    """
    if distance is not None and not 0 <= distance <= MOST_DISTANCE:
        raise ValueError(f"distance {distance}: from 0 to {MOST_DISTANCE} bits of 64")
    if not 0 <= unlike <= 1:
        raise ValueError(f"unlike {unlike}: from 0 to 1")
    images = read_fingerprints(table)
    same = first_of_same(images.pixels)
    same_in_split = first_of_same(np.column_stack([images.pixels, images.halves.astype(np.uint64)]))
    first = np.nonzero((same_in_split == np.arange(len(same))) & (images.sides >= LEAST_SIDE))[0]
    if distance is None:
        distance = distance_for(images.looks[first[images.are_read[first]]])
    # Of a large set, the signatures are not copied without need.
    signatures = images.signatures if len(first) == len(same) else images.signatures[first]
    partners = find_partners(
        images.looks[first], signatures, images.halves[first], images.labels[first], distance, unlike
    )
    copies = _Copies(same_in_split)
    links = {
        "duplicates": _of_note(_duplicates(same_in_split), images),
        "near_duplicates": _of_note(_near_duplicates(first, partners[:, 0], images), images),
        "leaks": _leaks(same, copies, _pairs(first, partners[:, 1]), images),
        "contradictions": _contradictions(same, copies, _pairs(first, partners[:, 2]), images),
    }
    return _told(links, same, images)


class _Copies:
    """All rows with the pixels of a first one."""

    def __init__(self, same: Rows) -> None:
        self._order = np.argsort(same, kind="stable")
        self._sorted = same[self._order]

    def of(self, row: int) -> list[int]:
        begin, end = np.searchsorted(self._sorted, [row, row + 1])
        return [int(each) for each in self._order[begin:end]]


def _pairs(first: Rows, partners: npt.NDArray[np.uint32]) -> Rows:
    """[pairs, 2] rows, the later one first."""
    later, at = np.nonzero(partners != NOBODY)
    return np.column_stack([first[later], first[partners[later, at]]])


def _duplicates(same: Rows) -> list[_Link]:
    number = np.bincount(same, minlength=len(same))
    rows = np.nonzero(number[same] > 1)[0]
    second: dict[int, int] = {}
    for row in rows.tolist():
        if same[row] != row:
            second.setdefault(int(same[row]), row)
    return [_Link(row, int(same[row]) if same[row] != row else second[row], int(same[row])) for row in rows.tolist()]


def _of_note(links: list[_Link], images: Fingerprints) -> list[_Link]:
    """Without images that loaders read, and no other of their group."""
    read = Counter(link.group for link in links if images.are_read[link.row])
    return [link for link in links if read[link.group] != 1 or not images.are_read[link.row]]


def _near_duplicates(first: Rows, partners: npt.NDArray[np.uint32], images: Fingerprints) -> list[_Link]:
    group = first[first_of_alike(partners)]
    member = group != first
    found = distances(images.looks[first[member]], images.looks[group[member]])[0]
    nearest: dict[int, tuple[bool, int, int]] = {}
    links = []
    for row, begin, bits in zip(first[member].tolist(), group[member].tolist(), found.tolist(), strict=True):
        links.append(_Link(row, begin, begin))
        key = (not images.are_read[row], bits, row)
        nearest[begin] = min(nearest.get(begin, key), key)
    return links + [_Link(begin, row, begin) for begin, (*_, row) in nearest.items()]


def _leaks(same: Rows, copies: _Copies, pairs: Rows, images: Fingerprints) -> list[_Link]:
    is_train, is_test = images.splits == TRAIN, images.splits == TEST
    tested: dict[int, int] = {}
    for row in np.nonzero(is_test)[0][::-1].tolist():
        tested[int(same[row])] = row
    exact = np.isin(same, np.fromiter(tested, np.int64, len(tested))) & is_train
    links = [_Link(row, tested[int(same[row])], tested[int(same[row])]) for row in np.nonzero(exact)[0].tolist()]
    found = distances(images.looks[pairs[:, 0]], images.looks[pairs[:, 1]])[0]
    nearest: dict[int, tuple[int, int]] = {}
    for (one, other), bits in zip(pairs.tolist(), found.tolist(), strict=True):
        train, test = (other, one) if is_test[one] else (one, other)
        if not exact[train]:
            nearest[train] = min(nearest.get(train, (bits, test)), (bits, test))
    for train, (_, test) in nearest.items():
        links += [_Link(row, test, test) for row in copies.of(train) if is_train[row]]
    leaked: dict[int, int] = {}
    for row, test, _ in links:
        leaked[test] = min(leaked.get(test, row), row)
    return links + [_Link(test, row, test) for test, row in leaked.items()]


def _contradictions(same: Rows, copies: _Copies, pairs: Rows, images: Fingerprints) -> list[_Link]:
    labels = images.labels
    known = np.nonzero(labels >= 0)[0]
    others: dict[int, tuple[int, int]] = {}  # bits, partner
    begins: dict[int, dict[int, int]] = {}  # by pixels, the first row of each class
    for row in known[_with_company(same[known])].tolist():
        begins.setdefault(int(same[row]), {}).setdefault(int(labels[row]), row)
    for row in known.tolist():
        for label, partner in begins.get(int(same[row]), {}).items():
            if label != labels[row]:
                others.setdefault(row, (-1, partner))
    found = distances(images.looks[pairs[:, 0]], images.looks[pairs[:, 1]])[0]
    for pair, bits in zip(pairs.tolist(), found.tolist(), strict=True):
        for one, other in (pair, pair[::-1]):
            for row in copies.of(one):
                if labels[row] >= 0 and labels[row] != labels[other]:
                    others[row] = min(others.get(row, (bits, other)), (bits, other))
    groups = _joined((row, partner) for row, (_, partner) in others.items())
    return [_Link(row, partner, groups[row]) for row, (_, partner) in others.items()]


def _with_company(same: Rows) -> npt.NDArray[np.bool_]:
    number = np.bincount(same, minlength=1)
    return np.asarray(number[same] > 1)


def _joined(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Union-find: for each row that is in a pair, the first of those that pairs connect it with."""
    parent: dict[int, int] = {}

    def root(row: int) -> int:
        while parent.setdefault(row, row) != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for pair in pairs:
        one, other = sorted(map(root, pair))
        parent[other] = one
    return {row: root(row) for row in list(parent)}


def _told(links: dict[str, list[_Link]], same: Rows, images: Fingerprints) -> list[DataFinding]:
    """Groups numbered through from 1, as a report shows them: by kind, the largest first; every link as a sentence."""
    members: dict[tuple[str, int], list[int]] = {}
    for kind, each in links.items():
        for link in each:
            members.setdefault((kind, link.group), []).append(link.row)
    kinds = list(KINDS_SHOWN)
    order = sorted(
        (key for key in members if len(members[key]) > 1),
        key=lambda key: (kinds.index(key[0]), -len(members[key]), min(members[key])),
    )
    numbers = {key: number for number, key in enumerate(order, 1)}
    findings = []
    for kind, unsorted in links.items():
        each = sorted(unsorted)
        rows, partners = (np.array([link[k] for link in each], np.int64) for k in (0, 1))
        bits, flips = distances(images.looks[rows], images.looks[partners])
        for link, number, flip in zip(each, bits.tolist(), flips.tolist(), strict=True):
            is_same = same[link.row] == same[link.partner]
            findings.append(
                DataFinding(
                    split=SPLITS[images.splits[link.row]],
                    index=int(images.indices[link.row]),
                    file=images.files[link.row].as_py(),
                    finding=kind,
                    measure=0.0 if is_same else float(number),
                    group=numbers.get((kind, link.group)),
                    why=_why(
                        kind, link, None if is_same else f"{number} of {_BITS} bits differ{_TURNED[flip]}", images
                    ),
                )
            )
    return findings


def _why(kind: str, link: _Link, difference: str | None, images: Fingerprints) -> str:
    partner = f"{images.files[link.partner].as_py()}"
    if images.splits[link.row] != images.splits[link.partner]:
        partner = f"{SPLITS[images.splits[link.partner]]} image {partner}"
    if kind == "contradictions":
        own, other = (images.classes[int(images.labels[row])] for row in (link.row, link.partner))
        partner = f"{partner} of class {other}, and is of class {own}"
    return f"has the same pixels as {partner}" if difference is None else f"looks like {partner}: {difference}"
