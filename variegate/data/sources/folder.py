"""Images in class folders (``root/class/xxx.jpg``, as torchvision's ImageFolder) or in one flat folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from variegate.data.decode import read_bytes
from variegate.data.sources.base import Item, SampleName, SourceError, check_index, describe
from variegate.data.sources.walking import walk
from variegate.threads import computed_once

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


@dataclass(frozen=True, repr=False)
class Listing:
    """What is in a folder. A sample's id is its index in ``samples``: sorted by class, folder and name as ImageFolder
    does."""

    classes: tuple[str, ...]
    samples: tuple[Sample, ...]
    empty_classes: tuple[str, ...] = ()  # folders without a single image; they keep their class index
    ignored: tuple[str, ...] = ()  # files that are no images by their extension, or lie beside the class folders
    irregular: tuple[str, ...] = ()  # FIFOs, sockets, devices, and links to them
    unread: tuple[str, ...] = ()  # folders that cannot be listed

    def __repr__(self) -> str:
        return describe(self, "a listing")

    def __len__(self) -> int:
        return len(self.samples)

    @computed_once
    def fingerprint(self) -> str:
        digest = hashlib.sha256("\0".join(self.classes).encode("utf-8", "surrogateescape"))
        for sample in self.samples:
            # Of the listing alone: asking the size of a million files takes minutes on a network disk.
            digest.update(f"\0{sample.path}\0{sample.label}".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()[:16]

    def ids(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        return indices.astype(np.uint64)

    def labels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.array([self.samples[index].label for index in indices.tolist()], np.int64)

    def class_name(self, index: int) -> str:
        return self.classes[self.samples[index].label]

    def notes(self) -> list[str]:
        """What a user may want to know about what was not listed, a line each."""
        lines = []
        if self.empty_classes:
            lines.append(f"class folders without images: {_some(self.empty_classes)}")
        if self.ignored:
            lines.append(f"{len(self.ignored):,} files that are not taken for images: {_some(self.ignored)}")
        if self.irregular:
            lines.append(
                f"{len(self.irregular):,} that are no regular files (FIFO, socket, device): {_some(self.irregular)}"
            )
        if self.unread:
            lines.append(f"{len(self.unread):,} folders that cannot be listed: {_some(self.unread)}")
        return lines


@dataclass(frozen=True, repr=False)
class FolderSource(Listing):
    """A folder on a disk of this machine, or mounted as one."""

    root: Path = Path()

    is_remote: ClassVar[bool] = False

    def __repr__(self) -> str:
        return describe(self, str(self.root))

    def read(self, index: int) -> Item:
        """The bytes of the file and its class. Raises DecodeError naming the file."""
        check_index(index, len(self))
        return Item(read_bytes(self._path(index)), self.samples[index].label)

    def name(self, index: int) -> SampleName:
        return SampleName(self._path(index))

    def file(self, index: int) -> Path:
        return Path(self._path(index))

    def _path(self, index: int) -> str:
        # Joining Path objects takes ten times as long, and this is done for every sample of every epoch.
        return os.path.join(self.root, self.samples[index].path)


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
    walked = walk(root)
    found = arrange(str(root), walked.files, walked.irregular, walked.unread)
    return FolderSource(
        found.classes, found.samples, found.empty_classes, found.ignored, found.irregular, found.unread, root
    )


def open_image(path: str | os.PathLike[str]) -> FolderSource:
    """One image file as a data set of one sample, of the class that images of a flat folder have."""
    path = Path(path)
    return FolderSource((FLAT_CLASS,), (Sample(path.name, 0),), root=path.parent)


def arrange(
    where: str, folders: dict[str, list[str]], irregular: Sequence[str] = (), unread: Sequence[str] = ()
) -> Listing:
    """Classes and samples of a tree that was walked: the names of the files in each folder, by its path below the root
    ("" for the root itself). Raises SourceError where none is an image."""
    listed: dict[str, tuple[list[str], list[str]]] = {}
    # Sorted by class, then by folder, then by name within it: the order, and so the ids, are ImageFolder's.
    for folder in sorted(folders, key=lambda folder: (folder.partition("/")[0], folder)):
        if folder:
            images, others = listed.setdefault(folder.partition("/")[0], ([], []))
            for names, found in zip((images, others), _split(f"{folder}/", folders[folder]), strict=True):
                names += found
    here, ignored_here = _split("", folders.get("", []))
    if any(images for images, _ in listed.values()):
        class_names = list(listed)
        samples = [Sample(path, label) for label, (images, _) in enumerate(listed.values()) for path in images]
        empty = [name for name, (images, _) in listed.items() if not images]
        ignored = [*here, *ignored_here, *(path for _, others in listed.values() for path in others)]
    else:
        class_names, empty, ignored = [FLAT_CLASS], [], ignored_here
        samples = [Sample(path, 0) for path in here]
    if not samples:
        seen = f"{len(ignored):,} other files" if ignored else "nothing else either"
        for what, left_out in (("that are no regular files", irregular), ("folders that cannot be listed", unread)):
            seen += f", {len(left_out):,} {what}: {_some(left_out)}" if left_out else ""
        raise SourceError(f"{where}: no images ({seen}); accepted extensions: {' '.join(EXTENSIONS)}")
    return Listing(tuple(class_names), tuple(samples), tuple(empty), tuple(ignored), tuple(irregular), tuple(unread))


def _split(inside: str, names: list[str]) -> tuple[list[str], list[str]]:
    shown = sorted(name for name in names if not _is_hidden(name))
    images = [inside + name for name in shown if name.lower().endswith(EXTENSIONS)]
    return images, [inside + name for name in shown if not name.lower().endswith(EXTENSIONS)]


def _some(names: Sequence[str], shown: int = 5) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown:,} more" if len(names) > shown else "")


def _is_hidden(name: str) -> bool:
    return name.startswith(".")
