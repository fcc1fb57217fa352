"""A folder of images behind fsspec: the same samples in the same order as ``open_folder`` gives for it on a disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from variegate.data.sources.base import Item, SampleName, SourceError, check_index, describe
from variegate.data.sources.folder import Listing, arrange
from variegate.data.sources.paths import protocols, shown
from variegate.data.sources.remote import filesystem, read_file, reason_for


@dataclass(frozen=True, repr=False)
class RemoteFolderSource(Listing):
    """A folder at an address; each image is read by a request of its own."""

    url: str = ""  # it may hold a password

    is_remote: ClassVar[bool] = True

    def __repr__(self) -> str:
        return describe(self, shown(self.url))

    def read(self, index: int) -> Item:
        check_index(index, len(self))
        return Item(read_file(self._file(index)), self.samples[index].label)

    def name(self, index: int) -> SampleName:
        # Names of files are no secrets, whatever letters they hold.
        return SampleName(_inside(shown(self.url), self.samples[index].path))

    def _file(self, index: int) -> str:
        return _inside(self.url, self.samples[index].path)


def _inside(url: str, path: str) -> str:
    folder, chain, rest = url.partition("::")
    return f"{folder.rstrip('/')}/{path}{chain}{rest}"


def list_names(url: str) -> list[str]:
    """The files right in a remote folder, and its sub-folders with a slash at their ends; sorted.

    Raises SourceError where it cannot be listed, or is a file.
    """
    fs, inner = _listable(url)
    try:
        if not fs.isdir(inner):
            what = "is a file, not a folder" if fs.exists(inner) else "no such file or folder"
            raise SourceError(f"{shown(url)}: {what}")
        entries = fs.ls(inner, detail=True)
    except SourceError:
        raise
    except Exception as error:
        raise SourceError(f"{shown(url)}: {reason_for(error, url)}") from None
    own = inner.rstrip("/")
    return sorted(
        entry["name"].rstrip("/").rpartition("/")[2] + "/" * (entry["type"] == "directory")
        for entry in entries
        if entry["name"].rstrip("/") != own
    )


def open_remote_folder(url: str) -> RemoteFolderSource:
    """List a folder of images, or of class folders, at an address. Raises SourceError as ``open_folder`` does."""
    fs, inner = _listable(url)
    try:
        found = fs.find(inner, withdirs=True, detail=True)
    except Exception as error:
        raise SourceError(f"{shown(url)}: {reason_for(error, url)}") from None
    begin = len(inner.rstrip("/")) + 1 if inner.strip("/") else len(inner)
    folders: dict[str, list[str]] = {"": []}
    irregular: list[str] = []
    for path, info in found.items():
        relative = path[begin:].strip("/")
        parts = relative.split("/")
        if not relative or any(part.startswith(".") for part in parts[:-1]):
            continue
        if info["type"] == "directory":
            if not parts[-1].startswith("."):
                folders.setdefault(relative, [])
        elif info["type"] == "other":  # what file servers say of pipes and devices
            irregular.append(relative)
        else:
            folders.setdefault("/".join(parts[:-1]), []).append(parts[-1])
    listed = arrange(shown(url), folders, irregular)
    return RemoteFolderSource(
        listed.classes, listed.samples, listed.empty_classes, listed.ignored, listed.irregular, url=url
    )


def _listable(url: str) -> tuple[Any, str]:
    if protocols(url)[0] in ("http", "https"):
        raise SourceError(
            f"{shown(url)}: http servers cannot list a folder; put the images into .tar shards or .parquet files and "
            "give their addresses"
        )
    return filesystem(url)
