"""Compiled code on disk: that of an installed package, and Numba's files, which were written here.

The package ``variegate_kernels`` holds code for every level of a platform. It holds the kernels that Python calls, each
with all that it calls in it, so that nothing of it is ever joined with code that was compiled here. Which level is
loaded depends on the processor alone: the best that it can run. The code is read and never written, and is taken only
for the very sources and versions that it was made of; ``mismatch`` says which of them are others here.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import os
import pickle
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from numba.core import config
from numba.core.caching import IndexDataCacheFile
from numba.core.compiler import CompileResult

import variegate
from variegate.compiling.levels import host_level

PACKAGE = "variegate_kernels"
_MANIFEST = "manifest.json"
INSTALL_KERNELS = "pip install --upgrade 'variegate[kernels]'"
"""The command that installs the code and the versions that it is for."""


def versions() -> dict[str, str]:
    """Versions that code depends on besides sources and processor; NumPy keeps its layouts within a minor version."""
    numpy_version = ".".join(np.__version__.split(".")[:2])
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')} {sys.platform}"
    libraries = {"numba": numba.__version__, "llvmlite": llvmlite.__version__, "numpy": numpy_version}
    return {"variegate": variegate.__version__, **libraries, "python": python}


class Shipped:
    """The code for one level, in ``folder``. ``digests``: of the sources, by kernel."""

    def __init__(self, folder: str, digests: Mapping[str, str]) -> None:
        self.folder = folder
        self._digests = digests

    def has(self, name: str, digest: str) -> bool:
        """True if there is code of a kernel that was made of these sources."""
        return self._digests.get(name) == digest

    def load(self, name: str, digest: str, signature: Any, target_context: Any) -> Any:
        """A CompileResult; None where there is none, or the file is damaged."""
        if not self.has(name, digest):
            return None
        with suppress(Exception), open(os.path.join(self.folder, name), "rb") as file:
            whole = file.read()
            size = hashlib.sha256().digest_size
            if whole[:size] == _checksum(name, digest, whole[size:]):
                kept, *data = pickle.loads(whole[size:])
                if kept == signature:
                    return _rebuild(target_context, *data)
        return None

    def num_bytes(self, name: str) -> int:
        return os.path.getsize(os.path.join(self.folder, name))


@cache
def shipped() -> Shipped | None:
    """That for this processor; None where nothing is installed that fits, or where users say what to compile for."""
    with suppress(Exception):  # it is not there, or is not whole
        folder, manifest, level = _installed(), _manifest(), host_level()
        if level is None or manifest["versions"] != versions() or level.name not in manifest["levels"]:
            return None
        return Shipped(os.path.join(folder, level.name), manifest["kernels"])
    return None


def mismatch() -> str:
    """Versions that the installed code needs and that differ here, as "numba 0.68.1 (installed: 0.69.0)"; "" where it
    fits, is not there, or is not wanted."""
    with suppress(Exception):
        needed, here = _manifest()["versions"], versions()
        others = [f"{name} {needed[name]} (installed: {here[name]})" for name in here if needed[name] != here[name]]
        return ", ".join(others)
    return ""


def _manifest() -> Any:
    """The table of contents of the code that is installed. Raises an exception where none is, or none is wanted."""
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None or not config.ENABLE_AVX:
        raise LookupError(PACKAGE)
    with open(os.path.join(_installed(), _MANIFEST), encoding="utf-8") as file:
        return json.load(file)


def _installed() -> str:
    spec = find_spec(PACKAGE)
    return next(iter((spec and spec.submodule_search_locations) or ()))


def pack(folder: str, kernels: Iterable[tuple[str, str, Any, Any]]) -> None:
    """Write the code of one level: (name, digest of the sources, signature, what Numba keeps of it) of every kernel."""
    os.makedirs(folder)
    for name, digest, signature, ((library, _, (code, _)), *rest) in kernels:
        content = pickle.dumps((signature, library, code, rest))
        with open(os.path.join(folder, name), "wb") as file:
            file.write(_checksum(name, digest, content) + content)


def write_manifest(folder: str, levels: Iterable[str], digests: Mapping[str, str]) -> None:
    """Write the package's table of contents: the last of its files."""
    manifest = {"versions": versions(), "levels": list(levels), "kernels": dict(digests)}
    with open(os.path.join(folder, _MANIFEST), "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)


def _checksum(name: str, digest: str, content: bytes) -> bytes:
    return hashlib.sha256(f"{name} {digest} ".encode() + content).digest()


def _rebuild(target_context: Any, library: str, code: bytes, rest: list[Any]) -> Any:
    """Rebuild a compiled kernel as Numba does. Bitcode is left out: it serves those who compile callers,
    and kernels that Python calls have none."""
    description = rest[0]
    # Numba would find them in the bitcode.
    names = {description.mangled_name, description.llvm_cpython_wrapper_name, description.llvm_cfunc_wrapper_name}
    target_context.codegen()._engine._defined_symbols.update(names)
    nothing = llvmlite.binding.parse_assembly("").as_bitcode()
    return CompileResult._rebuild(target_context, (library, "object", (code, nothing)), *rest)


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
