"""Compile for one level, and run nothing: ``python -m kernels.level SIGNATURES FOLDER``, as build.py calls it."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from variegate.compiling.stored import pack
from variegate.jobs import warm


def main(signatures: str, folder: str) -> None:
    wanted = pickle.loads(Path(signatures).read_bytes())
    entries = warm._entries(tuple(wanted))
    for entry in entries:
        entry.compile(wanted[entry._cache.name])
    pack_compiled(folder, entries)


def pack_compiled(folder: str, entries: Sequence[Any]) -> None:
    """Write the code that each of these kernels has been compiled to here, or by a process before."""
    pack(folder, [(entry._cache.name, entry._cache.digest, *_kept(entry)) for entry in entries])


def _kept(entry: Any) -> tuple[Any, Any]:
    """The types of its arguments, and what is on disk of the code for them and for the processor of this process."""
    signature = next(iter(entry.overloads))
    return signature, entry._cache._cache_file.load(entry._cache._index_key(signature, entry.targetctx.codegen()))


if __name__ == "__main__":
    main(*sys.argv[1:])
