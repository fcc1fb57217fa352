"""The search as trials of Ray Tune: the same files as the local one, whatever dies on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock
from typing import Any

import pytest

import variegate as vg
from tests.apps.search.objectives import NUMBERS, Noted
from tests.apps.search.runs import contents, small_run
from tests.jobs.bounded import fail_after
from tests.one_ray import one_ray
from variegate.apps.search import LostPopulationError
from variegate.apps.search.driver import CheckpointError, LocalSearch, Progress
from variegate.apps.search.run import SearchRun
from variegate.apps.search.tune import RETRIES, STATE_NAME, TuneDriver, TuneSearch
from variegate.formats.base import SourceError

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("ray")]


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    with fail_after(120):
        yield


@pytest.fixture(scope="module", autouse=True)
def cluster(request: pytest.FixtureRequest) -> str:
    return one_ray(request.config)["address"]


@pytest.fixture
def _one_at_a_time() -> Iterator[None]:
    """A single process, which is all members in turn: it takes seconds to start one."""
    import ray

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


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.apps.search.runs import small_run
from variegate.apps.search.tune import TuneSearch

def look(progress):
    if progress.step == 1 and not progress.rows:
        os.kill(os.getpid(), signal.SIGKILL)

TuneSearch(small_run(), Path(sys.argv[1]), address=sys.argv[2]).run(look)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes as Linux lets one")
@pytest.mark.usefixtures("_one_at_a_time")
def test_whatever_is_killed_the_files_are_the_same(reference: dict[str, bytes], tmp_path: Path, cluster: str) -> None:
    out = tmp_path / "out"
    driver = subprocess.run([sys.executable, "-c", KILLED, out, cluster], capture_output=True, text=True, timeout=100)
    assert driver.returncode == -signal.SIGKILL, driver.stderr
    state = json.loads((out / "ray" / STATE_NAME).read_text())
    assert state["step"] == 1
    with pytest.raises(SourceError, match="holds a search with the back end 'ray' that is not finished"):
        LocalSearch(small_run(), out, ["cpu"]).run()
    # A process that waits to be another member: Tune itself would wait for it, or give that member up.
    seen: list[Progress] = []
    kill = once(2, 0, lambda: os.kill(members()[0], signal.SIGKILL))

    def look(progress: Progress) -> None:
        seen.append(progress)
        kill(progress)
        # What the next step, or one of these members that dies, goes on from; and what this step has come to.
        assert len(list(out.glob("ray/*/*/checkpoint_*"))) <= 8

    assert TuneSearch(small_run(), out).run(look) is not None
    assert seen[0].step == 1
    assert contents(out) == reference


@pytest.mark.usefixtures("_one_at_a_time")
def test_a_stopped_search_replaces_members_that_diverge_as_the_local_one(tmp_path: Path) -> None:
    run, out, stop = small_run("tests.apps.search.runs:fragile", epochs=4), tmp_path / "out", Event()
    assert TuneSearch(run, out).run(once(1, 1, stop.set), stop) is None
    assert TuneSearch(run, out).run() is not None
    assert contents(out) == local(run, tmp_path / "local")
    assert b'"member":2,"score":null' in contents(out)["population.jsonl"]


@pytest.mark.usefixtures("_one_at_a_time")
def test_a_lost_population_is_said(tmp_path: Path) -> None:
    with pytest.raises(LostPopulationError, match="epoch 2: none of 4 members has a score"):
        TuneSearch(small_run("tests.apps.search.runs:broken"), tmp_path / "out").run()


KILLED_OBJECTIVE = """
import os, signal, sys
from pathlib import Path
import variegate as vg
from tests.apps.search.objectives import NUMBERS, Noted

def look(progress):
    if progress.step == 1 and progress.members_done == 2 and not progress.rows:
        os.kill(os.getpid(), signal.SIGKILL)

calls, out, address = sys.argv[1:]
vg.search(Noted(Path(calls)), **NUMBERS, out=Path(out), backend="ray", address=address, on_progress=look)
"""


@pytest.mark.parametrize("is_killed", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("_one_at_a_time")
def test_training_of_users_resumes_to_the_files_of_the_local_search(
    tmp_path: Path, cluster: str, is_killed: bool
) -> None:
    out, calls = tmp_path / "out", tmp_path / "calls"

    def interrupt() -> None:
        raise KeyboardInterrupt

    if is_killed:
        program = [sys.executable, "-c", KILLED_OBJECTIVE, calls, out, cluster]
        driver = subprocess.run(program, capture_output=True, text=True, timeout=100)
        assert driver.returncode == -signal.SIGKILL, driver.stderr
    else:
        with pytest.raises(KeyboardInterrupt):
            vg.search(Noted(calls), **NUMBERS, out=out, backend="ray", on_progress=once(1, 2, interrupt))
    with pytest.raises(SourceError, match="holds a search with the back end 'ray' that is not finished"):
        vg.search(Noted(calls), **NUMBERS, out=out)
    before = Noted.lines(calls, "end")
    found = vg.search(Noted(calls), **NUMBERS, out=out, backend="ray", address=cluster)
    # Of the second step, which was under way, all four; the first is over.
    assert not set(before[:4]) & set(Noted.lines(calls, "end")[len(before) :])
    local = vg.search(Noted(tmp_path / "others"), **NUMBERS, out=tmp_path / "local")
    assert contents(out) == contents(tmp_path / "local")
    assert (found.schedule, found.score) == (local.schedule, local.score)


def test_a_race_on_a_cluster_is_the_local_one_though_its_processes_die(tmp_path: Path, cluster: str) -> None:
    def objective(skill: float, seed: int) -> float:
        return skill + seed % 1000 / 1e6

    def dying(skill: float, seed: int) -> float:
        try:
            (tmp_path / "died").touch(exist_ok=False)
        except FileExistsError:
            return objective(skill, seed)
        os._exit(1)

    skills = {"none": 0.6, "flip": 0.7, "crop": 0.8}
    found = vg.race(dying, skills, rounds=2, out=tmp_path / "out", backend="ray", address=cluster)
    assert (tmp_path / "died").exists()
    local = vg.race(objective, skills, rounds=2, workers=2)
    assert found.standings == local.standings
    assert found.trainings == local.trainings
    # All are over, so that nothing is trained here.
    assert vg.race(dying, skills, rounds=2, out=tmp_path / "out").standings == local.standings

    def failing(skill: float, seed: int) -> float:
        raise ZeroDivisionError("of the loss")

    with pytest.raises(ZeroDivisionError, match=r"^of the loss"):
        vg.race(failing, skills, backend="ray")
    lock = Lock()
    with pytest.raises(ValueError, match=r"objective: got .*, which cannot be pickled \(cannot pickle '_th"):
        vg.race(lambda skill, seed: lock and 0.0, skills, backend="ray")
    with pytest.raises(ValueError, match="gpus_per_training: got 1; accepted: at most the 0 GPUs of the cluster"):
        vg.race(objective, skills, backend="ray", gpus_per_training=1)


@pytest.mark.usefixtures("_one_at_a_time")
def test_an_error_of_users_training_names_the_member(tmp_path: Path) -> None:
    def failing(policy: Any, epochs: int, checkpoint: Any) -> tuple[float, Any]:
        raise ZeroDivisionError("of the loss")

    with pytest.raises(RuntimeError, match=r"^objective: member 0, step 1 \(after epoch 0\): ZeroDivisionError: of"):
        vg.search(failing, **NUMBERS, out=tmp_path / "out", backend="ray")


def test_training_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    lock = Lock()

    def locked(policy: Any, epochs: int, checkpoint: Any) -> tuple[float, Any]:
        with lock:
            return 0.0, None

    with pytest.raises(ValueError, match=r"objective: got .*locked, which cannot be pickled \(cannot pickle '_th"):
        vg.search(locked, **NUMBERS, out=tmp_path / "out", backend="ray")


def test_a_member_that_dies_again_and_again_ends_the_search(tmp_path: Path) -> None:
    run = small_run()
    run.claim(tmp_path / "out", "ray")
    with closing(TuneDriver(run, tmp_path / "out", lambda progress: None, None)) as driver:
        for _ in range(RETRIES):
            driver.lose(1, "killed")
        driver.lose(2, "killed")
        with driver.failing():
            driver.lose(1, "killed")
        assert driver.is_over
        assert str(driver.failure) == "member 1: its process died 4 times in step 1: killed"


def test_a_checkpoint_that_is_gone_is_named(reference: dict[str, bytes], tmp_path: Path) -> None:
    run, out = small_run(), tmp_path / "out"
    run.claim(out, "ray")
    places = [out.resolve() / "ray" / "run-1" / f"member-{member}" / "checkpoint_000000" for member in range(4)]
    with closing(TuneDriver(run, out, lambda progress: None, None)) as driver:
        for member, place in enumerate(places):
            place.mkdir(parents=True)
            driver.score(member, 1, member / 4)
        copy = driver.advance(places).copies[0]
    assert not places[copy.target].exists()
    places[copy.donor].rmdir()
    with pytest.raises(CheckpointError, match="is missing; the search cannot resume without this checkpoint"):
        TuneDriver(run, out, lambda progress: None, None)
    state = out / "ray" / STATE_NAME
    written = state.read_text()
    for damaged in ("", written[:-9], written.replace("wrn-10-1", "wrn-16-1"), written.replace("member-3", "")):
        state.write_text(damaged)
        with pytest.raises(CheckpointError, match=r"state\.json: is damaged|checkpoint_000000: is missing"):
            TuneDriver(run, out, lambda progress: None, None)


def test_what_a_member_raises_is_what_the_search_raises() -> None:
    import ray

    from variegate.apps.search.tune.trials import explained

    @ray.remote
    def fails(error: Exception) -> None:
        raise error

    def raised(error: Exception) -> BaseException:
        with pytest.raises(ray.exceptions.RayTaskError) as caught:
            ray.get(fails.remote(error))
        return explained(caught.value, Path("out/ray"))

    assert repr(raised(ZeroDivisionError("of a factory"))) == "ZeroDivisionError('of a factory')"
    # What Tune says on a machine that does not reach the folder.
    for words in ("Unable to set up cluster storage with", "it does not exist on storage anymore"):
        error = raised(RuntimeError(words))
        assert isinstance(error, SourceError)
        assert str(error).startswith("out/ray: a member's checkpoint is not to be found on a machine")


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
