"""The scripts in examples/ run as they are, in a process of their own."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_script_runs(script: Path, tmp_path: Path) -> None:
    for name, package in (("keras", "tensorflow"), ("ray", "ray"), ("search", "sklearn"), ("train_digits", "sklearn")):
        if script.stem.startswith(name) and importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    quick = ["--quick"] if script.stem in ("search_digits", "train_digits", "train_cifar10") else []
    # From the repository's root the package is found whether it is installed or not.
    code = f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); runpy.run_path({str(script)!r}, run_name='__main__')"
    run = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "-c", code, *quick],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip()
    # A search tells its sizes and steps there, a training its recipe and epochs.
    told = ("sizes: ", "step ", "epoch ", "note: recipe ")
    assert [line for line in run.stderr.splitlines() if not line.startswith(told)] == []
    losses = [float(loss) for loss in re.findall(r"loss (\d+\.\d+)", run.stdout)]
    assert not losses or losses[-1] < 0.9 * losses[0], "what trains learns"
