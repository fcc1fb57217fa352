"""shelf://: a file server as fsspec knows many, where a reader could see half a file, and moving replaces nothing."""

from __future__ import annotations

from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem


class FileServer(MemoryFileSystem):  # type: ignore[misc]
    protocol = "shelf"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    # What was written to, in order.
    written: ClassVar[list[str]] = []

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("shelf://", "memory://", 1)))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode != "rb":
            self.written.append(path)
        return super()._open(path, mode, **options)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        if self.exists(path2):
            raise FileExistsError(path2)
        self.store[self._strip_protocol(path2)] = self.store.pop(self._strip_protocol(path1))


fsspec.register_implementation("shelf", FileServer, clobber=True)
