"""The compiled library: it belongs to the sources beside it, runs at every level alike, and rounds every step."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from native import build
from variegate import Augmenter
from variegate import transforms as T
from variegate.native import library


def test_multiply_and_add_round_twice() -> None:
    """A fused multiply-add would give other bits on processors that have one."""
    levels = np.arange(256, dtype=np.uint8).reshape(1, 256, 1)
    mean, std = 0.4914, 0.2471
    scale = np.float32(1.0 / (255.0 * std))
    bias = np.float32(-mean / std)
    expected = levels.astype(np.float32) * scale + bias
    fused = (levels.astype(np.float64) * np.float64(scale) + np.float64(bias)).astype(np.float32)
    assert (expected != fused).any()
    normalize = Augmenter(T.Normalize((mean,), (std,)), num_threads=1)
    result = np.asarray(normalize([levels], ids=[0])[0])
    np.testing.assert_array_equal(result.reshape(-1), expected.reshape(-1))


@pytest.mark.process
def test_unknown_level_is_named() -> None:
    code = "import os; os.environ['VARIEGATE_LEVEL'] = 'avx9'; import variegate.native.library as n; n.level()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == (
        "ImportError: VARIEGATE_LEVEL: got 'avx9'; accepted: x86-64, x86-64-v2, x86-64-v3, x86-64-v4, x86-64-v4-vbmi"
    )


def test_entry_without_a_level_is_found_by_its_name() -> None:
    assert 0 <= library.entry("vg_host_level")() < len(library.LEVELS)


@pytest.mark.process
def test_build_is_current() -> None:
    """Nothing is compiled again where no source changed."""
    build.build(levels=build.host_levels())
    before = build.LIBRARY.stat().st_mtime_ns
    build.build(levels=build.host_levels())
    assert build.LIBRARY.stat().st_mtime_ns == before


@pytest.mark.process
def test_library_is_of_the_compiler_that_built_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects of the first compiler are older than the library of the second, and are linked again."""
    command = shlex.join(build.find_compiler().command)
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    monkeypatch.setattr(build, "OBJECTS", tmp_path / "objects")
    (tmp_path / "api.cpp").write_text(
        'extern "C" __attribute__((visibility("default"))) int answer() { return ANSWER; }'
    )
    libraries = []
    for answer in (1, 2, 1):
        monkeypatch.setenv("CC", f"{command} -DANSWER={answer}")
        libraries.append(build.build(tmp_path / "library.so", ["base"]).read_bytes())
    assert libraries[0] == libraries[2] != libraries[1]


@pytest.mark.process
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm lists symbols")
def test_no_code_of_a_level_serves_another() -> None:
    """A weak symbol of several levels would be linked once, perhaps with instructions that a processor lacks.

    Those of templates have their level in their name.
    """
    build.build(levels=build.host_levels())
    levels_of: dict[str, set[str]] = {}
    for level in filter(Path.is_dir, build.objects_folder().iterdir()):
        symbols = subprocess.run(["nm", *level.glob("*.o")], capture_output=True, text=True, check=True).stdout
        for name in re.findall(r" [WV] (\S+)$", symbols, re.M):
            levels_of.setdefault(name, set()).add(level.name)
    shared = {
        name: found
        for name, found in levels_of.items()
        if found != {"base"} and not all(f"2vg{len(x)}{x}" in name for x in found)
    }
    assert shared == {}


@pytest.mark.process
@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump shows instructions")
@pytest.mark.skipif(build.target_machine() != "x86_64", reason="names of instructions of x86-64")
def test_no_compiler_fuses_multiply_and_add() -> None:
    """At no level: fused instructions are those of hue.cpp, whose division is exact because of them."""
    build.build(levels=build.host_levels())
    fused = re.compile(r"\bvfn?m(add|sub)")
    found = set()
    for compiled in build.objects_folder().glob("*/*.o"):
        code = subprocess.run(["objdump", "-d", compiled], capture_output=True, text=True, check=True).stdout
        if fused.search(code):
            found.add(compiled.stem)
    assert found <= {"kernels-hue"}
