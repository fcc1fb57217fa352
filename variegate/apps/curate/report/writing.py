"""``write_report``: from the result of a check to one HTML file.

The page is made by Jinja2, which escapes whatever comes from the data; on top, the page forbids its browser any script
and style but its own two, and any request.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from variegate.apps.curate.finding import BESIDE, FINDING_KINDS, READ, DataFinding
from variegate.apps.curate.report.charts import MEASURES, class_sizes, histograms
from variegate.apps.curate.report.checked import Checked, CheckedRows
from variegate.apps.curate.report.choice import ShownKind, listed, shown_kinds
from variegate.apps.curate.report.limits import Limit, limits_of
from variegate.apps.curate.report.thumbnails import thumbnails
from variegate.apps.curate.report.words import file_size, title_of
from variegate.formats.base import Source, StreamSource
from variegate.io.addresses import without_secrets
from variegate.io.durable import write_errors_name, write_pieces

_PARTS = Path(__file__).parent / "parts"
_PIECE = 1 << 20


class Tile(NamedTuple):
    """A number that is seen first. ``mood``: "serious", "good" or nothing."""

    title: str
    value: str
    more: str
    mood: str = ""


class Column(NamedTuple):
    key: str
    title: str
    is_number: bool = False


_COLUMNS = (
    Column("finding", "Finding"),
    Column("file", "File"),
    Column("split", "Split"),
    Column("class", "Class"),
    Column("measure", "Measure", True),
    Column("group", "Group", True),
    Column("why", "Why"),
)


def write_report(path: Path | str, result: Checked, places: Mapping[str, str] | None = None) -> None:
    """One file that holds its pictures, styles and script, written under a temporary name and renamed.

    The images that are shown are read once more. ``places``: by split, what the sources are called, where they do not
    say it well enough. The same result gives the same bytes. Raises WriteError.
    """
    page = report_page(result, places).encode("utf-8", "backslashreplace")
    with write_errors_name(str(path)):
        write_pieces(Path(path), (page[first : first + _PIECE] for first in range(0, len(page), _PIECE)))


def report_page(result: Checked, places: Mapping[str, str] | None = None) -> str:
    """The HTML of ``write_report``."""
    rows, kinds = CheckedRows(result.table), shown_kinds(result.findings)
    limits = limits_of(result.thresholds)
    by_column: dict[str, list[tuple[str, float]]] = {}
    for limit in limits:
        by_column.setdefault(limit.column, []).append((limit.finding, limit.value))
    shown = [finding for kind in kinds for finding in kind.shown()]
    style, script = ((_PARTS / name).read_text("utf-8") for name in ("report.css", "report.js"))
    names = dict(places or {})
    place = without_secrets(
        " | ".join(names.get(split) or place_of(result.sources[split]) for split in READ if split in result.sources)
    )
    found = listed(result.findings)

    def class_of(finding: DataFinding) -> str | None:
        name = None if finding.index is None else rows.at((finding.split, finding.index), "class")
        return None if name is None else str(name)

    environment = _environment(len(result.table))
    return environment.get_template("report.html").render(
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        place=place,
        facts=_facts(result, rows),
        tiles=_tiles(result, rows),
        kinds=kinds,
        splits=len(rows.splits),
        split_names=rows.splits,
        charted=rows.charted,
        class_of=class_of,
        pictures=thumbnails(_places(shown), result.sources),
        limits=[_limit_row(limit) for limit in limits],
        classes=class_sizes(rows),
        histograms=histograms(rows, by_column),
        columns=_COLUMNS,
        rows=_rows_json(found, class_of) if found else None,
        rows_shown=len(found),
        rows_left_out=len(result.findings) - len(found),
    )


def _environment(images: int) -> Environment:
    made = Environment(loader=FileSystemLoader(_PARTS), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    made.filters |= {
        "title_of": title_of,
        "sentence": _sentence,
        "by_split": _by_split,
        "breakable": _breakable,
        "share": lambda count: f"{count / images:.1%}" if images and count else "",
    }
    return made


def _policy(style: str, script: str) -> str:
    """Of Content-Security-Policy: nothing is fetched, and no script or style runs but these, by their hashes."""

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; img-src data:; style-src {digest(style)}; script-src {digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def place_of(source: Source | StreamSource) -> str:
    """Of a folder its path; else what the source says of itself."""
    folder = getattr(source, "folder", None)
    return repr(source) if folder is None else str(folder)


def _places(findings: Sequence[DataFinding]) -> Iterator[tuple[str, int]]:
    return ((finding.split, finding.index) for finding in findings if finding.index is not None)


def _facts(result: Checked, rows: CheckedRows) -> list[str]:
    facts = []
    for split in rows.splits:
        size = pc.sum(rows.of(split, "bytes")).as_py() or 0
        facts.append(f"{rows.count(split):,} images ({BESIDE.get(split, split)}), {file_size(size)}")
    for column in ("kind", "mode"):
        counts = result.table[column].drop_null().value_counts().to_pylist()
        counts.sort(key=lambda pair: (-pair["counts"], pair["values"]))
        if counts:
            facts.append(", ".join(f"{pair['counts']:,} {pair['values']}" for pair in counts[:5]))
    if result.mean and result.std:
        mean, std = (" ".join(f"{one:.3f}" for one in values) for values in (result.mean, result.std))
        facts.append(f"pixels: mean {mean}, deviation {std}")
    return facts


def _tiles(result: Checked, rows: CheckedRows) -> list[Tile]:
    images = len(result.table)
    flagged = {(one.split, one.index) for one in result.findings if one.index is not None}
    serious = [one for one in result.findings if FINDING_KINDS[one.finding].is_serious]
    hurt = {(one.split, one.index) for one in serious if one.index is not None}
    parts = " + ".join(f"{rows.count(split):,} {split}" for split in rows.splits)
    tiles = [
        Tile("Images", f"{images:,}", parts if len(rows.splits) > 1 else ""),
        Tile("Serious", f"{len(hurt):,}", _share(len(hurt), images), "serious" if serious else "good"),
        Tile("With a finding", f"{len(flagged):,}", _share(len(flagged), images), "" if flagged else "good"),
    ]
    classes = len(result.table["class"].drop_null().unique())
    return [*tiles, Tile("Classes", f"{classes:,}", "")] if classes else tiles


def _share(count: int, images: int) -> str:
    return f"{count / images:.1%} of the images" if images else ""


def _limit_row(limit: Limit) -> dict[str, str]:
    measure = next(one for one in MEASURES if one.column == limit.column)
    return {"finding": limit.finding, "measure": measure.title.lower(), "text": measure.text(limit.value)}


def _sentence(shown: ShownKind) -> str:
    """What the kind means, and what of it is shown."""
    parts = [f"{shown.kind.meaning[0].upper()}{shown.kind.meaning[1:]}."]
    for some, count, what in (
        (shown.lines, shown.lines_count, "lines"),
        (shown.images, shown.images_count, "images"),
        (shown.groups, shown.groups_count, "groups, the largest first"),
    ):
        if len(some) < count:
            parts.append(f"Shown are {len(some):,} of {count:,} {what}.")
    return " ".join(parts)


def _by_split(members: list[DataFinding]) -> list[tuple[str, list[DataFinding]]]:
    return [(split, list(some)) for split, some in groupby(members, key=lambda member: member.split)]


def _breakable(name: str) -> Markup:
    """A path that may go on in the next line after a slash."""
    return Markup("/<wbr>").join(escape(part) for part in name.split("/"))


def _rows_json(findings: Sequence[DataFinding], class_of: Any) -> Markup:
    """The table's content, for the script of the page: within HTML, so that no name ends the element around it."""
    names = {name: title_of(name) for name in FINDING_KINDS}
    columns = [column._asdict() for column in _COLUMNS]
    columns[0]["names"] = names
    rows = [
        (one.finding, one.file, one.split, class_of(one), _finite(one.measure), one.group, one.why) for one in findings
    ]
    text = json.dumps({"columns": columns, "rows": rows}, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _finite(measure: float | None) -> float | None:
    return None if measure is None or measure != measure or abs(measure) == float("inf") else measure
