"""Compiled code on disk: Numba's files, with a checksum, so that a damaged one is compiled again instead of run."""

from __future__ import annotations

import glob
import hashlib
import itertools
import os
import pickle
from contextlib import suppress
from typing import Any

from numba.core.caching import IndexDataCacheFile


class CheckedFile(IndexDataCacheFile):
    """The index and the code of one kernel. Nothing that is read raises: what is not whole is not there.

    The checksum also covers what the code was made of (the sources' stamp, the signature, the processor): a file that
    was left by other sources, or by a process that was killed on the way, is not taken for this one's.
    """

    @property
    def folder(self) -> str:
        return str(self._cache_path)

    def save(self, key: Any, data: Any) -> None:
        """The code first, then the index that names it: a kill in between leaves no index of old code."""
        overloads = self._load_index()
        taken = set(overloads.values()) - {overloads.get(key)}
        name = overloads.get(key) or next(
            name for number in itertools.count(1) if (name := self._data_name(number)) not in taken
        )
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(content + self._checksum(key, content))
        if overloads.get(key) != name:
            self._save_index({**overloads, key: name})

    def load(self, key: Any) -> Any:
        """The data saved for ``key``, or None."""
        name = self._load_index().get(key)
        if name is None:
            return None
        with suppress(Exception), open(self._data_path(name), "rb") as file:
            whole = file.read()
            size = hashlib.sha256().digest_size
            if whole[-size:] == self._checksum(key, whole[:-size]):
                return pickle.loads(whole[:-size])
        return None

    def content(self) -> list[tuple[Any, Any]]:
        """Every key with what was saved for it, as far as it is whole."""
        found = [(key, self.load(key)) for key in self._load_index()]
        return [(key, data) for key, data in found if data is not None]

    def processors(self) -> set[Any]:
        """Processors that the index lists code for."""
        return {key[1] for key in self._load_index() if isinstance(key, tuple) and len(key) == 3}

    def num_bytes(self) -> int:
        """Of the index, and of all code beside it that has this kernel's name."""
        base = glob.escape(os.path.join(self._cache_path, self._index_name.removesuffix("nbi")))
        total = 0
        for path in glob.glob(base + "*"):
            with suppress(OSError):  # gone meanwhile
                total += os.path.getsize(path)
        return total

    def _load_index(self) -> dict[Any, Any]:
        # Unpickling damaged bytes may raise anything at all.
        with suppress(Exception):
            return dict(super()._load_index())
        return {}

    def _checksum(self, key: Any, content: bytes) -> bytes:
        return hashlib.sha256(repr((self._source_stamp, key)).encode() + content).digest()
