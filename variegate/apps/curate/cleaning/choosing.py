"""Which images go: all in which something of a kind was found, but for one of each group of duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from variegate.apps.curate.cleaning.found import Found, ImageFinding
from variegate.apps.curate.finding import FINDING_KINDS
from variegate.checks import meant, refused

# Of a group of these one image stays: the one with the most pixels, of equals the one with the most bytes, then the
# first. Exact duplicates come first, so that a group of near ones holds one of each.
KEPT_ONE_OF = ("duplicates", "near_duplicates")
ALL = "all"


@dataclass
class LeftOut:
    """``index``: in the source. ``findings``: why, by kind, and what the check said. ``kept``: the image that stays of
    its group of duplicates; None for others."""

    index: int
    file: str
    findings: dict[str, str] = field(default_factory=dict)
    kept: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"file": self.file, "index": self.index, "findings": self.findings, "kept": self.kept}


def parse_drop(text: str | Sequence[str]) -> tuple[str, ...]:
    """Names of findings as typed -> as they are, in their order; ``duplicate`` and ``near-duplicate`` are understood.

    Raises ValueError for others, naming those that there are.
    """
    wanted = [one.strip() for one in text.split(",")] if isinstance(text, str) else list(text)
    names = {alias: name for name in FINDING_KINDS for alias in (name, name.removesuffix("s"))}
    found: set[str] = set()
    for one in wanted:
        word = one.lower().replace("-", "_").replace(" ", "_")
        if word == ALL:
            found |= set(FINDING_KINDS)
        elif word in names:
            found.add(names[word])
        else:
            raise refused("drop", one, f"{', '.join(FINDING_KINDS)}, or {ALL}{meant(word, (*FINDING_KINDS, ALL))}")
    return tuple(name for name in FINDING_KINDS if name in found)


def choose(found: Found, drop: Sequence[str]) -> list[LeftOut]:
    """What goes, in the order of the source. Of a group of duplicates that holds images that go for another reason, one
    of the others stays."""
    gone: dict[int, LeftOut] = {}

    def leave_out(entry: ImageFinding, kept: str | None = None) -> None:
        one = gone.setdefault(entry.row, LeftOut(int(found.index[entry.row]), found.files[entry.row]))
        one.findings.setdefault(entry.finding, entry.why or "")
        one.kept = one.kept or kept

    for kind in (name for name in drop if name not in KEPT_ONE_OF):
        for entry in (one for one in found.entries if one.finding == kind):
            leave_out(entry)
    for kind in (name for name in KEPT_ONE_OF if name in drop):
        groups: dict[int, list[ImageFinding]] = {}
        for entry in found.entries:
            if entry.finding == kind and entry.group is not None and entry.row not in gone:
                groups.setdefault(entry.group, []).append(entry)
        for group in groups.values():
            # An image may be in several groups, and gone with one of those before.
            left = [entry for entry in group if entry.row not in gone]
            if len(left) < 2:
                continue
            best = min(left, key=lambda entry: _rank(found, entry.row))
            for entry in left:
                if entry.row != best.row:
                    leave_out(entry, found.files[best.row])
    return sorted(gone.values(), key=lambda one: one.index)


def counts_of(left_out: Sequence[LeftOut]) -> dict[str, int]:
    """Of images by kind; one may be in several."""
    kinds = [kind for one in left_out for kind in one.findings]
    return {name: kinds.count(name) for name in FINDING_KINDS if name in kinds}


def _rank(found: Found, row: int) -> tuple[int, int, int]:
    return -int(found.pixels[row]), -int(found.sizes[row]), int(found.index[row])
