"""A folder and those below it: which names are files, and which would never end or never answer if they were read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from variegate.data.sources.remote import find_below
from variegate.outside.location import Location


@dataclass
class WalkedFolder:
    """Paths are relative to the root, with forward slashes; that of the root itself is "".

    ``files``: the names in each folder. ``irregular``: FIFOs, sockets, devices, and links to them. ``unread``: folders
    that the system does not list, with its reason.
    """

    files: dict[str, list[str]] = field(default_factory=dict)
    irregular: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def walk(root: str | os.PathLike[str]) -> WalkedFolder:
    """Names that begin with a dot are passed over. Links are followed, but not to a folder around them."""
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
                    if entry.name.startswith("."):
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
        if not relative or any(part.startswith(".") for part in above):
            continue
        if info["type"] == "directory":
            if not name.startswith("."):
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
