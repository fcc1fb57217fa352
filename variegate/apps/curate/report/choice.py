"""Findings that a report shows: all kinds of them, the worst images of each, never more than a page can bear."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from variegate.apps.curate.findings import FINDING_KINDS, KINDS_SHOWN, SPLITS, DataFinding, FindingKind

# Pictures of one kind of finding, groups of one, and pictures in a group; in a group of several splits, of each.
MOST_IMAGES, MOST_GROUPS, MOST_MEMBERS, MOST_OF_SPLIT = 24, 20, 8, 3
MOST_LINES = 40
# Rows of the table, some 200 bytes each.
MOST_ROWS = 20_000
# A larger measure is worse.
_HIGH_IS_BAD = ("bright", "huge", "extreme_aspect", "imbalance")


@dataclass(frozen=True)
class ShownGroup:
    """Images that belong together: those shown, and how many there are."""

    number: int
    members: list[DataFinding]
    size: int


@dataclass(frozen=True)
class ShownKind:
    """One kind of finding. ``lines``: of whole splits; ``images``: alone; ``groups``: together. ``images_count``,
    ``groups_count``: with those that are not shown; ``count``: all findings of the kind."""

    kind: FindingKind
    count: int
    lines: list[DataFinding]
    images: list[DataFinding]
    groups: list[ShownGroup]
    lines_count: int
    images_count: int
    groups_count: int

    def shown(self) -> Iterable[DataFinding]:
        """All that have a picture, in the order of the page."""
        yield from self.images
        for group in self.groups:
            yield from group.members


def shown_kinds(findings: Sequence[DataFinding]) -> list[ShownKind]:
    by_kind: dict[str, list[DataFinding]] = defaultdict(list)
    for finding in findings:
        by_kind[finding.finding].append(finding)
    return [_shown_kind(FINDING_KINDS[name], by_kind[name]) for name in KINDS_SHOWN if name in by_kind]


def _shown_kind(kind: FindingKind, findings: list[DataFinding]) -> ShownKind:
    lines = [finding for finding in findings if finding.index is None]
    alone = [finding for finding in findings if finding.index is not None and finding.group is None]
    groups: dict[int, list[DataFinding]] = defaultdict(list)
    for finding in findings:
        if finding.index is not None and finding.group is not None:
            groups[finding.group].append(finding)
    sign = -1.0 if kind.name in _HIGH_IS_BAD else 1.0
    alone.sort(key=lambda finding: sign * finding.measure if finding.measure is not None else 0.0)
    largest = sorted(groups, key=lambda number: (-len(groups[number]), number))[:MOST_GROUPS]
    return ShownKind(
        kind,
        len(findings),
        lines[:MOST_LINES],
        alone[:MOST_IMAGES],
        [_shown_group(number, groups[number]) for number in largest],
        *(len(lines), len(alone), len(groups)),
    )


def _shown_group(number: int, members: list[DataFinding]) -> ShownGroup:
    """Of a group of several splits, which stand side by side, some of each are shown."""
    by_split = [[member for member in members if member.split == split] for split in SPLITS]
    most = MOST_OF_SPLIT if sum(map(bool, by_split)) > 1 else MOST_MEMBERS
    return ShownGroup(number, [member for part in by_split for member in part[:most]], len(members))


def listed(findings: Sequence[DataFinding], most: int = MOST_ROWS) -> list[DataFinding]:
    """Rows of the table: where there are too many, the rarest kinds in full and as many of each other kind."""
    if len(findings) <= most:
        return list(findings)
    counts = Counter(finding.finding for finding in findings)
    room, share = most, dict.fromkeys(counts, 0)
    for done, name in enumerate(sorted(counts, key=lambda name: counts[name])):
        share[name] = min(counts[name], room // (len(counts) - done))
        room -= share[name]
    rows = []
    for finding in findings:
        if share[finding.finding]:
            share[finding.finding] -= 1
            rows.append(finding)
    return rows
