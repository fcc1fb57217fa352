"""Docstrings and comments of the code, private ones too, follow the rules of ``tests.words``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.words import problems_of

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "variegate"
ROOMS = [
    *sorted(path for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"),
    ROOT / "packages/variegate-studio/src",
    ROOT / "benchmarks",
]


def test_comments_of_native_code_are_plain() -> None:
    files = sorted(path for path in (ROOT / "native").rglob("*") if path.suffix in (".h", ".cpp"))
    assert [problem for path in files for problem in problems_of(path.relative_to(Path.cwd()))] == []


@pytest.mark.parametrize("room", [PACKAGE, *ROOMS], ids=lambda room: room.name)
def test_prose_is_plain(room: Path) -> None:
    files = room.glob("*.py") if room == PACKAGE else room.rglob("*.py")
    assert [problem for path in sorted(files) for problem in problems_of(path.relative_to(Path.cwd()))] == []
