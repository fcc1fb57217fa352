"""The report of a check: a self-contained HTML file.

The page is made by Jinja2, which escapes whatever comes from the data; on top, the page forbids its browser any script
and style but its own two, and any request.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from variegate.apps.check.findings import (
    BYTE,
    FINDING_KINDS,
    KINDS_SHOWN,
    READ,
    SPLIT_TITLES,
    SPLITS,
    DataFinding,
    FindingKind,
    floats,
)
from variegate.apps.check.report.figures import MEASURES, class_sizes, histograms, limits_of, thumbnails
from variegate.apps.check.selection import LIST_PREFIX, Found, ImageFinding, choose
from variegate.apps.check.values import Windows
from variegate.data.samples import Samples
from variegate.io.addresses import redact_secrets, redact_url
from variegate.io.amounts import format_size, pluralize
from variegate.io.durable import write_atomically

_PARTS = Path(__file__).parent / "parts"
THEME = _PARTS / "theme.css"  # shared with the studio
# Keys, titles, and whether numbers are in it.
_COLUMNS = (
    ("finding", "Finding", False),
    ("file", "File", False),
    ("split", "Split", False),
    ("class", "Class", False),
    ("measure", "Measure", True),
    ("group", "Group", True),
    ("why", "Why", False),
)


def write_report(path: Path | str, result: Any, dicom: Any = None) -> None:
    """Write a file with embedded pictures, styles and script, under a temporary name, then rename it.

    ``result``: a CheckResult. ``dicom``: a ``vg.Dicom``. Images in the report are read again. The same result gives
    the same bytes. Raises WriteError.
    """
    page = _page(result, dicom).encode("utf-8", "backslashreplace")
    write_atomically(Path(path), page)


def _page(result: Any, dicom: Any) -> str:
    measured = {"height", "width", "class", "clipped_low", "clipped_high", *(measure.column for measure in MEASURES)}
    columns = result.table.select([name for name in result.table.column_names if name in measured])
    splits = {split: columns.filter(pc.equal(result.table["split"], split)) for split in SPLITS}
    splits = {split: table for split, table in splits.items() if len(table)}
    charted = {split: table for split, table in splits.items() if split in READ}
    kinds = shown_kinds(result.findings)
    limits = limits_of(result.thresholds)
    droppable = images_to_drop(result.findings, splits.get("train"))
    found = listed(one_of_each_pair(result.findings, droppable))
    places = [(one.split, one.index) for kind in kinds for one in kind.redact_url() if one.index is not None]
    own, script = ((_PARTS / name).read_text("utf-8") for name in ("report.css", "report.js"))
    style = THEME.read_text("utf-8") + own

    def class_of(finding: DataFinding) -> str | None:
        name = None if finding.index is None else splits[finding.split]["class"][finding.index].as_py()
        return None if name is None else str(name)

    environment = Environment(
        loader=FileSystemLoader(_PARTS), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    images = len(result.table)
    environment.filters |= {
        "title_of": _title_of,
        "sentence": _sentence,
        "by_split": lambda some: [(split, list(of)) for split, of in groupby(some, key=lambda one: one.split)],
        # A path may go on in the next line after a slash.
        "breakable": lambda name: Markup("/<wbr>").join(escape(part) for part in name.split("/")),
        "share": lambda count: f"{count / images:.1%}" if images and count else "",
    }
    return environment.get_template("report.html").render(
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        place=redact_secrets(" | ".join(_place(result.sources[split]) for split in READ if split in result.sources)),
        facts=_facts(result, splits),
        tiles=_tiles(result, splits),
        kinds=kinds,
        splits=len(splits),
        split_names=list(splits),
        charted=list(charted),
        class_of=class_of,
        pictures=thumbnails(places, result.sources, Windows(result.table).of, dicom),
        droppable_kinds={kind for kind, _ in droppable},
        classes=class_sizes(charted),
        histograms=histograms(charted, limits),
        columns=[{"title": title, "is_number": is_number} for _, title, is_number in _COLUMNS],
        rows=_rows_json(found, class_of, droppable, _place(result.sources["train"])) if found else None,
        rows_shown=len(found),
        rows_left_out=len(result.findings) > MOST_ROWS,
    )


def _policy(style: str, script: str) -> str:
    """Content-Security-Policy: nothing is fetched, and only the embedded scripts and styles run, by their hashes."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script))
    style_hash, script_hash = (f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; img-src data:; style-src {style_hash}; script-src {script_hash}; "
        "base-uri 'none'; form-action 'none'"
    )


def _place(source: Any) -> str:
    """A folder's path, or else the source's description."""
    is_folder = isinstance(source, Samples) and source.folder is not None
    return str(source.folder) if is_folder else repr(source)


def _title_of(finding: str) -> str:
    """``near_duplicates`` -> Near duplicates."""
    return finding.replace("_", " ").capitalize().replace("Exif", "EXIF")


def _facts(result: Any, splits: Mapping[str, pa.Table]) -> list[str]:
    facts = []
    for split, table in splits.items():
        size = pc.sum(table["bytes"]).as_py() or 0
        facts.append(f"{pluralize(len(table), 'image')} ({SPLIT_TITLES.get(split, split)}), {format_size(size)}")
    for column in ("kind", "mode", "depth"):
        counts = result.table[column].drop_null().value_counts().to_pylist()
        counts.sort(key=lambda pair: (-pair["counts"], pair["values"]))
        if counts and [pair["values"] for pair in counts] != [BYTE]:
            facts.append(", ".join(f"{pair['counts']:,} {pair['values']}" for pair in counts[:5]))
    if result.mean and result.std:
        mean, std = (" ".join(f"{one:.3f}" for one in values) for values in (result.mean, result.std))
        facts.append(f"pixels: mean {mean}, deviation {std}")
    return facts


def _tiles(result: Any, splits: Mapping[str, pa.Table]) -> list[dict[str, str]]:
    """Numbers that are seen first. ``mood``: "serious", "good" or nothing."""
    images = len(result.table)
    flagged = {(one.split, one.index) for one in result.findings if one.index is not None}
    serious = [one for one in result.findings if FINDING_KINDS[one.finding].is_serious]
    hurt = {(one.split, one.index) for one in serious if one.index is not None}
    parts = " + ".join(f"{len(table):,} {split}" for split, table in splits.items())

    def share(count: int) -> str:
        return f"{count / images:.1%} of the images" if images else ""

    tiles = [
        ("Images", images, parts if len(splits) > 1 else "", ""),
        ("Serious", len(hurt), share(len(hurt)), "serious" if serious else "good"),
        ("With a finding", len(flagged), share(len(flagged)), "" if flagged else "good"),
    ]
    classes = len(result.table["class"].drop_null().unique())
    tiles += [("Classes", classes, "", "")] if classes else []
    return [{"title": title, "value": f"{value:,}", "more": more, "mood": mood} for title, value, more, mood in tiles]


def _sentence(redact_url: ShownKind) -> str:
    """The meaning of the kind, and the number of findings in the report."""
    parts = [f"{redact_url.kind.meaning[0].upper()}{redact_url.kind.meaning[1:]}."]
    shown_lists: tuple[Sequence[Any], ...] = (redact_url.lines, redact_url.images, redact_url.groups)
    names = ("lines", "images", "groups, the largest first")
    for some, count, named in zip(shown_lists, redact_url.totals, names, strict=True):
        if len(some) < count:
            parts.append(f"Shown are {len(some):,} of {count:,} {named}.")
    return " ".join(parts)


def _rows_json(
    findings: Sequence[DataFinding],
    class_of: Callable[[DataFinding], str | None],
    droppable: set[tuple[str, int]],
    place: str,
) -> Markup:
    """The table's content and the beginning of the drop list, for the script of the page: within HTML, so that no name
    ends the element around it."""
    columns: list[dict[str, Any]] = [{"key": key, "title": title, "is_number": is_it} for key, title, is_it in _COLUMNS]
    columns[0]["names"] = {name: _title_of(name) for name in FINDING_KINDS}
    rows = [
        (one.finding, one.file, one.split, class_of(one), _finite(one.measure), one.group, one.why) for one in findings
    ]
    dropped = [int(one.split == "train" and (one.finding, one.index) in droppable) for one in findings]
    head = f"{LIST_PREFIX}{' '.join(redact_url(place).split())} by variegate clean"
    content = {"columns": columns, "rows": rows, "dropped": dropped, "head": head}
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _finite(measure: float | None) -> float | None:
    return measure if measure is not None and math.isfinite(measure) else None


# Pictures of one kind of finding, groups of one, and pictures in a group; in a group of several splits, of each.
MOST_IMAGES, MOST_GROUPS, MOST_MEMBERS, MOST_OF_SPLIT = 24, 20, 8, 3
MOST_LINES = 40
# Rows of the table, some 200 bytes each.
MOST_ROWS = 20_000
# A larger measure is worse.
_HIGH_IS_BAD = ("bright", "huge", "extreme_aspect", "imbalance", "clipped", "not_finite")


@dataclass(frozen=True)
class ShownGroup:
    """A group of images: the images in the report, and their total."""

    number: int
    members: list[DataFinding]
    size: int


@dataclass(frozen=True)
class ShownKind:
    """A kind of finding: its part in the report. ``lines``: of whole splits; ``images``: alone; ``groups``: together.
    ``totals``: numbers of lines, images and groups; ``count``: all findings of the kind."""

    kind: FindingKind
    count: int
    lines: list[DataFinding]
    images: list[DataFinding]
    groups: list[ShownGroup]
    totals: tuple[int, int, int]

    def redact_url(self) -> Iterable[DataFinding]:
        """All images with a picture, in the order of the page."""
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
        (len(lines), len(alone), len(groups)),
    )


def _shown_group(number: int, members: list[DataFinding]) -> ShownGroup:
    """For a group of several splits, which are side by side, the report has some images of each."""
    by_split = [[member for member in members if member.split == split] for split in SPLITS]
    most = MOST_OF_SPLIT if sum(map(bool, by_split)) > 1 else MOST_MEMBERS
    return ShownGroup(number, [member for part in by_split for member in part[:most]], len(members))


def images_to_drop(findings: Sequence[DataFinding], train: pa.Table | None) -> set[tuple[str, int]]:
    """(kind, index) of the train images that ``variegate clean`` excludes if one kind is dropped."""
    if train is None:
        return set()
    here = [one for one in findings if one.split == "train" and one.index is not None]
    pixels = floats(train, "height") * floats(train, "width")
    found = Found(
        place="",
        fingerprint="",
        index=np.arange(len(train)),
        files=[""] * len(train),
        sizes=np.asarray(train["bytes"].fill_null(-1)).astype(np.int64),
        pixels=np.nan_to_num(pixels).astype(np.int64),
        entries=[ImageFinding(int(one.index or 0), one.finding, one.group, one.why) for one in here],
    )
    kinds = {one.finding for one in here}
    return {(kind, image.index) for kind in kinds for image in choose(found, [kind])}


def one_of_each_pair(findings: Sequence[DataFinding], droppable: set[tuple[str, int]]) -> list[DataFinding]:
    """Findings of a group without the images that stay: a row per pair, whose reason names the other. If nothing would
    be dropped, or all, the first image of the group stays."""
    groups: dict[tuple[str, int], list[DataFinding]] = defaultdict(list)
    for one in findings:
        if one.group is not None:
            groups[one.finding, one.group].append(one)
    stays: set[int] = set()
    for members in groups.values():
        kept = [one for one in members if one.split != "train" or (one.finding, one.index) not in droppable]
        stays.update(map(id, kept if 0 < len(kept) < len(members) else members[:1]))
    return [one for one in findings if id(one) not in stays]


def listed(findings: Sequence[DataFinding]) -> list[DataFinding]:
    """Rows of the table; a long table has the rarest kinds."""
    if len(findings) <= MOST_ROWS:
        return list(findings)
    counts = Counter(finding.finding for finding in findings)
    rarest_first = sorted(range(len(findings)), key=lambda at: counts[findings[at].finding])
    return [findings[at] for at in sorted(rarest_first[:MOST_ROWS])]
