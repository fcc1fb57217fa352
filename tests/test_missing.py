"""Nothing that is there lacks a part, and something new is told all of its parts at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from tests import missing
from variegate.data.kinds import FORMATS, Format
from variegate.ops.arguments import Number
from variegate.ops.base import Transform
from variegate.ops.magnitude import MagnitudeOp
from variegate.ops.schema import MagnitudeRange
from variegate.program.ops import SPECS, Kind, Op, OpSpec

HOW = "`python -m tests.missing NAME` lists the parts of one operation, source, option, policy or command:"


@pytest.mark.xdist_group("package")
def test_nothing_is_missing() -> None:
    lines = [line for parts in missing.subjects().values() for line in parts()]
    assert [*dict.fromkeys(lines), *missing.missing_of_generated()] == [], HOW


def test_a_new_operation_is_told_all_that_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Transform, "registry", dict(Transform.registry))

    @dataclass(frozen=True)
    class Unwritten(MagnitudeOp):
        """Darken towards the corners."""

        strength: Annotated[Number, MagnitudeRange(0.0, 1.0)]

    Unwritten.__module__ = "variegate.ops.unwritten_here"
    unwritten = int.__new__(Op, 35)
    unwritten._name_, unwritten._value_ = "UNWRITTEN", 35
    monkeypatch.setattr(Unwritten, "_op", unwritten, raising=False)
    assert missing.main(["Unwritten"]) == 1
    assert files(capsys) == {
        "variegate/transforms/__init__.py",
        "tests/ops/examples.py",
        "variegate/ops/unwritten_here.py",
        "docs/gallery.py",
        "docs/reference",
        "variegate/program/ops.py",
    }
    monkeypatch.setitem(SPECS, unwritten, OpSpec("Unwritten", Kind.POSITION, ("strength",)))
    assert missing.main(["Unwritten"]) == 1
    assert files(capsys) >= {
        "tests/oracle/position.py",
        "tests/programs.py",
        "native/kernels/position.cpp, apply_position",
        "variegate/executors/cuda/kernels/values.py, apply_position",
    }


def test_a_new_source_is_told_all_that_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(FORMATS, "sack", Format((".sack",), "files", "sack:open_sack"))
    assert missing.main(["sack"]) == 1
    needed = {"variegate/data/sack.py", "docs/loader.md", "variegate/io/addresses.py", "tests/data/contract.py"}
    assert files(capsys) == needed


def files(capsys: pytest.CaptureFixture[str]) -> set[str]:
    parts, _, _ = capsys.readouterr().out.partition("\n\nWhile you work")
    return {line.partition(":")[0] for line in parts.splitlines()}


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert missing.main(["Vignete"]) == 2
    assert capsys.readouterr().out.startswith("Vignete: no transform, instruction, format, policy, option or command.")
