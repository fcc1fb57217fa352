"""Images in class folders (``root/class/xxx.jpg``, as torchvision's ImageFolder) or in one flat folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from variegate.data.decode import read_bytes
from variegate.data.sources.base import Item, SampleName, SourceError, check_index
from variegate.data.sources.folder.listing import FLAT_CLASS, FolderListing, ImageFile
from variegate.data.sources.folder.walking import walk, walk_remote
from variegate.data.sources.reading import read_file
from variegate.outside.location import Location


@dataclass(frozen=True, repr=False)
class FolderSource(FolderListing):
    """A folder on a disk of this machine, or mounted as one."""

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
        return os.path.join(self.folder.address(), self.samples[index].path)


@dataclass(frozen=True, repr=False)
class RemoteFolderSource(FolderListing):
    """A folder at an address; each image is read by a request of its own."""

    is_remote = True

    def read(self, index: int) -> Item:
        check_index(index, len(self))
        return Item(read_file(self.folder.child(self.samples[index].path)), self.samples[index].label)


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
    return FolderSource.of(Location.of(str(root)), walk(root))


def open_remote_folder(location: Location) -> RemoteFolderSource:
    """List a folder of images, or of class folders, at an address: the same samples in the same order as
    ``open_folder`` gives for it on a disk. Raises SourceError as that does."""
    return RemoteFolderSource.of(location, walk_remote(location))


def open_image(path: str | os.PathLike[str]) -> FolderSource:
    """One image file as a data set of one sample, of the class that images of a flat folder have."""
    path = Path(path)
    return FolderSource(Location.of(str(path.parent)), (FLAT_CLASS,), (ImageFile(path.name, 0),))
