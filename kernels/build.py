"""Build the wheel of compiled kernels: ``python -m kernels.build --out dist``. See README.md."""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernels.level import pack_compiled
from kernels.wheel_file import platform_tag, write_wheel
from variegate.apps import warm_commands
from variegate.compiling.levels import LEVELS, Level, host_level
from variegate.compiling.stored import PACKAGE, write_manifest
from variegate.jobs import warm
from variegate.threads import default_threads

OF_A_BATCH = warm.ENTRIES + warm.INDEX_ENTRIES + warm.TARGET_ENTRIES
SHIPPED = sum(warm_commands.COMMANDS, OF_A_BATCH)
ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("dist"), help="the folder for the wheel")
    parser.add_argument("--platform", default=platform_tag(), help="the platform in the wheel's name (%(default)s)")
    parser.add_argument(
        "--levels", nargs="+", default=[level.name for level in LEVELS], help="the levels to compile for"
    )
    parser.add_argument(
        "--own",
        action="store_true",
        help="what is compiled here for this very processor, as code of its level: a wheel to try out",
    )
    parser.add_argument(
        "--signatures",
        type=Path,
        help="a file with the types of the kernels' arguments, for another Python to compile by: read where it exists, "
        "else written",
    )
    options = parser.parse_args(arguments)
    own = host_level()
    levels = [level for level in LEVELS if (level == own if options.own else level.name in options.levels)]
    if own is None or not levels:
        print("no kernels wheel: there are levels for x86-64 alone", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / PACKAGE
        package.mkdir()
        (package / "__init__.py").write_text('"""Compiled kernels of Variegate, which finds them by itself."""\n')
        signatures = known_signatures(options.signatures)
        entries = warm._entries(SHIPPED)
        if options.own:
            pack_compiled(str(package / own.name), entries)
        else:
            compile_for(levels, signatures, package, Path(folder))
        for level in levels:
            print(f"{level.name}: {sum(file.stat().st_size for file in (package / level.name).iterdir()):,} bytes")
        digests = {entry._cache.name: entry._cache.digest for entry in entries}
        write_manifest(str(package), [level.name for level in levels], digests)
        print(write_wheel(package, options.out, options.platform))
    return 0


def compile_for(
    levels: Sequence[Level], signatures: Mapping[str, tuple[object, ...]], package: Path, scratch: Path
) -> None:
    """Write the code of each level into a folder of ``package``: a process for each, as many at a time as there are
    cores."""
    file = scratch / "signatures"
    file.write_bytes(pickle.dumps(signatures))

    def compile_level(level: Level) -> None:
        environment = {**os.environ, **settings_of(level, str(scratch / f"cache {level.name}"))}
        command = [sys.executable, "-m", "kernels.level", str(file), str(package / level.name)]
        subprocess.run(command, check=True, env=environment, cwd=ROOT)

    with ThreadPoolExecutor(default_threads()) as pool:
        list(pool.map(compile_level, levels))


def known_signatures(file: Path | None) -> dict[str, tuple[object, ...]]:
    """Those in ``file``; where it is not there, they are found, and written to it."""
    if file is not None and file.exists():
        # Equal types in all Pythons, which our own processes have written: see kernels/wheels.py.
        found: dict[str, tuple[object, ...]] = pickle.loads(file.read_bytes())
        return found
    found = find_signatures()
    if file is not None:
        file.write_bytes(pickle.dumps(found, protocol=4))
    return found


def find_signatures() -> dict[str, tuple[object, ...]]:
    """Of the kernels that Python calls: the types of their arguments."""
    warm._run_everything()
    warm._use_an_index()
    warm._use_targets()
    for use in warm_commands.COMMANDS.values():
        use()
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
