"""Images that are the same, or look alike, found by their fingerprints."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate.apps.check import near_hashes
from variegate.apps.check.findings import KINDS_SHOWN, READ, SPLITS, DataFinding, coded
from variegate.apps.check.fingerprint import SIGNATURE_BYTES, turned
from variegate.apps.check.near_hashes import Rows, distances
from variegate.apps.check.near_search import NO_MATCH
from variegate.arrays import BoolArray, Int64Array, UInt8Array, UInt32Array, UInt64Array

UNLIKE = 0.35
# Of images with fewer pixels a side, the small pictures have all that there is: digits of 8 pixels all look alike.
LEAST_SIDE = 16
_HASH_BYTES = 16
_BITS = 64
_TRAIN, _TEST = 0, 1  # indices in SPLITS; images next to class folders are two further on
# By what ``Fingerprints.distances`` returns.
_TURNED = (
    "",
    ", mirrored left to right",
    ", mirrored upside down",
    ", turned by 180 degrees",
    ", turned by 90 degrees",
    *(", mirrored and turned by 90 degrees",) * 2,
    ", turned by 270 degrees",
)


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of the n images of a table that have one. ``splits`` uint8: places in ``SPLITS``; ``labels``: a
    number for each name of a class, the same in all splits, -1 where it is not known; ``sides``: the shorter one, in
    pixels."""

    splits: UInt8Array
    indices: Int64Array
    files: pa.ChunkedArray
    labels: Int64Array
    classes: list[str]
    pixels: UInt64Array  # [n, 2]
    looks: UInt64Array
    turned: UInt64Array  # as ``looks``, of images turned by 90 degrees
    signatures: UInt8Array  # [n, SIGNATURE_BYTES]
    sides: Int64Array

    @property
    def halves(self) -> UInt8Array:
        """``_TRAIN`` or ``_TEST``, also for images next to class folders."""
        return self.splits & np.uint8(1)

    def distances(self, rows: Rows, partners: Rows) -> tuple[Rows, Rows]:
        """-> (differing bits of the pairs' hashes, index of the transform in ``_TURNED``)."""
        return distances(self.looks[rows], self.looks[partners], self.turned[rows])

    @property
    def are_read(self) -> BoolArray:
        return self.splits < len(READ)


class _Link(NamedTuple):
    """Row ``row`` is found because of row ``partner``, in the group that begins with row ``group``."""

    row: int
    partner: int
    group: int


def find_duplicates(table: pa.Table, distance: int | None = None) -> list[DataFinding]:
    """Find images that are in ``table`` (of a check, over all splits) more than once:

    - ``duplicates``: images of a split with the same pixels, a group for each picture, measure 0. All images of a group
      are listed, the first one too: excluding all but one of each group leaves one of each picture.
    - ``near_duplicates``: images of a split that look alike, also flipped or turned by 90 degrees: ``measure`` is the
      number of 64 bits that their hashes differ in, up to ``distance`` (0 to 15; None: what ``distance_for`` gives),
      and no more of their signatures than ``UNLIKE`` may differ. Every image of a group looks like its first
      one. Of images with the same pixels, the first one speaks for all. Images of less than ``LEAST_SIDE`` pixels a
      side look like none.
    - ``leaks``: images of split train that are, or look like, one of split test; measure 0 where pixels are the same.
      Images of both splits share a group if a test image is also in the train split.
    - ``contradictions``: images of different classes, of any split, that are the same or look alike. Images without a
      known class contradict none.

    Images next to class folders are (near) duplicates within their own half, train or test, and are never leaks. They
    stand behind all others in ``table`` and change no finding of these: an image that loaders read is no duplicate of
    one that they do not.

    ``why`` names the partner's file. Groups are numbered over all kinds; one that is alone in its group has no number.
    Images without a fingerprint are skipped. Raises ValueError for a distance out of range.
    """
    if distance is not None and not 0 <= distance <= near_hashes.MOST_DISTANCE:
        raise ValueError(f"distance {distance}: from 0 to {near_hashes.MOST_DISTANCE} bits of 64")
    images = _read_fingerprints(table)
    same = near_hashes.first_of_same(images.pixels)
    same_in_split = near_hashes.first_of_same(np.column_stack([images.pixels, images.halves.astype(np.uint64)]))
    first = np.nonzero((same_in_split == np.arange(len(same))) & (images.sides >= LEAST_SIDE))[0]
    if distance is None:
        distance = near_hashes.distance_for(images.looks[first[images.are_read[first]]])
    # Of a large set, the signatures are not copied without need.
    signatures = images.signatures if len(first) == len(same) else images.signatures[first]
    partners = near_hashes.find_partners(
        images.looks[first],
        signatures,
        images.halves[first],
        images.labels[first],
        distance,
        UNLIKE,
        turned(signatures),
    )
    copies = _Copies(same_in_split)
    links = {
        "duplicates": _of_note(_duplicates(same_in_split), images),
        "near_duplicates": _of_note(_near_duplicates(first, partners[:, 0], images), images),
        "leaks": _leaks(same, copies, _pairs(first, partners[:, 1]), images),
        "contradictions": _contradictions(same, copies, _pairs(first, partners[:, 2]), images),
    }
    return _findings_of(links, same, images)


def _read_fingerprints(table: pa.Table) -> Fingerprints:
    """Raises ValueError for a signature that is not of this version's length."""
    if table["pixel_hash"].null_count:
        table = table.filter(pc.is_valid(table["pixel_hash"]))
    unknown = pc.less(table["label"], 0)
    names = pc.coalesce(table["class"], table["label"].cast("string"))
    classes, labels = coded(pc.if_else(unknown, pa.scalar(None, pa.string()), names))
    signatures = _bytes_of(table["signature"], SIGNATURE_BYTES)
    return Fingerprints(
        splits=pc.index_in(table["split"], pa.array(SPLITS)).to_numpy().astype(np.uint8),
        indices=table["index"].to_numpy().astype(np.int64),
        files=table["file"],
        labels=labels,
        classes=classes,
        pixels=_bytes_of(table["pixel_hash"], _HASH_BYTES).view(np.uint64),
        looks=table["look_hash"].to_numpy().astype(np.uint64),
        turned=turned(signatures)[0],
        signatures=signatures,
        sides=pc.min_element_wise(table["height"], table["width"]).fill_null(0).to_numpy().astype(np.int64),
    )


def _bytes_of(column: pa.ChunkedArray, length: int) -> UInt8Array:
    """Binary values of this length, without nulls -> uint8 [n, length]."""
    if pc.any(pc.not_equal(pc.binary_length(column), length)).as_py():
        raise ValueError(f"the table has signatures that are not of {length} bytes: another version made it")
    found = np.empty((len(column), length), np.uint8)
    begin = 0
    for chunk in column.cast(pa.binary(length)).chunks:
        rows = np.frombuffer(chunk.buffers()[1], np.uint8).reshape(-1, length)
        found[begin : begin + len(chunk)] = rows[chunk.offset :][: len(chunk)]
        begin += len(chunk)
    return found


class _Copies:
    """All rows with the pixels of a first one."""

    def __init__(self, same: Rows) -> None:
        self._order = np.argsort(same, kind="stable")
        self._sorted = same[self._order]

    def of(self, row: int) -> list[int]:
        begin, end = np.searchsorted(self._sorted, [row, row + 1])
        return [int(each) for each in self._order[begin:end]]


def _pairs(first: Rows, partners: UInt32Array) -> Rows:
    """[pairs, 2] rows, the later one first."""
    later, at = np.nonzero(partners != NO_MATCH)
    return np.column_stack([first[later], first[partners[later, at]]])


def _duplicates(same: Rows) -> list[_Link]:
    """Each because of the first of its picture, the first because of the second."""
    others = np.nonzero(same != np.arange(len(same)))[0][::-1]
    partners = same.copy()
    partners[same[others]] = others  # of equal places the last one stays
    rows = np.nonzero(partners != np.arange(len(same)))[0]
    return [_Link(*one) for one in zip(rows.tolist(), partners[rows].tolist(), same[rows].tolist(), strict=True)]


def _of_note(links: list[_Link], images: Fingerprints) -> list[_Link]:
    """Without images that loaders read, and no other of their group."""
    read = Counter(link.group for link in links if images.are_read[link.row])
    return [link for link in links if read[link.group] != 1 or not images.are_read[link.row]]


def _near_duplicates(first: Rows, partners: UInt32Array, images: Fingerprints) -> list[_Link]:
    group = first[near_hashes.first_of_alike(partners)]
    member = group != first
    found = images.distances(first[member], group[member])[0]
    nearest: dict[int, tuple[bool, int, int]] = {}
    links = []
    for row, begin, bits in zip(first[member].tolist(), group[member].tolist(), found.tolist(), strict=True):
        links.append(_Link(row, begin, begin))
        key = (not images.are_read[row], bits, row)
        nearest[begin] = min(nearest.get(begin, key), key)
    return links + [_Link(begin, row, begin) for begin, (*_, row) in nearest.items()]


def _leaks(same: Rows, copies: _Copies, pairs: Rows, images: Fingerprints) -> list[_Link]:
    is_train = images.splits == _TRAIN
    is_test = images.splits == _TEST
    tested = {int(same[row]): row for row in np.nonzero(is_test)[0][::-1].tolist()}  # the first of each picture
    exact = np.isin(same, np.fromiter(tested, np.int64, len(tested))) & is_train
    links = [_Link(row, tested[int(same[row])], tested[int(same[row])]) for row in np.nonzero(exact)[0].tolist()]
    found = images.distances(pairs[:, 0], pairs[:, 1])[0]
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
    shared = known[np.bincount(same[known], minlength=1)[same[known]] > 1].tolist()
    others: dict[int, tuple[int, int]] = {}  # bits, partner
    begins: dict[int, dict[int, int]] = defaultdict(dict)  # by pixels, the first row of each class
    for row in shared:
        begins[int(same[row])].setdefault(int(labels[row]), row)
    for row in shared:
        for label, partner in begins[int(same[row])].items():
            if label != labels[row]:
                others.setdefault(row, (-1, partner))
    found = images.distances(pairs[:, 0], pairs[:, 1])[0]
    for pair, bits in zip(pairs.tolist(), found.tolist(), strict=True):
        for one, other in (pair, pair[::-1]):
            for row in copies.of(one):
                if labels[row] >= 0 and labels[row] != labels[other]:
                    others[row] = min(others.get(row, (bits, other)), (bits, other))
    groups = joined((row, partner) for row, (_, partner) in others.items())
    return [_Link(row, partner, groups[row]) for row, (_, partner) in others.items()]


def joined(pairs: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Union-find: for each row of a pair, the first row of its connected component."""
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


def _findings_of(links: dict[str, list[_Link]], same: Rows, images: Fingerprints) -> list[DataFinding]:
    """Groups numbered through from 1, as a report shows them: by kind, the largest first; every link as a sentence."""
    members: dict[tuple[str, int], list[int]] = defaultdict(list)
    for kind, each in links.items():
        for link in each:
            members[kind, link.group].append(link.row)
    order = sorted(
        (key for key in members if len(members[key]) > 1),
        key=lambda key: (KINDS_SHOWN.index(key[0]), -len(members[key]), min(members[key])),
    )
    numbers = {key: number for number, key in enumerate(order, 1)}
    findings = []
    for kind, unsorted in links.items():
        each = sorted(unsorted)
        rows, partners = (np.array([link[k] for link in each], np.int64) for k in (0, 1))
        bits, flips = images.distances(rows, partners)
        for link, number, flip in zip(each, bits.tolist(), flips.tolist(), strict=True):
            is_same = same[link.row] == same[link.partner]
            difference = None if is_same else f"{number} of {_BITS} bits differ{_TURNED[flip]}"
            findings.append(
                DataFinding(
                    split=SPLITS[images.splits[link.row]],
                    index=int(images.indices[link.row]),
                    file=images.files[link.row].as_py(),
                    finding=kind,
                    measure=0.0 if is_same else float(number),
                    group=numbers.get((kind, link.group)),
                    why=_why(kind, link, difference, images),
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
