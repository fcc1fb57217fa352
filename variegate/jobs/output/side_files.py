"""Files beside the outputs that follow from rows and settings: they can be compared, and made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from variegate.data.annotated.written import Content, Row
from variegate.data.base import SourceError
from variegate.data.coco import coco_files
from variegate.data.labels import CLASS_NAMES, class_names_bytes
from variegate.data.packed import INDEX_NAME, STATISTICS_NAME, PixelSums, statistics_bytes
from variegate.data.stamps import printable
from variegate.data.storage import Storage
from variegate.data.voc import voc_files
from variegate.data.yolo import yolo_files
from variegate.jobs.output import run_record
from variegate.jobs.output.manifest import Manifest
from variegate.jobs.output.parts import real_name, size_lookup

# Of a setting of the run: ``AnnotatedFolder.about`` of its data set.
ANNOTATED = "annotated"
_ANNOTATED_COLUMNS = ("file", "status", "height", "width", "targets")
# Columns that ``totals_of`` looks at.
PACKED_COLUMNS = ("file", "status", "reason", "source", "index", "height", "width", "shard_bytes", "packed")
_FILES_AT_ONCE = 64
_FORMATS: dict[str, Callable[..., Iterator[tuple[str, Content]]]]
_FORMATS = {"coco": coco_files, "voc": voc_files, "yolo": yolo_files}


class Problem(NamedTuple):
    """A file that is not as the manifest says."""

    file: str  # below the destination
    problem: str
    kind: str  # "missing", "damaged" (which ``delete_damaged`` removes), "unreadable" or "extra"


def write_annotations(
    storage: Storage, settings: dict[str, Any], rows: Callable[[], Iterator[Row]], only: set[str] | None = None
) -> None:
    """Write the files of annotations, or ``only`` some. ``rows``: of all outputs, in order."""
    waiting: list[tuple[str, bytes]] = []
    for name, content in _annotations(settings, rows):
        if only is not None and name not in only:
            continue
        if isinstance(content, bytes):
            waiting.append((name, content))
            if len(waiting) == _FILES_AT_ONCE:
                storage.write_many(waiting)
                waiting = []
            continue
        with storage.writer(name) as out:
            for piece in content:
                out.file.write(piece)
            out.commit()
    if waiting:
        storage.write_many(waiting)
    storage.sync()


def lost_annotations(storage: Storage, manifest: Manifest) -> set[str]:
    """The files that are missing or have another size."""
    size_of = size_lookup(storage)
    files = _annotations(manifest.settings, lambda: manifest.columns(*_ANNOTATED_COLUMNS))
    return {name for name, content in files if size_of(printable(name)) != sum(map(len, _pieces(content)))}


def restore_annotations(storage: Storage, manifest: Manifest, lost: set[str]) -> None:
    write_annotations(storage, manifest.settings, lambda: manifest.columns(*_ANNOTATED_COLUMNS), lost)


def _annotations(settings: dict[str, Any], rows: Callable[[], Iterator[Row]]) -> Iterator[tuple[str, Content]]:
    def numbered() -> Iterator[tuple[int, Row]]:
        return ((number, row) for number, row in enumerate(rows(), 1) if row["status"] == "written")

    make = _FORMATS.get(settings[ANNOTATED]["format"])
    return iter(()) if make is None else make(settings[ANNOTATED], settings["classes"], numbered)


def _pieces(content: Content) -> Iterator[bytes]:
    return iter((content,)) if isinstance(content, bytes) else iter(content)


@dataclass
class Totals:
    """Rows of a packing, added up. ``shards``: bytes by name; ``kept``: files copied as they were."""

    sums: PixelSums = field(default_factory=PixelSums)
    shards: dict[str, int] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    kept: int = 0
    bytes_before: int = 0


def totals_of(rows: Iterable[Row]) -> Totals:
    """Raises ValueError, KeyError or TypeError for rows of another kind of run."""
    found = Totals()
    for row in rows:
        if row["status"] != "written":
            found.skipped.append((row["source"], row["reason"]))
            continue
        about = json.loads(row["packed"])
        found.sums.add(row["height"] * row["width"], about["sums"], about["squares"])
        found.shards[row["file"]] = row["shard_bytes"]
        found.kept += about["kept"]
        found.bytes_before += about["bytes"]
    return found


def side_file_problems(storage: Storage, manifest: Manifest, expected: set[str]) -> Iterator[Problem]:
    """Every side file that is not as it should be; the names of all are added to ``expected``. Raises SourceError."""
    settings = manifest.settings
    size_of = size_lookup(storage)
    try:
        if run_record.describe_difference(run_record.read_settings(storage), settings):
            yield Problem(run_record.SETTINGS_NAME, "not the settings that the manifest has", "damaged")
    except FileNotFoundError:
        yield Problem(run_record.SETTINGS_NAME, "missing", "missing")
    except SourceError:
        yield Problem(run_record.SETTINGS_NAME, "not the settings of a run", "damaged")
    try:
        run_record.read_source(storage)
    except SourceError as error:
        yield Problem(
            run_record.SOURCE_NAME, str(error).removeprefix(f"{storage.place_of(run_record.SOURCE_NAME)}: "), "damaged"
        )
    for name, wrong, digest in _expected_digests(manifest):
        shown = printable(name)
        expected.add(shown)
        if size_of(shown) is None:
            yield Problem(shown, "missing", "missing")
        elif storage.sha256(real_name(storage, shown)) != digest:
            yield Problem(shown, wrong, "damaged")
    if settings.get("command") == "pack":
        yield from _packed_problems(storage, manifest, expected)


def _expected_digests(manifest: Manifest) -> Iterator[tuple[str, str, str | None]]:
    """Side files that follow from the manifest: name, what is said of another one, checksum. Raises SourceError."""
    settings = manifest.settings
    if settings.get("layout") == "webdataset" and settings.get("classes"):
        names = hashlib.sha256(class_names_bytes(settings["classes"])).hexdigest()
        yield CLASS_NAMES, "not the classes of the run", names
    if ANNOTATED not in settings:
        return
    try:
        for name, content in _annotations(settings, lambda: manifest.columns(*_ANNOTATED_COLUMNS)):
            digest = hashlib.sha256()
            for piece in _pieces(content):
                digest.update(piece)
            yield name, "not what the manifest's rows come to", digest.hexdigest()
    except (ValueError, KeyError, TypeError, IndexError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"damaged: the targets in it cannot be read ({error})") from None


def _packed_problems(storage: Storage, manifest: Manifest, expected: set[str]) -> Iterator[Problem]:
    try:
        found = totals_of(manifest.columns(*PACKED_COLUMNS))
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"damaged: the sums in it cannot be read ({error})") from None
    if not found.shards:
        return
    has_index = manifest.settings.get("layout") != "raw"
    names = [STATISTICS_NAME, *([INDEX_NAME] if has_index else [])]
    expected.update(names)
    missing = [name for name in names if not storage.exists(name)]
    yield from (Problem(name, "missing", "missing") for name in missing)
    if STATISTICS_NAME in missing:
        return
    written = storage.read(STATISTICS_NAME)
    try:
        index = json.loads(written)["index"]
        is_right = written == statistics_bytes(found.sums, index) and (index is not None) == has_index
    except (ValueError, KeyError, TypeError):
        is_right = False
    if not is_right:
        yield Problem(STATISTICS_NAME, "not what the manifest's sums come to", "damaged")
    elif has_index and INDEX_NAME not in missing and storage.sha256(INDEX_NAME) != index["sha256"]:
        yield Problem(INDEX_NAME, f"its checksum is not that in {STATISTICS_NAME}", "damaged")
