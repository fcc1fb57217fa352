"""A pytest plugin: what kind of test each is, what it costs, and the order in which workers take them.

Tiers, by what a test needs: ``process`` starts a process; ``random`` is a long run of random cases; ``slow`` is left
out of ``make test``; all others are ``unit``, which is not written down. A test that starts a process and is neither
``process`` nor ``slow`` fails. ``--times`` prints the slowest tests and the share of every folder at the end.
"""

from __future__ import annotations

import gc
import multiprocessing.process
import os
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler.loadgroup import LoadGroupScheduling

TIERS = ("process", "random", "slow")
UNIT_SECONDS = 2.0  # of processor time
# Begun first, as they take longest and nothing else may be left to run beside them at the end.
DEAR = ("ray", "tensorflow", "ranks", "wheels")

_running: pytest.Item | None = None


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("variegate")
    group.addoption("--times", action="store_true", help="print the slowest tests, and each folder's share of the time")
    group.addoption(
        "--strict-times",
        action="store_true",
        help=f"fail if a unit test takes over {UNIT_SECONDS:g} s of processor time",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing of what is collected becomes garbage: Python need not go through it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # else libraries take what is left at the end for leaks


# -- tiers -------------------------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)  # before ``-m unit`` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not any(item.get_closest_marker(tier) for tier in TIERS):
            item.add_marker("unit")


def _group_of(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("xdist_group")
    return None if mark is None else str(mark.args[0] if mark.args else mark.kwargs["name"])


def _starts_a_process(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn") and _running is not None:
        _refuse(f"{event} {str(arguments)[:200]}")


def _refuse(what: str) -> None:
    if _running is not None and not any(map(_running.get_closest_marker, ("process", "slow", "gpu"))):
        pytest.fail(f"starts a process and is marked neither `process` nor `slow`: {what}", pytrace=True)


def pytest_configure(config: pytest.Config) -> None:
    start = multiprocessing.process.BaseProcess.start

    def watched(process: Any) -> None:
        _refuse(f"multiprocessing {process.name}")
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
    config.option.loadscopereorder = False  # by their number of tests; here dear ones come first
    return FileOrGroup(config, log)


# -- what each test costs ----------------------------------------------------------------------------------------------


def _processor_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    forks = sys.modules.get("tests.children")  # it notes the environment when it is imported
    of_server = forks.processor_seconds if forks else 0.0
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime + of_server


def _measured(item: pytest.Item) -> Iterator[None]:
    global _running
    before, _running = _processor_seconds(), item
    try:
        yield
    finally:
        _running = None
        item.user_properties.append(("processor", _processor_seconds() - before))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    return (yield from _measured(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    return (yield from _measured(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    return (yield from _measured(item))


class Times:
    """Gathers what tests took, in the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.prints = config.getoption("--times")
        self.is_strict = config.getoption("--strict-times")
        self.seconds: dict[str, float] = {}
        self.units: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self.seconds[report.nodeid] = sum(value for name, value in report.user_properties if name == "processor")  # type: ignore[misc]
            if "unit" in report.keywords:
                self.units.add(report.nodeid)

    def over(self) -> list[str]:
        return [name for name in self.units if self.seconds[name] > UNIT_SECONDS]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.is_strict and self.over() and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not (self.prints or self.is_strict) or not self.seconds:
            return
        write = terminalreporter.write_line
        if self.prints:
            whole = sum(self.seconds.values())
            terminalreporter.section(f"{whole:.0f} s of processor time in {len(self.seconds):,} tests")
            folders: Counter[str] = Counter()
            for name, seconds in self.seconds.items():
                path = name.partition("::")[0].split(os.sep)
                folders["/".join(path[:2]) if len(path) > 2 else path[0]] += seconds  # type: ignore[assignment]
            for folder, seconds in folders.most_common():
                write(f"{seconds:8.1f} s {seconds / whole:6.1%}  {folder}")
            terminalreporter.section("the 25 slowest")
            for name in sorted(self.seconds, key=self.seconds.__getitem__, reverse=True)[:25]:
                write(f"{self.seconds[name]:8.1f} s  {name}")
        terminalreporter.section(f"unit tests over {UNIT_SECONDS:g} s of processor time: {len(self.over())}")
        for name in sorted(self.over(), key=self.seconds.__getitem__, reverse=True):
            write(f"{self.seconds[name]:8.1f} s  {name}")
