"""Every planted defect can still be planted: what it changes is there, and the tests that have to notice it are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.strength.all_defects import DEFECTS
from tests.strength.defect import Defect, StaleDefect, planted

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_changes_one_place_and_its_tests_exist(defect: Defect) -> None:
    planted(defect, ROOT)
    assert defect.tests
    assert [name for name in defect.tests if not (ROOT / name).exists()] == []


def test_there_are_many() -> None:
    assert len(DEFECTS) >= 60


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(defect.name for defect in DEFECTS).items() if count > 1] == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Of a repository with a file of C++, whose package has two modules with a function ``halve`` each."""
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "half.cpp").write_text("int halve(int x) { return x / 2; }\nint none() { return 0; }\n")
    (tmp_path / "variegate").mkdir()
    (tmp_path / "variegate" / "one.py").write_text("def halve(x):\n    return x // 2\n\n\nHALF = 1 // 2\n")
    (tmp_path / "variegate" / "two.py").write_text("class Of:\n    def halve(self, x):\n        return x / 2\n")
    return tmp_path


@pytest.mark.parametrize(
    ("anchor", "search", "file"),
    [
        ("halve", "x // 2", "one.py"),
        ("Of.halve", "x / 2", "two.py"),
        ("Of", "x / 2", "two.py"),
        ("HALF", "1", "one.py"),
        ("native/half.cpp", "x / 2", "../native/half.cpp"),
    ],
)
def test_a_defect_is_planted_where_its_anchor_is(root: Path, anchor: str, search: str, file: str) -> None:
    path, text = planted(Defect("d", anchor, search, "y", ()), root)
    assert path == (root / "variegate" / file).resolve()
    before, _, after = path.read_text().rpartition(search)
    assert text == f"{before}y{after}"


@pytest.mark.parametrize(
    ("anchor", "search", "replace"),
    [
        ("double", "x // 2", "x"),
        ("halve", "x", "y"),
        ("halve", "x // 2", "x // 2  # rounds"),
        ("native/half.cpp", "return", ""),
        ("native/double.cpp", "x", "y"),
    ],
    ids=["no such anchor", "twice in it", "same meaning", "twice in a file", "no such file"],
)
def test_a_defect_that_cannot_be_planted_is_stale(root: Path, anchor: str, search: str, replace: str) -> None:
    with pytest.raises(StaleDefect, match=r"^d: "):
        planted(Defect("d", anchor, search, replace, ()), root)
