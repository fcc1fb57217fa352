"""The search as trials of Ray Tune: the same files as the local one, whatever dies on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from tests.engine.bounded import fail_after
from tests.search.runs import contents, small_run
from variegate.data.sources.base import SourceError
from variegate.search import LostPopulationError
from variegate.search.local import LocalSearch, Progress
from variegate.search.run import SearchRun
from variegate.search.tune import TuneSearch
from variegate.search.tune.course import STATE_NAME

ray = pytest.importorskip("ray")
pytest.importorskip("ray.tune")


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    with fail_after(120):
        yield


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[str]:
    """One for all tests: to start it takes seconds."""
    context = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=256 << 20)
    yield context.address_info["address"]
    ray.shutdown()


@pytest.fixture
def _one_at_a_time() -> Iterator[None]:
    """A single process, which is all members in turn: it takes seconds to start one."""
    taken = ray.util.placement_group([{"CPU": 1}])
    ray.get(taken.ready())
    yield
    ray.util.remove_placement_group(taken)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return local(small_run(), tmp_path_factory.mktemp("search") / "local")


def local(run: SearchRun, folder: Path) -> dict[str, bytes]:
    assert LocalSearch(run, folder, ["cpu"]).run() is not None
    return contents(folder)


def test_two_trials_at_a_time_come_to_the_files_of_the_local_search(
    reference: dict[str, bytes], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[Progress] = []
    processes: set[int] = set()

    def look(progress: Progress) -> None:
        seen.append(progress)
        processes.update(members())

    assert TuneSearch(small_run(), tmp_path / "out").run(look) is not None
    assert contents(tmp_path / "out") == reference
    assert [(p.step, p.members_done, bool(p.rows)) for p in seen] == [
        (step + (done > 4), min(done, 4), done > 4) for step in range(3) for done in range(1, 6)
    ]
    # No process ended with a pause, and Tune has said nothing of its own.
    assert len(processes) == 2
    assert capfd.readouterr() == ("", "")


def members() -> list[int]:
    """The processes that train, of the cluster of this test alone."""
    parents, found = {}, []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if b"ray::MemberTrial" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:  # ended meanwhile
            continue

    def is_ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and is_ours(parents[pid]))

    return [pid for pid in found if is_ours(pid)]


def once(step: int, done: int, act: Callable[[], object]) -> Callable[[Progress], None]:
    """``done``: members of the step after ``step``; 0 for the end of ``step`` itself."""
    left = [act]

    def look(progress: Progress) -> None:
        if left and (progress.step, 0 if progress.rows else progress.members_done) == (step, done):
            left.pop()()

    return look


def kill_members() -> None:
    found = members()
    assert found
    for pid in found:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="finds processes as Linux lets one")
@pytest.mark.usefixtures("_one_at_a_time")
def test_a_stopped_search_whose_processes_die_comes_to_the_same_files(
    reference: dict[str, bytes], tmp_path: Path
) -> None:
    stop = Event()
    assert TuneSearch(small_run(), tmp_path / "out").run(once(1, 1, stop.set), stop) is None
    state = json.loads((tmp_path / "out" / "ray" / STATE_NAME).read_text())
    assert state["population"]["step"] == 1
    # First while it waits to be another member, then while it trains or saves.
    idle, busy = once(2, 0, kill_members), once(2, 2, kill_members)

    def look(progress: Progress) -> None:
        idle(progress)
        busy(progress)

    assert TuneSearch(small_run(), tmp_path / "out").run(look) is not None
    assert contents(tmp_path / "out") == reference


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.search.runs import small_run
from variegate.search.tune import TuneSearch

def look(progress):
    if progress.step == 2 and not progress.rows:
        os.kill(os.getpid(), signal.SIGKILL)

TuneSearch(small_run(), Path(sys.argv[1]), address=sys.argv[2]).run(look)
"""


@pytest.mark.usefixtures("_one_at_a_time")
def test_a_killed_driver_is_gone_on_with(reference: dict[str, bytes], tmp_path: Path, cluster: str) -> None:
    out = tmp_path / "out"
    driver = subprocess.run([sys.executable, "-c", KILLED, out, cluster], capture_output=True, text=True, timeout=100)
    assert driver.returncode == -signal.SIGKILL, driver.stderr
    # Of the checkpoints those that are needed, and the one that the third step has begun with.
    assert len(list(out.glob("ray/*/*/checkpoint_*"))) <= 4
    assert LocalSearch(small_run(), out, ["cpu"]) is not None
    with pytest.raises(SourceError, match="holds a search with the back end 'ray' that is not finished"):
        LocalSearch(small_run(), out, ["cpu"]).run()
    seen: list[Progress] = []
    assert TuneSearch(small_run(), out).run(seen.append) is not None
    assert {progress.step for progress in seen} == {2, 3}
    assert contents(out) == reference


@pytest.mark.usefixtures("_one_at_a_time")
def test_members_that_diverge_are_replaced_as_in_the_local_search(tmp_path: Path) -> None:
    run = small_run("tests.search.runs:fragile", epochs=4)
    assert TuneSearch(run, tmp_path / "out").run() is not None
    assert contents(tmp_path / "out") == local(run, tmp_path / "local")
    assert b'"member":2,"score":null' in contents(tmp_path / "out")["population.jsonl"]


@pytest.mark.usefixtures("_one_at_a_time")
def test_a_lost_population_is_said(tmp_path: Path) -> None:
    with pytest.raises(LostPopulationError, match="epoch 2: none of 4 members has a score"):
        TuneSearch(small_run("tests.search.runs:broken"), tmp_path / "out").run()


@pytest.mark.usefixtures("_one_at_a_time")
def test_what_a_member_raises_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no model for member 2"):
        TuneSearch(small_run("tests.search.runs:faulty"), tmp_path / "out").run()


def test_arguments_are_checked_before_anything_starts(tmp_path: Path) -> None:
    run = small_run()
    with pytest.raises(ValueError, match="gpus_per_member: got 2; accepted: 0 to 1"):
        TuneSearch(run, tmp_path / "out", gpus_per_member=2)
    with pytest.raises(ValueError, match="address: got 'ray://there:10001', which"):
        TuneSearch(run, tmp_path / "out", address="ray://there:10001")
    with pytest.raises(ValueError, match="model: got 'resnet'; accepted: wrn-"):
        TuneSearch(replace(run, model="resnet"), tmp_path / "out")
    with pytest.raises(ValueError, match=r"gpus_per_member: got 0.5, and the cluster has 0 GPUs"):
        TuneSearch(run, tmp_path / "out", gpus_per_member=0.5).run()
