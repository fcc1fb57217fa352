"""Images in class folders (``root/class/xxx.jpg``, as torchvision's ImageFolder has it) or in one flat folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from variegate.arrays import Int64Array
from variegate.data.base import SourceError, digest_of, summarize_names
from variegate.data.kinds import (
    ARRAY_EXTENSIONS,
    IMAGE_EXTENSIONS,
    UNSUPPORTED_IMAGES,
    is_image_name,
    is_sidecar,
    is_system_name,
    is_system_path,
)
from variegate.data.reading import find_below, read_file
from variegate.data.samples import Samples, Store, name_column, names_in
from variegate.decode import read_bytes
from variegate.io.amounts import pluralize
from variegate.io.files import StrPath
from variegate.io.location import Location, LocationLike, inside

FLAT_CLASS = "."
_DIGEST_ROWS = 1 << 16


@dataclass
class WalkedFolder:
    """The names in each folder (``files``), as a column of Samples, which takes a third of the memory of a list; FIFOs,
    sockets, devices, and links to them (``irregular``); folders that the system does not list, with its reason
    (``unread``). Paths are relative to the root, whose own is ""."""

    files: dict[str, Any] = field(default_factory=dict)
    irregular: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def walk(root: StrPath) -> WalkedFolder:
    """Names of the system (``is_system_name``) are skipped. Links are followed, but not to a folder around them."""
    walked = WalkedFolder()
    waiting: list[tuple[str, str, tuple[str, ...]]] = [(os.fspath(root), "", ())]
    while waiting:
        path, relative, above = waiting.pop()
        real = os.path.realpath(path)
        if real in above:
            continue
        inside = f"{relative}/" if relative else ""
        names: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if is_system_name(entry.name):
                        continue
                    what = _kind(entry)
                    if what == "folder":
                        waiting.append((entry.path, inside + entry.name, (*above, real)))
                    elif what == "file":
                        names.append(entry.name)
                    else:
                        walked.irregular.append(inside + entry.name)
        except OSError as error:
            walked.unread.append(f"{relative or '.'} ({error.strerror or error})")
        walked.files[relative] = name_column(names)
    walked.irregular.sort()
    walked.unread.sort()
    return walked


def walk_remote(location: Location) -> WalkedFolder:
    """``walk`` for an address. Raises SourceError where it cannot be listed."""
    walked = WalkedFolder()
    files: dict[str, list[str]] = {"": []}
    for relative, info in find_below(location, withdirs=True).items():
        *above, name = relative.split("/")
        if not relative or is_system_path(relative):
            continue
        if info["type"] == "directory":
            files.setdefault(relative, [])
        elif info["type"] == "other":  # what file servers say of pipes and devices
            walked.irregular.append(relative)
        else:
            files.setdefault("/".join(above), []).append(name)
    walked.files = {folder: name_column(names) for folder, names in files.items()}
    return walked


def _kind(entry: os.DirEntry[str]) -> str:
    """Classify an entry from the listing alone, because a million stat calls take minutes; links are followed."""
    try:
        if entry.is_dir():
            return "folder"
        # A link that leads nowhere, or in a circle, is a picture that is missing: reading it says so.
        if entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path)):
            return "file"
    except OSError:
        return "file"
    return "other"


class FolderStore(Store):
    """Images of a folder, or its .npy files."""

    def read(self, samples: Samples, row: int) -> bytes:
        assert samples.folder is not None
        path = samples.text(samples.path, row)
        if samples.is_remote:
            return read_file(samples.folder.child(path))
        return read_bytes(inside(samples.folder.address(), path))

    def digest(self, samples: Samples) -> str:
        # Of the listing alone: asking the size of a million files takes minutes on a network disk.
        return digest_of("\0".join(samples.classes), *_listing_bytes(samples))


def _listing_bytes(samples: Samples) -> Iterator[bytes]:
    assert isinstance(samples.label, np.ndarray)
    for start in range(0, samples.size, _DIGEST_ROWS):
        names = samples.path[start : start + _DIGEST_ROWS].to_pylist()
        labels = samples.label[start : start + _DIGEST_ROWS].tolist()
        yield b"".join(b"\0%b\0%d" % row for row in zip(names, labels, strict=True))


def list_images(folder: Location, walked: WalkedFolder) -> Samples:
    """The images of a folder, or its .npy files if it has no images; sorted by class, folder and name as ImageFolder
    does. Takes the names out of ``walked``. Raises SourceError for a folder without images."""
    has_images = any(is_image_name(name) for names in walked.files.values() for name in names_in(names))
    suffixes = IMAGE_EXTENSIONS if has_images else ARRAY_EXTENSIONS
    here, ignored = _split("", walked.files.pop(""), suffixes)
    columns: list[Any] = []
    counts: dict[str, int] = {}
    others: list[str] = []
    for below in sorted(walked.files, key=lambda below: (below.partition("/")[0], below)):
        paths, more = _split(f"{below}/", walked.files.pop(below), suffixes)
        class_name = below.partition("/")[0]
        counts[class_name] = counts.get(class_name, 0) + len(paths)
        columns.append(name_column(paths))
        others += more
    unclassified = None
    if any(counts.values()):
        label = np.repeat(np.arange(len(counts)), list(counts.values()))
        ignored += others
        unclassified = flat_folder(folder, here) if here else None
        remarks = _remarks(counts, here, ignored, walked)
        names = pa.concat_arrays(columns)
        columns.clear()
        pa.default_memory_pool().release_unused()
        empty = tuple(name for name, count in counts.items() if not count)
        samples = _samples(folder, tuple(counts), names, label, remarks, empty, unclassified)
    else:
        # Without any image, the error names the other files in class folders.
        ignored += [] if here else others
        samples = flat_folder(folder, here, _remarks({}, [], ignored, walked))
    if not len(samples):
        beside = ", ".join(_in_words(ignored)) if ignored else "no other files"
        seen = ", ".join([beside, *_unusable(walked)])
        accepted = f"accepted extensions: {' '.join(IMAGE_EXTENSIONS + ARRAY_EXTENSIONS)}"
        raise SourceError(f"{folder}: no images ({seen}); {accepted}")
    return samples


def flat_folder(folder: Location, paths: Sequence[str], remarks: Sequence[str] = ()) -> Samples:
    """Images that are all of one class."""
    return _samples(folder, (FLAT_CLASS,), name_column(paths), np.zeros(len(paths), np.int64), remarks)


def _samples(
    folder: Location,
    classes: tuple[str, ...],
    names: Any,
    label: Int64Array,
    remarks: Sequence[str],
    empty_classes: tuple[str, ...] = (),
    unclassified: Samples | None = None,
) -> Samples:
    return Samples(
        place=str(folder),
        size=len(names),
        store=FolderStore(),
        classes=classes,
        path=names,
        folder=folder,
        label=label,
        remarks=remarks,
        is_remote=folder.is_url,
        empty_classes=empty_classes,
        unclassified=unclassified,
    )


def _remarks(counts: Mapping[str, int], beside: list[str], ignored: list[str], walked: WalkedFolder) -> list[str]:
    remarks = []
    if empty := [name for name, count in counts.items() if not count]:
        remarks.append(f"class folders without images: {summarize_names(empty)}")
    if beside:
        remarks.append(
            f"ignored {pluralize(len(beside), 'image')} next to the class folders: {summarize_names(beside)}; loaders "
            "do not read such images, variegate check does; move them into a class folder"
        )
    if ignored:
        remarks.append(f"ignored {pluralize(len(ignored), 'file')} of other kinds: {summarize_names(ignored)}")
    return [*remarks, *_unusable(walked, " (FIFO, socket, device)")]


def _unusable(walked: WalkedFolder, such_as: str = "") -> list[str]:
    kinds = {"irregular file": walked.irregular, "folder without permission to list it": walked.unread}
    return [f"{pluralize(len(names), noun)}: {summarize_names(names)}" for noun, names in kinds.items() if names]


def _in_words(paths: Sequence[str]) -> list[str]:
    """``["12 unsupported .jp2 files", "3 other files"]``."""
    counts = Counter(os.path.splitext(path)[1].lower() for path in paths)
    named = {extension: count for extension, count in counts.most_common() if extension in UNSUPPORTED_IMAGES}
    lines = [pluralize(count, f"unsupported {extension} file") for extension, count in named.items()]
    others = len(paths) - sum(named.values())
    return [*lines, *([pluralize(others, "other file")] if others else [])]


def _split(inside: str, names: Any, suffixes: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Images, which have one of ``suffixes``, and other files except sidecars."""
    images: list[str] = []
    others: list[str] = []
    for name in sorted(names_in(names)):
        if name.lower().endswith(suffixes):
            images.append(inside + name)
        elif not is_sidecar(name):
            others.append(inside + name)
    return images, others


def open_folder(root: LocationLike) -> Samples:
    """Open a folder of images, of this machine or at an address.

    Each first-level folder that holds any (at any depth) is a class, in sorted order; without such, the images of the
    folder itself form one class named ``"."``. Raises SourceError without any image.
    """
    location = Location.of(root) if isinstance(root, str) else Location.parse(root, chain=True)
    if location.is_url:
        return list_images(location, walk_remote(location))
    path = Path(location.address())
    if not path.is_dir():
        what = "is a file, not a folder" if path.exists() else "no such folder"
        raise SourceError(f"{path}: {what}; expected a folder of images, or of class folders with images")
    return list_images(Location.of(str(path)), walk(path))


def open_image(place: Location) -> Samples:
    """Open one image file as a data set of one sample, with the class of images in a flat folder."""
    path = Path(place.address())
    return flat_folder(Location.of(str(path.parent)), [path.name])
