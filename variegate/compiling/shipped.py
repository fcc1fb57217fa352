"""Compiled code that is installed: the package ``variegate_kernels``, which holds it for every level of a platform.

It holds the kernels that Python calls, each with all that it calls in it, so that nothing of it is ever joined with
code that was compiled here. Which level is loaded depends on the processor alone: the best that it can run. The code is
read and never written, and is taken only for the very sources and versions that it was made of.
"""

from __future__ import annotations

import hashlib
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
from numba.core.compiler import CompileResult

from variegate.compiling.levels import host_level

PACKAGE = "variegate_kernels"
_MANIFEST = "manifest.json"


def versions() -> dict[str, str]:
    """Versions that code depends on besides sources and processor; NumPy keeps its layouts within a minor version."""
    numpy_version = ".".join(np.__version__.split(".")[:2])
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')} {sys.platform}"
    return {"numba": numba.__version__, "llvmlite": llvmlite.__version__, "numpy": numpy_version, "python": python}


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
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None or not config.ENABLE_AVX:
        return None
    with suppress(Exception):  # it is not there, or is not whole
        spec, level = find_spec(PACKAGE), host_level()
        if spec is None or level is None:
            return None
        folder = next(iter(spec.submodule_search_locations or ()))
        with open(os.path.join(folder, _MANIFEST), encoding="utf-8") as file:
            manifest = json.load(file)
        if manifest["versions"] != versions() or level.name not in manifest["levels"]:
            return None
        return Shipped(os.path.join(folder, level.name), manifest["kernels"])
    return None


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
