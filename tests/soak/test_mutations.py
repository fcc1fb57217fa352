"""The soak itself, in small; and the kernels once with every index checked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.soak import mutations
from tests.soak.mutating import ODD, Parser, changed, mutated, random_for

ROOT = Path(__file__).resolve().parents[2]
_KINDS = ("fine", "crash", "hang", "grow", "odd", "quiet", "end")


def test_the_same_seed_makes_the_same_input() -> None:
    data, value = bytes(range(200)), {"a": [1, 2, {"b": 3}], "c": list(ODD)}
    for seed in range(50):
        assert mutated(data, Random(seed)) == mutated(data, Random(seed))
        assert repr(changed(value, Random(seed), 3)) == repr(changed(value, Random(seed), 3))
    assert len({mutated(data, Random(seed)) for seed in range(50)}) > 40


def _make(random: Random, folder: Path) -> Path:
    path = folder / "a.txt"
    path.write_text(random.choice(_KINDS))
    return path


def _parse(path: Path) -> None:
    what = path.read_text()
    if what == "crash":
        os.abort()
    while what == "hang":
        pass
    if what == "grow":
        bytearray(1 << 40)
    if what == "odd":
        raise KeyError(what)
    if what == "quiet":
        raise FileNotFoundError(2, "no such file", "elsewhere")
    if what == "end":
        os._exit(3)


@pytest.mark.process
def test_what_happens_is_told_with_the_command_that_does_it_again(capfd: pytest.CaptureFixture[str]) -> None:
    soak = mutations.Soak(Parser("odd", _make, _parse), 3, 12, 1, 1 << 30, compiling=1)
    soak.run()
    texts = [random_for("odd", 3, number).choice(_KINDS) for number in range(12)]
    names = {"crash": "signal", "hang": "hang", "grow": "growth", "odd": "no error of the house"}
    names |= {"quiet": "without the name of the file", "end": "end"}
    assert soak.taken == texts.count("fine")
    assert soak.faults == {names[text]: texts.count(text) for text in texts if text != "fine"}
    assert f"python -m tests.soak.mutations odd --seed 3 --only {texts.index('crash')}" in capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.process
def test_kernels_with_every_index_checked(tmp_path: Path) -> None:
    """Compiled anew, with checks, in a process and a folder of its own."""
    surroundings = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    names = ("outlines", "yolo", "index", "jpeg")
    command = [sys.executable, "-m", "tests.soak.mutations", *names, "--count", "200", "--seconds", "60"]
    run = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=600, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("faults: none") == len(names)
