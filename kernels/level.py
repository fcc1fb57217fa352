"""Compile for one level, and run nothing: ``python -m kernels.level SIGNATURES FOLDER``, as build.py calls it."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from variegate import warm
from variegate.compiling.shipped import pack
from variegate.program import compiled


def main(signatures: str, folder: str) -> None:
    wanted = pickle.loads(Path(signatures).read_bytes())
    entries = warm._entries(warm.ENTRIES + warm.TARGET_ENTRIES)
    compiled.do_without_helpers()  # they would run kernels
    for entry in entries:
        entry.compile(wanted[entry._cache.name])
    kept = [(entry._cache, entry._cache.kept()) for entry in entries]
    pack(folder, [(cache.name, cache.digest, *found[0]) for cache, found in kept])


if __name__ == "__main__":
    main(*sys.argv[1:])
