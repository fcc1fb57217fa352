"""Locations that users name: parsed once, shown without secrets, opened by their real addresses."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from variegate.io.addresses import is_url, protocols, redact_url
from variegate.io.files import StrPath

_WEB = ("http", "https")


@dataclass(frozen=True, repr=False)
class Location:
    """A path of this machine, or an address that fsspec reads; a pattern of such, until it is expanded.

    ``str`` and ``repr`` hold no secret, so that messages may name a location; code that opens files calls
    ``address()``. ``protocols``: of an address, the outermost first (zip, https for ``zip://a::https://host/b.zip``);
    none for a path of this machine.
    """

    _address: str
    _shown: str
    protocols: tuple[str, ...] = ()

    @classmethod
    def parse(cls, spec: StrPath | Location, *, chain: bool = False) -> Location:
        """``file://`` addresses and ``~`` become ordinary local paths.

        ``chain``: accept addresses within one another (``zip://a::https://host/b.zip``), of a source or destination
        that a user typed. Other chains raise ValueError: fsspec's outer file systems may run code from the inner file.
        """
        if isinstance(spec, Location):
            return spec
        text = os.fspath(spec)
        if not chain and is_url(text) and "::" in text:
            raise ValueError(f"{redact_url(text)}: an address within another (::); accepted: that of a file itself")
        if text.startswith(("file://", "local://")) and "::" not in text:
            text = url2pathname(urlsplit(text).path)
            return cls(text, text)
        return cls.of(text if is_url(text) else os.path.expanduser(text))

    @classmethod
    def of(cls, address: str) -> Location:
        """A location from a literal path or address, such as a match of a pattern: ``~`` is an ordinary character."""
        return (
            cls(address, redact_url(address), tuple(protocols(address))) if is_url(address) else cls(address, address)
        )

    def __str__(self) -> str:
        return self._shown

    def __repr__(self) -> str:
        return f"Location({self._shown!r})"

    def address(self) -> str:
        """The path or address to open, which may hold a password: never for messages."""
        return self._address

    @property
    def is_url(self) -> bool:
        return bool(self.protocols)

    @property
    def is_web(self) -> bool:
        """Behind a web server, which lists no files."""
        return self.is_url and self.protocols[0] in _WEB

    @property
    def name(self) -> str:
        """The last part, without secrets; of a chained address, that of the outermost file."""
        outermost = self._shown.partition("::")[0] if self.is_url else self._shown
        return outermost.replace(os.sep, "/").rstrip("/").rpartition("/")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """``name``, and the last part of the address to open if that may be secret. The format follows from either."""
        if not self.is_url:
            return self.name, self._address.rpartition("/")[2]
        path = re.split("[?#]", self._address.partition("::")[0])[0]
        return self.name, path.rpartition("/")[2].partition(";")[0]

    def child(self, name: str) -> Location:
        """The entry ``name`` of this folder. Names of files are no secrets, whatever letters they hold."""
        return Location(inside(self._address, name), inside(self._shown, name), self.protocols)

    def below(self, path: str) -> Location:
        """``path`` below this folder, or an absolute path of this machine where the folder is of this machine."""
        if os.path.isabs(path) and not self.is_url:
            return Location.of(path)
        return self if path in ("", ".") else self.child(path)


# What names a place where one is asked for: parsed on the way in.
LocationLike = StrPath | Location


def inside(folder: str, name: str) -> str:
    """The path or address of ``name`` in a folder; of a chained address, in the outermost."""
    outer, chain, rest = folder.partition("::")
    return f"{outer.rstrip('/')}/{name}{chain}{rest}"


def relative_names(locations: Sequence[Location]) -> list[str]:
    """The paths below the folder that they share, with forward slashes: the same wherever that folder stands."""
    names = [str(location).replace(os.sep, "/").split("/") for location in locations]
    shared = 0
    while all(len(name) > shared + 1 and name[shared] == names[0][shared] for name in names):
        shared += 1
    return ["/".join(name[shared:]) for name in names]


def cache_folder(folder: StrPath | None = None) -> Path:
    """Folder of files that can be made again: ``folder``, VARIEGATE_CACHE, or the user's; it may not exist yet."""
    if folder is None:
        folder = os.environ.get("VARIEGATE_CACHE") or None
    if folder is not None:
        return Path(folder).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "variegate"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "variegate"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "variegate"
