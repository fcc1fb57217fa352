"""Parsers of foreign bytes under sanitizers: nothing is read or written beyond its memory."""

from __future__ import annotations

import subprocess

import pytest

from native import build


@pytest.mark.slow
@pytest.mark.parametrize("name", [path.stem for path in sorted(build.SOURCES.glob("fuzz/*.cpp"))])
def test_mutated_bytes_break_no_parser(name: str) -> None:
    fuzzers = {path.name: path for path in build.build_fuzzers()}
    run = subprocess.run([fuzzers[name], "200000"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
