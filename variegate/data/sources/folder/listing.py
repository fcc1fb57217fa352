"""What is in a folder of images: ``root/class/xxx.jpg``, as torchvision's ImageFolder has it, or one flat folder."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from variegate.data.sources.base import IndexedSource, SampleName, SourceError, describe, first_names
from variegate.data.sources.file_kinds import IMAGE_EXTENSIONS, is_image_name
from variegate.data.sources.folder.walking import WalkedFolder
from variegate.outside.location import Location, inside
from variegate.threads import computed_once

FLAT_CLASS = "."
ListingT = TypeVar("ListingT", bound="FolderListing")
_ACCEPTED = f"accepted extensions: {' '.join(IMAGE_EXTENSIONS)}"


@dataclass(frozen=True)
class ImageFile:
    """``path`` is relative to the root, with forward slashes, the same on every machine."""

    path: str
    label: int


@dataclass(frozen=True, repr=False)
class FolderListing(IndexedSource):
    """What is in a folder. A sample's id is its index in ``samples``: sorted by class, folder and name as ImageFolder
    does."""

    folder: Location
    classes: tuple[str, ...]
    samples: tuple[ImageFile, ...]
    empty_classes: tuple[str, ...] = ()  # folders without a single image; they keep their class index
    ignored: tuple[str, ...] = ()  # files that are no images by their extension, or lie beside the class folders
    irregular: tuple[str, ...] = ()  # FIFOs, sockets, devices, and links to them
    unread: tuple[str, ...] = ()  # folders that cannot be listed

    @classmethod
    def of(cls: type[ListingT], folder: Location, walked: WalkedFolder) -> ListingT:
        """Classes and samples of a tree that was walked. Raises SourceError where no file in it is an image."""
        listed: dict[str, tuple[list[str], list[str]]] = {}
        # Sorted by class, then by folder, then by name within it: the order, and so the ids, are ImageFolder's.
        for below in sorted(walked.files, key=lambda below: (below.partition("/")[0], below)):
            if below:
                images, others = listed.setdefault(below.partition("/")[0], ([], []))
                for names, more in zip((images, others), _split(f"{below}/", walked.files[below]), strict=True):
                    names += more
        here, ignored_here = _split("", walked.files.get("", []))
        if any(images for images, _ in listed.values()):
            class_names = list(listed)
            samples = [ImageFile(path, label) for label, (images, _) in enumerate(listed.values()) for path in images]
            empty = [name for name, (images, _) in listed.items() if not images]
            ignored = [*here, *ignored_here, *(path for _, others in listed.values() for path in others)]
        else:
            class_names, empty, ignored = [FLAT_CLASS], [], ignored_here
            samples = [ImageFile(path, 0) for path in here]
        left_out = (tuple(empty), tuple(ignored), tuple(walked.irregular), tuple(walked.unread))
        listing = cls(folder, tuple(class_names), tuple(samples), *left_out)
        if not samples:
            raise SourceError(f"{folder}: no images ({listing._seen()}); {_ACCEPTED}")
        return listing

    def __repr__(self) -> str:
        return describe(self, str(self.folder))

    def __len__(self) -> int:
        return len(self.samples)

    @computed_once
    def fingerprint(self) -> str:
        digest = hashlib.sha256("\0".join(self.classes).encode("utf-8", "surrogateescape"))
        for sample in self.samples:
            # Of the listing alone: asking the size of a million files takes minutes on a network disk.
            digest.update(f"\0{sample.path}\0{sample.label}".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()[:16]

    def name(self, index: int) -> SampleName:
        # Names of files are no secrets, whatever letters they hold.
        return SampleName(inside(str(self.folder), self.samples[index].path))

    def relative_path(self, index: int) -> str:
        return self.samples[index].path

    def labels(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.array([self.samples[index].label for index in indices.tolist()], np.int64)

    def notes(self) -> list[str]:
        """What a user may want to know about what was not listed, a line each."""
        empty = [f"class folders without images: {first_names(self.empty_classes)}"] if self.empty_classes else []
        ignored = [f"{len(self.ignored):,} files that are not taken for images: {first_names(self.ignored)}"]
        return [*empty, *(ignored if self.ignored else []), *self._unusable(" (FIFO, socket, device)")]

    def _seen(self) -> str:
        """What was found where no image was."""
        others = f"{len(self.ignored):,} other files" if self.ignored else "nothing else either"
        return ", ".join([others, *self._unusable()])

    def _unusable(self, such_as: str = "") -> list[str]:
        kinds = (
            (f"that are no regular files{such_as}", self.irregular),
            ("folders that cannot be listed", self.unread),
        )
        return [f"{len(names):,} {what}: {first_names(names)}" for what, names in kinds if names]


def _split(inside: str, names: list[str]) -> tuple[list[str], list[str]]:
    """Images, and other files; those that begin with a dot are neither."""
    visible = sorted(name for name in names if not name.startswith("."))
    images = [inside + name for name in visible if is_image_name(name)]
    return images, [inside + name for name in visible if not is_image_name(name)]
