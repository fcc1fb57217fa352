"""A plugin of pytest: notes each test as it begins, and the first that fails, in the file that FIRST_FAILURE names.

What a run prints cannot be parsed (names of tests hold any text), and a process that crashed prints nothing.
"""

from __future__ import annotations

import os

import pytest

NOTES = "FIRST_FAILURE"


def _note(word: str, name: str) -> None:
    with open(os.environ[NOTES], "a", encoding="utf-8") as file:
        file.write(f"{word} {name}\n")


def pytest_runtest_logstart(nodeid: str) -> None:
    _note("began", nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _note("failed", report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _note("uncollected", report.nodeid)
