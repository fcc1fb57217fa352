"""Workflows: the targets, modules and files that they ask for exist, and they have no more rights than they need."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def jobs_of(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"])


def commands_of(path: Path) -> list[str]:
    return [step["run"] for job in jobs_of(path).values() for step in job.get("steps", []) if "run" in step]


def test_there_are_workflows() -> None:
    assert {path.stem for path in WORKFLOWS} == {"docs", "lint", "release", "test", "wheels"}
    commands = [command for path in WORKFLOWS for command in commands_of(path)]
    called = set(re.findall(r"\bmake ([\w-]+)", "\n".join(commands)))
    assert called == {"docs", "lint", "lint-workflows", "test", "test-aarch64", "test-highest", "test-lowest", "wheel"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_targets_modules_and_workflows_exist(path: Path) -> None:
    for command in commands_of(path):
        assert set(re.findall(r"\bmake ([\w-]+)", command)) <= TARGETS, command
        for module in re.findall(r"python -m ((?:tools|tests|benchmarks)[\w.]*)", command):
            assert importlib.util.find_spec(module) is not None, command
    for job in jobs_of(path).values():
        if (uses := job.get("uses", "")).startswith("./"):
            assert (ROOT / uses).is_file(), uses


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_rights_are_few(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert "\npermissions: {}\n" in text
    for line in re.findall(r"uses: (.*)", text):
        assert line.startswith("./.github/") or re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", line), line
    written = {
        right for job in jobs_of(path).values() for right, value in job["permissions"].items() if value == "write"
    }
    assert written <= {"docs": {"pages", "id-token"}, "release": {"contents", "id-token"}}.get(path.stem, set())
    for job in jobs_of(path).values():
        assert "uses" in job or "timeout-minutes" in job
