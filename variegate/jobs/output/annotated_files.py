"""The files of annotations of a run: made of the rows of its outputs and its settings alone, so that they can be made
again at any time, and compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from variegate.formats.annotated.written import Content, Row, Rows
from variegate.formats.base import SourceError
from variegate.formats.coco.write import coco_files
from variegate.formats.stamps import printable
from variegate.formats.storage import Storage
from variegate.formats.voc import voc_files
from variegate.formats.yolo.rows import yolo_files
from variegate.jobs.output.lost_outputs import real_name, size_lookup
from variegate.jobs.output.manifest import Manifest
from variegate.jobs.output.verify_outputs import Problem

# Of a setting of the run: what its data set says of itself (``AnnotatedFolder.about``).
SETTING = "annotated"
_COLUMNS = ("file", "status", "height", "width", "targets")
_FILES_AT_ONCE = 64
_FORMATS = {"coco": coco_files, "voc": voc_files, "yolo": yolo_files}


def write_annotations(storage: Storage, settings: dict[str, Any], rows: Callable[[], Iterator[Row]]) -> None:
    """``rows``: of all outputs, in order. Every file is there whole, or as it was. Raises WriteError."""
    _write(storage, _files(settings, rows))


def lost_annotations(storage: Storage, manifest: Manifest) -> set[str]:
    """The files that are missing or have another size."""
    size_of = size_lookup(storage)
    files = _files(manifest.settings, lambda: manifest.columns(*_COLUMNS))
    return {name for name, content in files if size_of(printable(name)) != sum(map(len, _pieces(content)))}


def restore_annotations(storage: Storage, manifest: Manifest, lost: set[str]) -> None:
    """Write these again. Raises WriteError."""
    files = _files(manifest.settings, lambda: manifest.columns(*_COLUMNS))
    _write(storage, ((name, content) for name, content in files if name in lost))


def annotation_problems(storage: Storage, manifest: Manifest, expected: set[str]) -> Iterator[Problem]:
    """The names are added to ``expected``. Raises SourceError for rows that are not those of such a run."""
    size_of = size_lookup(storage)
    try:
        for name, content in _files(manifest.settings, lambda: manifest.columns(*_COLUMNS)):
            shown = printable(name)
            expected.add(shown)
            if size_of(shown) is None:
                yield Problem(shown, "missing", "missing")
                continue
            digest = hashlib.sha256()
            for piece in _pieces(content):
                digest.update(piece)
            if storage.sha256(real_name(storage, shown)) != digest.hexdigest():
                yield Problem(shown, "not what the manifest's rows come to", "damaged")
    except (ValueError, KeyError, TypeError, IndexError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"damaged: the targets in it cannot be read ({error})") from None


def _files(settings: dict[str, Any], rows: Callable[[], Iterator[Row]]) -> Iterator[tuple[str, Content]]:
    def numbered() -> Iterator[tuple[int, Row]]:
        return ((number, row) for number, row in enumerate(rows(), 1) if row["status"] == "written")

    about = settings[SETTING]
    make: Callable[[Any, Any, Rows], Iterator[tuple[str, Content]]] | None = _FORMATS.get(about["format"])
    return iter(()) if make is None else make(about, settings["classes"], numbered)


def _write(storage: Storage, files: Iterator[tuple[str, Content]]) -> None:
    waiting: list[tuple[str, bytes]] = []
    for name, content in files:
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


def _pieces(content: Content) -> Iterator[bytes]:
    return iter((content,)) if isinstance(content, bytes) else iter(content)
