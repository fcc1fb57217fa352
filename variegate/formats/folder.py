"""Images in class folders (``root/class/xxx.jpg``, as torchvision's ImageFolder has it) or in one flat folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from variegate.arrays import Int64Array
from variegate.decode import read_bytes
from variegate.formats.base import (
    IndexedSource,
    Item,
    SampleName,
    SourceError,
    check_index,
    describe,
    digest_of,
    first_names,
)
from variegate.formats.kinds import (
    ARRAY_EXTENSIONS,
    IMAGE_EXTENSIONS,
    UNSUPPORTED_IMAGES,
    is_image_name,
    is_system_name,
    is_system_path,
)
from variegate.formats.reading import find_below, read_file
from variegate.io.files import StrPath
from variegate.io.location import Location, LocationLike, inside
from variegate.threads import computed_once

FLAT_CLASS = "."


@dataclass
class WalkedFolder:
    """The names in each folder (``files``); FIFOs, sockets, devices, and links to them (``irregular``); folders that
    the system does not list, with its reason (``unread``). Paths are relative to the root, whose own is ""."""

    files: dict[str, list[str]] = field(default_factory=dict)
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
        names = walked.files[relative] = []
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
    walked.irregular.sort()
    walked.unread.sort()
    return walked


def walk_remote(location: Location) -> WalkedFolder:
    """``walk`` for an address. Raises SourceError where it cannot be listed."""
    walked = WalkedFolder({"": []})
    for relative, info in find_below(location, withdirs=True).items():
        *above, name = relative.split("/")
        if not relative or is_system_path(relative):
            continue
        if info["type"] == "directory":
            walked.files.setdefault(relative, [])
        elif info["type"] == "other":  # what file servers say of pipes and devices
            walked.irregular.append(relative)
        else:
            walked.files.setdefault("/".join(above), []).append(name)
    return walked


def _kind(entry: os.DirEntry[str]) -> str:
    """By what the folder itself says, so that a million files are not asked for one by one; links are followed."""
    try:
        if entry.is_dir():
            return "folder"
        # A link that leads nowhere, or in a circle, is a picture that is missing: reading it says so.
        if entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path)):
            return "file"
    except OSError:
        return "file"
    return "other"


@dataclass(frozen=True)
class ImageFile:
    path: str  # relative to the root, with forward slashes, the same on every machine
    label: int


@dataclass(frozen=True, repr=False)
class FolderSource(IndexedSource):
    """The images of a folder, or its .npy files where there are none; ids are places in ``samples``, sorted by class,
    folder and name as ImageFolder does."""

    folder: Location
    classes: tuple[str, ...]
    samples: tuple[ImageFile, ...]
    empty_classes: tuple[str, ...] = ()  # folders without a single image; they keep their class index
    ignored: tuple[str, ...] = ()  # files that are no images by their extension
    irregular: tuple[str, ...] = ()  # FIFOs, sockets, devices, and links to them
    unread: tuple[str, ...] = ()  # folders that cannot be listed
    beside: tuple[str, ...] = ()  # images beside the class folders, which are of no class

    @classmethod
    def of(cls, folder: Location, walked: WalkedFolder) -> FolderSource:
        """Classes and samples of a tree that was walked. Raises SourceError where no file in it is an image."""
        has_images = any(is_image_name(name) for names in walked.files.values() for name in names)
        suffixes = IMAGE_EXTENSIONS if has_images else ARRAY_EXTENSIONS
        listed: dict[str, tuple[list[str], list[str]]] = {}
        # Sorted by class, then by folder, then by name within it: the order, and so the ids, are ImageFolder's.
        for below in sorted(walked.files, key=lambda below: (below.partition("/")[0], below)):
            if below:
                images, others = listed.setdefault(below.partition("/")[0], ([], []))
                found = _split(f"{below}/", walked.files[below], suffixes)
                for names, more in zip((images, others), found, strict=True):
                    names += more
        here, ignored_here = _split("", walked.files.get("", []), suffixes)
        if any(images for images, _ in listed.values()):
            class_names = list(listed)
            samples = [ImageFile(path, label) for label, (images, _) in enumerate(listed.values()) for path in images]
            empty = [name for name, (images, _) in listed.items() if not images]
            ignored = [*ignored_here, *(path for _, others in listed.values() for path in others)]
        else:
            # Without any image, files of other kinds in class folders tell why.
            further = [] if here else [path for _, others in listed.values() for path in others]
            class_names = [FLAT_CLASS]
            empty = []
            ignored = [*ignored_here, *further]
            samples = [ImageFile(path, 0) for path in here]
            here = []
        left_out = (tuple(empty), tuple(ignored), tuple(walked.irregular), tuple(walked.unread), tuple(here))
        listing = cls(folder, tuple(class_names), tuple(samples), *left_out)
        if not samples:
            beside = ", ".join(_in_words(ignored)) if ignored else "no other files"
            seen = ", ".join([beside, *listing._unusable()])
            accepted = f"accepted extensions: {' '.join(IMAGE_EXTENSIONS + ARRAY_EXTENSIONS)}"
            raise SourceError(f"{folder}: no images ({seen}); {accepted}")
        return listing

    def __repr__(self) -> str:
        return describe(self, str(self.folder))

    def __len__(self) -> int:
        return len(self.samples)

    def only_beside(self) -> FolderSource:
        """The images beside the class folders as a flat folder, for those who look at all that is there."""
        samples = tuple(ImageFile(path, 0) for path in self.beside)
        nothing: dict[str, Any] = dict.fromkeys(("empty_classes", "ignored", "irregular", "unread", "beside"), ())
        return replace(self, classes=(FLAT_CLASS,), samples=samples, **nothing)

    @computed_once
    def fingerprint(self) -> str:
        # Of the listing alone: asking the size of a million files takes minutes on a network disk.
        return digest_of("\0".join(self.classes), *(f"\0{one.path}\0{one.label}" for one in self.samples))

    @property
    def is_remote(self) -> bool:  # type: ignore[override]
        return self.folder.is_url

    def read(self, index: int) -> Item:
        """The bytes of the file and its class. Raises DecodeError naming the file."""
        check_index(index, len(self))
        sample = self.samples[index]
        if self.is_remote:
            return Item(read_file(self.folder.child(sample.path)), sample.label)
        return Item(read_bytes(self.name(index).file), sample.label)

    def name(self, index: int) -> SampleName:
        # Names of files are no secrets, whatever letters they hold.
        return SampleName(inside(str(self.folder), self.samples[index].path))

    def relative_path(self, index: int) -> str:
        return self.samples[index].path

    def labels(self, indices: Int64Array) -> Int64Array:
        return np.array([self.samples[index].label for index in indices.tolist()], np.int64)

    def notes(self) -> list[str]:
        """Remarks for users on what was not listed, a line each."""
        empty = [f"class folders without images: {first_names(self.empty_classes)}"] if self.empty_classes else []
        ignored = [f"{len(self.ignored):,} files that are not taken for images: {first_names(self.ignored)}"]
        beside = (
            f"{len(self.beside):,} images next to the class folders have no class; variegate check reads them, "
            f"loaders do not: {first_names(self.beside)}; move them into a class folder, or into a folder of their own"
        )
        left_out = [*([beside] if self.beside else []), *(ignored if self.ignored else [])]
        return [*empty, *left_out, *self._unusable(" (FIFO, socket, device)")]

    def _unusable(self, such_as: str = "") -> list[str]:
        kinds = {f"that are no regular files{such_as}": self.irregular, "folders that cannot be listed": self.unread}
        return [f"{len(names):,} {what}: {first_names(names)}" for what, names in kinds.items() if names]


def _in_words(paths: Sequence[str]) -> list[str]:
    """``12 .avif files, which are not supported`` for kinds of images that are not read; ``3 other files``."""
    counts = Counter(os.path.splitext(path)[1].lower() for path in paths)
    named = {extension: count for extension, count in counts.most_common() if extension in UNSUPPORTED_IMAGES}
    lines = [f"{count:,} {extension} files, which are not supported" for extension, count in named.items()]
    others = len(paths) - sum(named.values())
    return [*lines, *([f"{others:,} other files"] if others else [])]


def _split(inside: str, names: list[str], suffixes: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Images, which have one of ``suffixes``, and other files."""
    paths = [inside + name for name in sorted(names)]
    are_images = [path.lower().endswith(suffixes) for path in paths]
    both = list(zip(paths, are_images, strict=True))
    return [path for path, is_image in both if is_image], [path for path, is_image in both if not is_image]


def open_folder(root: LocationLike) -> FolderSource:
    """A folder of images, of this machine or at an address: each first-level folder that holds any (at any depth) is a
    class, in sorted order; without such, the images of the folder itself form one class named ``"."``. Raises
    SourceError without one."""
    location = Location.of(root) if isinstance(root, str) else Location.parse(root, chain=True)
    if location.is_url:
        return FolderSource.of(location, walk_remote(location))
    path = Path(location.address())
    if not path.is_dir():
        what = "is a file, not a folder" if path.exists() else "no such folder"
        raise SourceError(f"{path}: {what}; expected a folder of images, or of class folders with images")
    return FolderSource.of(Location.of(str(path)), walk(path))


def open_image(place: Location) -> FolderSource:
    """One image file as a data set of one sample, of the class that images of a flat folder have."""
    path = Path(place.address())
    return FolderSource(Location.of(str(path.parent)), (FLAT_CLASS,), (ImageFile(path.name, 0),))
