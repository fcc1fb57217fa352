"""Build all that is released: ``make wheel``, or ``python3 -m kernels.wheels --out dist``. See README.md.

A source distribution, the wheels of Variegate and its studio, and a wheel of compiled kernels for each supported Python
that is found.
Needs nothing but the standard library: each Python builds in an environment of its own, with what constraints.txt says.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernels.release import PYTHONS, ROOT, STUDIO

# What a Python has to have to build here as it is, besides what is compiled for.
_NEEDED = (
    "numba",
    "llvmlite",
    "numpy",
    "torch",
    "simplejpeg",
    "PIL",
    "pyarrow",
    "fsspec",
    "rich",
    "typer",
    "hatchling",
)
_PINNED = ("numba", "llvmlite", "numpy")
_VERSION_OF = (
    "import platform, sys, sysconfig; "
    "assert platform.python_implementation() == 'CPython' and not sysconfig.get_config_var('Py_GIL_DISABLED'); "
    "print('%d.%d' % sys.version_info[:2])"
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("dist"), help="the folder for all of it (%(default)s)")
    parser.add_argument("--pythons", default="", help="versions or paths of interpreters, with spaces between them")
    options, others = parser.parse_known_args(arguments)
    chosen = options.pythons.split()
    found = {wanted: find_python(wanted) for wanted in chosen or PYTHONS}
    missing = [wanted for wanted, python in found.items() if python is None]
    if missing:
        where = "on PATH, in pyenv's or uv's versions, or in /opt/python"
        print(f"no kernels wheel for Python {', '.join(missing)}: not found {where}", file=sys.stderr)
    builders = [environment(python) for python in found.values() if python is not None]
    if not builders or (chosen and missing):
        return 2
    out = options.out.absolute()
    build_ours(builders[0], out)
    with tempfile.TemporaryDirectory() as folder:
        # Found by the first, which has kernels compiled and run for it.
        signatures = ["--signatures", str(Path(folder) / "signatures")]
        for builder in builders:
            command = [str(builder), "-m", "kernels.build", "--out", str(out), *signatures, *others]
            subprocess.run(command, check=True, cwd=ROOT)
    return 0


def find_python(wanted: str) -> Path | None:
    """The interpreter of a version such as "3.12", or at a path; None where there is none that runs."""
    places = candidates(wanted) if wanted in PYTHONS else map(Path, filter(None, [shutil.which(wanted)]))
    for python in places:
        version = run_quietly(python, _VERSION_OF)
        if version is not None and version.strip() in (PYTHONS if wanted not in PYTHONS else (wanted,)):
            return python
    return None


def candidates(version: str) -> Iterator[Path]:
    """Where an interpreter of this version may be; first of all, where it has everything installed."""
    name = f"python{version}"
    yield ROOT / ".venv" / "bin" / name
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        yield Path(sys.executable)
    if (on_path := shutil.which(name)) is not None:
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path.home() / ".local" / "share" / "uv" / "python")
    tag = f"cp{version.replace('.', '')}"
    for folder, pattern in (
        (pyenv / "versions", f"{version}.*"),
        (uv, f"cpython-{version}.*"),
        (Path("/opt/python"), f"{tag}-{tag}"),  # in images of manylinux
    ):
        for place in sorted(folder.glob(pattern), reverse=True):
            yield place / "bin" / name


def environment(python: Path) -> Path:
    """An interpreter of the same version that has all that building needs: itself, or one of an environment that is
    made in build/."""
    if has_everything(python):
        return python
    version = (run_quietly(python, _VERSION_OF) or "").strip()
    folder = ROOT / "build" / "wheels" / version
    made, stamp = folder / "bin" / "python", folder / "requirements"
    files = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    digest = hashlib.sha256(b"".join(files)).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        print(f"Python {version}: {python} -> {folder}", flush=True)
        subprocess.run([str(python), "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(made), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", "constraints.txt", "hatchling", "."], check=True, cwd=ROOT)
        # Kernels are compiled from here.
        subprocess.run([str(made), "-m", "pip", "uninstall", "--quiet", "--yes", "variegate"], check=True)
        stamp.write_text(digest)
    return made


def has_everything(python: Path) -> bool:
    """True if it can build as it is, with the versions that constraints.txt says."""
    code = (
        "import importlib.metadata, importlib.util, json; "
        f"assert all(map(importlib.util.find_spec, {_NEEDED})); "
        f"print(json.dumps({{name: importlib.metadata.version(name) for name in {_PINNED}}}))"
    )
    said = run_quietly(python, code)
    version = run_quietly(python, _VERSION_OF)
    return said is not None and version is not None and json.loads(said) == constraints(version.strip())


def constraints(version: str) -> dict[str, str]:
    """What constraints.txt says for this Python of the versions that compiled code is for."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        requirement, _, marker = line.partition(";")
        name, _, pin = requirement.strip().partition("==")
        is_old = version == "3.10"
        if name in _PINNED and (not marker or is_old == ("<" in marker)):
            found[name] = pin
    return found


def build_ours(python: Path, out: Path) -> None:
    """The source distribution, and the wheels that are the same everywhere: of Variegate and of its studio."""
    build = [str(python), "-m", "hatchling", "build", "--directory", str(out)]
    subprocess.run(build, check=True, cwd=ROOT)
    subprocess.run([*build, "--target", "wheel"], check=True, cwd=ROOT / STUDIO)


def run_quietly(python: Path, code: str) -> str | None:
    """What it prints; None where it fails, as a command of pyenv without its Python does."""
    try:
        run = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    except OSError:
        return None
    return run.stdout if run.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
