"""Images in class folders (``root/class/xxx.jpg``, as torchvision's ImageFolder) or in one flat folder."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from variegate.data.decode import read_bytes
from variegate.data.sources.base import Item, SampleName, SourceError, check_index

EXTENSIONS = (
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp"),
    *(".tif", ".tiff", ".ppm", ".pgm", ".pbm", ".pnm"),
)
FLAT_CLASS = "."


@dataclass(frozen=True)
class Sample:
    """``path`` is relative to the root, with forward slashes, the same on every machine."""

    path: str
    label: int


@dataclass(frozen=True)
class FolderSource:
    """A listing. A sample's id is its index in ``samples``: sorted by class, folder and name as ImageFolder does."""

    root: Path
    classes: tuple[str, ...]
    samples: tuple[Sample, ...]
    empty_classes: tuple[str, ...] = ()  # folders without a single image; they keep their class index
    ignored: tuple[str, ...] = ()  # files that are no images by their extension, or lie beside the class folders

    is_remote: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.samples)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.sha256("\0".join(self.classes).encode("utf-8", "surrogateescape"))
        for sample in self.samples:
            # Of the listing alone: asking the size of a million files takes minutes on a network disk.
            digest.update(f"\0{sample.path}\0{sample.label}".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()[:16]

    def read(self, index: int) -> Item:
        """The bytes of the file and its class. Raises DecodeError naming the file."""
        check_index(index, len(self))
        return Item(read_bytes(self.file(index)), self.samples[index].label)

    def name(self, index: int) -> SampleName:
        return SampleName(str(self.file(index)))

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return indices.astype(np.uint64)

    def file(self, index: int) -> Path:
        return self.root / self.samples[index].path

    def class_name(self, index: int) -> str:
        return self.classes[self.samples[index].label]

    def notes(self) -> list[str]:
        """What a user may want to know about what was not listed, a line each."""
        lines = []
        if self.empty_classes:
            lines.append(f"class folders without images: {_some(self.empty_classes)}")
        if self.ignored:
            lines.append(f"{len(self.ignored):,} files that are not taken for images: {_some(self.ignored)}")
        return lines


def open_folder(root: str | os.PathLike[str]) -> FolderSource:
    """List a folder of images.

    With sub-folders that hold images (at any depth), each first-level folder is a class, in sorted order. Without
    any, the images of the folder itself form one class named ``"."``. Names that begin with a dot are passed over.

    Raises SourceError when there is no such folder or no image in it.
    """
    root = Path(root)
    if not root.is_dir():
        what = "is a file, not a folder" if root.exists() else "no such folder"
        raise SourceError(f"{root}: {what}; expected a folder of images, or of class folders with images")
    class_names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and not _is_hidden(entry.name))
    listed = [_list_images(root, name) for name in class_names]
    here, ignored_here = _split("", _plain_files(root))
    if any(images for images, _ in listed):
        samples = [Sample(path, label) for label, (images, _) in enumerate(listed) for path in images]
        empty = [name for name, (images, _) in zip(class_names, listed, strict=True) if not images]
        ignored = [*here, *ignored_here, *(path for _, others in listed for path in others)]
    else:
        class_names, empty, ignored = [FLAT_CLASS], [], ignored_here
        samples = [Sample(path, 0) for path in here]
    if not samples:
        seen = f"{len(ignored):,} other files" if ignored else "nothing else either"
        raise SourceError(f"{root}: no images ({seen}); accepted extensions: {' '.join(EXTENSIONS)}")
    return FolderSource(root, tuple(class_names), tuple(samples), tuple(empty), tuple(ignored))


def _list_images(root: Path, class_name: str) -> tuple[list[str], list[str]]:
    images: list[str] = []
    ignored: list[str] = []
    # Sorted by folder, then by name within it: the order, and so the ids, are ImageFolder's.
    for folder, names in sorted(_walk(root / class_name)):
        inside = Path(folder).relative_to(root).as_posix() + "/"
        found, others = _split(inside, names)
        images += found
        ignored += others
    return images, ignored


def _walk(top: Path) -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    above: dict[str, tuple[str, ...]] = {str(top): ()}
    for folder, folders, names in os.walk(top, followlinks=True):
        # A link to a folder above would lead round in circles.
        real = os.path.realpath(folder)
        if real in above[folder]:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not _is_hidden(name)]
        above.update({os.path.join(folder, name): (*above[folder], real) for name in folders})
        found.append((folder, names))
    return found


def _plain_files(folder: Path) -> list[str]:
    return [entry.name for entry in os.scandir(folder) if entry.is_file()]


def _split(inside: str, names: list[str]) -> tuple[list[str], list[str]]:
    shown = sorted(name for name in names if not _is_hidden(name))
    images = [inside + name for name in shown if name.lower().endswith(EXTENSIONS)]
    return images, [inside + name for name in shown if not name.lower().endswith(EXTENSIONS)]


def _some(names: tuple[str, ...], shown: int = 5) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown:,} more" if len(names) > shown else "")


def _is_hidden(name: str) -> bool:
    return name.startswith(".")
