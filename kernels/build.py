"""Build the wheel of compiled kernels: ``python -m kernels.build --out dist``. See README.md."""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernels.wheel_file import platform_tag, write_wheel
from variegate import warm
from variegate.compiling.levels import LEVELS, Level, host_level
from variegate.compiling.shipped import PACKAGE, write_manifest
from variegate.compiling.team import num_cores

# An entropy index is compiled where it is used.
SHIPPED = warm.ENTRIES + warm.TARGET_ENTRIES
ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("dist"), help="the folder for the wheel")
    parser.add_argument("--platform", default=platform_tag(), help="the platform in the wheel's name (%(default)s)")
    parser.add_argument(
        "--levels", nargs="+", default=[level.name for level in LEVELS], help="the levels to compile for"
    )
    options = parser.parse_args(arguments)
    levels = [level for level in LEVELS if level.name in options.levels]
    if host_level() is None or not levels:
        print("no kernels wheel: there are levels for x86-64 alone", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / PACKAGE
        package.mkdir()
        (package / "__init__.py").write_text('"""Compiled kernels of Variegate, which finds them by itself."""\n')
        signatures = Path(folder) / "signatures"
        signatures.write_bytes(pickle.dumps(find_signatures()))

        def compile_for(level: Level) -> None:
            environment = {**os.environ, **settings_of(level, os.path.join(folder, f"cache {level.name}"))}
            command = [sys.executable, "-m", "kernels.level", str(signatures), str(package / level.name)]
            subprocess.run(command, check=True, env=environment, cwd=ROOT)
            print(f"{level.name}: {sum(file.stat().st_size for file in (package / level.name).iterdir()):,} bytes")

        with ThreadPoolExecutor(num_cores()) as pool:
            list(pool.map(compile_for, levels))
        digests = {entry._cache.name: entry._cache.digest for entry in warm._entries(SHIPPED)}
        write_manifest(str(package), [level.name for level in levels], digests)
        print(write_wheel(package, options.out, options.platform))
    return 0


def find_signatures() -> dict[str, tuple[object, ...]]:
    """Of the kernels that Python calls: the types of their arguments."""
    warm._run_everything()
    warm._use_targets()
    found = {entry._cache.name: [tuple(args) for args in entry.overloads] for entry in warm._entries(SHIPPED)}
    assert all(len(signatures) == 1 for signatures in found.values()), found
    return {name: signatures[0] for name, signatures in found.items()}


def settings_of(level: Level, cache: str) -> dict[str, str]:
    """What a process compiles by that is limited to a level."""
    return {
        "NUMBA_CPU_NAME": level.cpu_name,
        "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in level.extra),
        "NUMBA_CACHE_DIR": cache,
        # A library of functions that other machines may not have.
        "NUMBA_DISABLE_INTEL_SVML": "1",
        "VARIEGATE_QUIET": "1",
    }


if __name__ == "__main__":
    sys.exit(main())
