"""The peers' own virtual environment, so that their requirements never conflict with Variegate's."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-peers"
CONSTRAINTS = Path(__file__).with_name("peers-constraints.txt")
VARIABLE = "VARIEGATE_PEERS_PYTHON"

# One install each: a library that has no wheel for this machine leaves the others standing.
REQUIREMENTS: dict[str, list[str]] = {
    "torchvision": ["torch", "torchvision", "numpy", "pillow", "simplejpeg"],
    "AlbumentationsX": ["albumentationsx[headless]", "opencv-python-headless"],
    "Kornia": ["kornia"],
    "DALI": ["nvidia-dali-cuda120"],
    "timm": ["timm"],
}


def peers_python(log: bool = True, or_this: bool = False) -> Path:
    """The interpreter that has the peers: $VARIEGATE_PEERS_PYTHON if set, else .venv-peers, made if missing.

    ``or_this``: this interpreter instead of .venv-peers.
    """
    given = os.environ.get(VARIABLE)
    if not given and or_this:
        return Path(sys.executable)
    if given:
        if not Path(given).is_file():
            raise FileNotFoundError(f"{VARIABLE}={given!r}: no such file; give the path of a Python that has the peers")
        return Path(given)
    python = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = ENVIRONMENT / ".installed"
    if stamp.exists() and stamp.stat().st_mtime >= CONSTRAINTS.stat().st_mtime:
        return python
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    for name, requirements in REQUIREMENTS.items():
        if log:
            print(f"installing {name} into {ENVIRONMENT.name}", file=sys.stderr)
        pip = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-c",
            str(CONSTRAINTS),
        ]
        done = subprocess.run([*pip, *requirements], check=False)
        if done.returncode and name == "torchvision":
            raise RuntimeError(f"{name} could not be installed into {ENVIRONMENT}; the benchmarks need it")
        if done.returncode:
            print(f"{name} could not be installed; its rows will say so", file=sys.stderr)
    stamp.touch()
    return python


def run_child(python: Path, module: str, arguments: Sequence[str], folder: Path = ROOT) -> Any:
    """The value that ``python -m module --child FILE arguments`` passes to ``write_result``, run in ``folder``.

    Raises RuntimeError with the end of its output.
    """
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "result.pickle"
        command = [str(python), "-m", module, "--child", str(out), *arguments]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "NO_ALBUMENTATIONS_UPDATE": "1",
        }
        ran = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise RuntimeError(ran.stderr[-3000:])
        return pickle.loads(out.read_bytes())  # written by our own child


def write_result(out: Path, result: Any) -> None:
    """In a child: pass the result to the parent process."""
    out.write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    print(peers_python())
