"""A pytest plugin: what kind of test each is, what it costs, and the order in which workers take them.

Tiers, by what a test needs: ``process`` starts a process; ``random`` is a long run of random cases; ``slow`` is left
out of ``make test``; all others are ``unit``, which is not written down. A test that starts a process and is neither
``process`` nor ``slow`` fails. ``--times`` prints at the end what each folder takes and which tests are the slowest.
"""

from __future__ import annotations

import gc
import multiprocessing.process
import os
import resource
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from xdist.scheduler.loadgroup import LoadGroupScheduling

TIERS = ("process", "random", "slow")
UNIT_SECONDS = 2.0  # of processor time
# Groups that run first, because they take longest: the short files of unit tests then fill up all workers to the end.
LONG_GROUPS = ("ray", "tensorflow", "ranks")

_running: pytest.Item | None = None
_has_started_process = False


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("variegate")
    group.addoption(
        "--times", action="store_true", help="print each folder's time, tests and processes, and the slowest tests"
    )
    group.addoption(
        "--strict-times",
        action="store_true",
        help=f"fail if a unit test takes over {UNIT_SECONDS:g} s of processor time",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing of what is collected becomes garbage, and Python rarely goes through what libraries hold."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else libraries take what is left at the end for leaks


# -- tiers -------------------------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)  # before ``-m unit`` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not any(item.get_closest_marker(tier) for tier in TIERS):
            item.add_marker("unit")
    with_processes = {item.path for item in items if not item.get_closest_marker("unit")}
    items.sort(key=lambda item: _rank(item, with_processes))


def _rank(item: pytest.Item, with_processes: set[Path]) -> int:
    """Long groups first, then files that have tests of processes or of random cases, then unit tests."""
    mark = item.get_closest_marker("xdist_group")
    if mark is not None and mark.args[0] in LONG_GROUPS:
        return LONG_GROUPS.index(mark.args[0])
    return len(LONG_GROUPS) + (item.path not in with_processes)


def _starts_a_process(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn") and _running is not None:
        _check_process(f"{event} {str(arguments)[:200]}")


def _check_process(what: str) -> None:
    global _has_started_process
    _has_started_process = True
    if _running is not None and not any(map(_running.get_closest_marker, ("process", "slow", "gpu"))):
        pytest.fail(f"starts a process and is marked neither `process` nor `slow`: {what}", pytrace=True)


def pytest_configure(config: pytest.Config) -> None:
    start = multiprocessing.process.BaseProcess.start

    def watched(process: Any) -> None:
        _check_process(f"multiprocessing {process.name}")
        start(process)

    multiprocessing.process.BaseProcess.start = watched  # type: ignore[assignment, method-assign]
    sys.addaudithook(_starts_a_process)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Times(config), "variegate-times")


# -- the order of workers ----------------------------------------------------------------------------------------------


class FileOrGroup(LoadGroupScheduling):
    """Tests of a file stay together, so that its fixtures are made once, and tests of a group with those of other files
    (``--dist loadgroup`` alone would deal out single tests)."""

    def _split_scope(self, nodeid: str) -> str:
        path, _, name = nodeid.partition("::")
        return str(super()._split_scope(nodeid)) if "@" in name.rpartition("]")[2] else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileOrGroup | None:
    if config.getoption("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False  # by the number of tests; here they are in order
    return FileOrGroup(config, log)


# -- what each test costs ----------------------------------------------------------------------------------------------


def _processor_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    forks = sys.modules.get("tests.children")  # it notes the environment when it is imported
    of_server = forks.processor_seconds if forks else 0.0
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime + of_server


_seconds = pytest.StashKey[float]()


def _measured(item: pytest.Item) -> Iterator[None]:
    global _running
    before, _running = _processor_seconds(), item
    try:
        yield
    finally:
        _running = None
        item.stash[_seconds] = item.stash.get(_seconds, 0.0) + _processor_seconds() - before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    return (yield from _measured(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    return (yield from _measured(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    global _has_started_process
    try:
        yield from _measured(item)
    finally:
        item.user_properties += [("processor", item.stash[_seconds]), ("process", _has_started_process)]
        _has_started_process = False


class Cost(NamedTuple):
    processor: float
    wall: float
    starts_process: bool


class Times:
    """Collects what tests cost, in the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.prints = config.getoption("--times")
        self.is_strict = config.getoption("--strict-times")
        self.costs: dict[str, Cost] = {}
        self.units: set[str] = set()
        self._wall: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._wall[report.nodeid] += report.duration  # type: ignore[assignment]
        if report.when == "teardown":
            measured: dict[str, Any] = dict(report.user_properties)
            wall = self._wall.pop(report.nodeid)
            self.costs[report.nodeid] = Cost(measured["processor"], wall, measured["process"])
            if "unit" in report.keywords:
                self.units.add(report.nodeid)

    def over(self) -> list[str]:
        return [name for name in self.units if self.costs[name].processor > UNIT_SECONDS]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.is_strict and self.over() and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not (self.prints or self.is_strict) or not self.costs:
            return
        if self.prints:
            self._write_folders(terminalreporter)
            self._write_tests(terminalreporter, "the 15 that take most processor time", "processor")
            self._write_tests(terminalreporter, "the 15 that take longest", "wall")
        terminalreporter.section(f"unit tests over {UNIT_SECONDS:g} s of processor time: {len(self.over())}")
        for name in sorted(self.over(), key=lambda name: -self.costs[name].processor):
            terminalreporter.write_line(f"{self.costs[name].processor:8.1f} s  {name}")

    def _write_folders(self, terminalreporter: Any) -> None:
        folders: dict[str, list[Cost]] = {}
        for name, cost in self.costs.items():
            path = name.partition("::")[0].split(os.sep)
            folders.setdefault("/".join(path[:2]) if len(path) > 2 else path[0], []).append(cost)
        rows = [(folder, *_sums(costs)) for folder, costs in folders.items()]
        rows.sort(key=lambda row: -row[1])
        terminalreporter.section("by folder")
        terminalreporter.write_line("processor      wall   tests  that start a process")
        for folder, processor, wall, starting in [("all", *_sums(self.costs.values())), *rows]:
            tests = len(folders.get(folder, self.costs))
            terminalreporter.write_line(f"{processor:7.1f} s {wall:7.1f} s {tests:7,} {starting:5}  {folder}")

    def _write_tests(self, terminalreporter: Any, title: str, of: str) -> None:
        terminalreporter.section(title)
        slowest = sorted(self.costs.items(), key=lambda entry: -getattr(entry[1], of))
        for name, cost in slowest[:15]:
            terminalreporter.write_line(f"{getattr(cost, of):7.1f} s  {name}")


def _sums(costs: Iterable[Cost]) -> tuple[float, float, int]:
    """Processor time, wall time, and the number of tests that start a process."""
    processor, wall, starting = zip(*costs, strict=True)
    return sum(processor), sum(wall), sum(starting)
