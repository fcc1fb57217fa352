"""Processes as workers: the contract, and what only processes can do or suffer."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from pickle import PicklingError
from typing import Any

import pytest

from tests.children import Child, start_python
from tests.workers.contract import NAMES, Run, WorkersContract, bad_of, check_made, made_of, tasks
from tests.workers.odd_toys import DiesWhileItSpeaks, LeavesAChild, MakesOddThings, OnlyIn, Surroundings
from tests.workers.toys import Give, Toy
from variegate.workers.processes import ProcessPool
from variegate.workers.protocol import EngineError
from variegate.workers.run import FailedItem, FinishedItems, run_tasks
from variegate.workers.scheduler import Scheduler, SchedulerSettings

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]


class TestProcesses(WorkersContract):
    kind = ProcessPool
    death = r"^killed by signal 11 \(SIGSEGV\)$"

    def check_nothing_left(self, pid: int) -> None:
        with pytest.raises(ProcessLookupError):  # reaped: a zombie would still be there
            os.kill(pid, 0)
        assert [process.name for process in multiprocessing.active_children() if "variegate" in process.name] == []
        assert [thread.name for thread in threading.enumerate() if " variegate cpu:" in thread.name] == []


def run_of(work: Any, names: tuple[str, ...] = NAMES[:1], **rules: Any) -> Run:
    return Run(ProcessPool(work, names, 1), names, **rules)


def test_killed_from_outside_it_is_replaced_and_nothing_is_lost() -> None:
    run = run_of(Toy(slow=dict.fromkeys(NAMES, 0.002)), NAMES)
    results: list[FinishedItems | FailedItem] = []

    def until_it_is_missed() -> Iterator[tuple[int, int, list[str]]]:
        for task in tasks(10_000):
            if run.losses:
                return
            yield task

    for result in run(until_it_is_missed()):
        if not results:
            os.kill(made_of([result])[0].pid, signal.SIGKILL)
        results.append(result)
    check_made(results, results[-1].stop if isinstance(results[-1], FinishedItems) else 0)
    assert run.losses == 1


def test_half_a_message_of_a_killed_worker_is_dropped(tmp_path: Path) -> None:
    run = run_of(DiesWhileItSpeaks(str(tmp_path)), max_failures=2)
    results = list(run((item, item + 1, None) for item in range(6)))
    assert [result.outputs for result in results if isinstance(result, FinishedItems)] == [[bytes(100_000)]] * 6
    assert run.losses == 1


def test_a_dead_worker_is_noticed_though_its_child_holds_the_connection(tmp_path: Path) -> None:
    try:
        results = list(run_of(LeavesAChild(str(tmp_path)), max_failures=1)([(0, 1, None)]))
    finally:
        (tmp_path / "over").touch()
    assert bad_of(results) == {0: "killed by signal 9 (SIGKILL)"}


def test_what_does_not_survive_the_way_fails_its_task_alone() -> None:
    run = run_of(MakesOddThings(), max_failures=1)
    odd = {3: [OnlyIn(os.getpid())]}
    results = list(run((item, item + 1, odd.get(item)) for item in range(6)))
    assert [result.start for result in results if isinstance(result, FinishedItems)] == [0, 4, 5]
    reasons = bad_of(results)
    assert reasons[1].startswith("its results cannot be sent: ")
    assert reasons[2] == "its results cannot be read: TypeError: not here"
    assert reasons[3] == "what belongs to its items cannot be read: TypeError: not here"
    assert run.losses == 0


def test_a_work_or_payload_that_cannot_be_pickled_is_the_callers_error() -> None:
    with pytest.raises((AttributeError, TypeError, PicklingError), match="pickle"):
        ProcessPool(lambda: None, NAMES, 1)  # type: ignore[arg-type]
    with pytest.raises((AttributeError, TypeError, PicklingError), match="pickle"):
        list(run_of(Give())([(0, 1, [lambda: None])]))


def test_a_work_that_cannot_be_unpickled_gives_its_reason() -> None:
    with pytest.raises(EngineError, match=r"TypeError: not here"):
        list(run_of(OnlyIn(os.getpid()), max_failed_starts=1)([(0, 1, None)]))


def test_libraries_find_the_number_of_threads_before_they_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    (done,) = run_tasks(
        ProcessPool(Surroundings(), NAMES[:1], 3), Scheduler(NAMES[:1], SchedulerSettings()), [(0, 1, None)]
    )
    assert isinstance(done, FinishedItems)
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    assert done.outputs == [done.outputs[0] | dict.fromkeys(names, "3")]
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_an_exit_code_is_named() -> None:
    (bad,) = run_of(Toy(crash="exit", items={0: "crash"}), max_failures=1)([(0, 1, None)])
    assert bad == FailedItem(0, "ended with exit code 3")


# Whole programs, as users write them.

PROGRAM = """
from tests.workers.toys import Toy

def main(toy):
    from variegate.workers.processes import ProcessPool
    from variegate.workers.run import run_tasks
    from variegate.workers.scheduler import Scheduler, SchedulerSettings

    names = ("cpu:0", "cpu:1")
    feed = ((start, start + 4, None) for start in range(0, 40, 4))
    for done in run_tasks(ProcessPool(toy, names, 1), Scheduler(names, SchedulerSettings()), feed):
        print(*(made.item for made in done.outputs), flush=True)
"""
GUARDED = PROGRAM + "\nif __name__ == '__main__':\n    main({toy})\n"
ALL_ITEMS = "".join(f"{i} {i + 1} {i + 2} {i + 3}\n" for i in range(0, 40, 4))


def start(script: Path, **options: Any) -> Child:
    """As ``python script``: its workers import it too."""
    code = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
    return start_python(code, script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_a_program_from_standard_input_runs() -> None:
    program = PROGRAM + "\nmain(Toy())\n"
    surroundings = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-"], input=program, capture_output=True, text=True, cwd=ROOT, env=surroundings, check=False
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == (ALL_ITEMS, "", 0)


def test_a_script_may_declare_its_work_itself(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM + "\nclass Own(Toy): pass\n\nif __name__ == '__main__':\n    main(Own())\n")
    process = start(script)
    out, err = process.communicate()
    assert (out, err, process.returncode) == (ALL_ITEMS, "", 0)


def test_a_script_that_starts_workers_when_it_is_imported_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM + "\nmain(Toy())\n")
    process = start(script)
    out, err = process.communicate()
    assert out == ""
    assert "FatalError: the main script starts worker processes as soon as it is imported" in err
    assert "if __name__ == '__main__':" in err
    assert err.count("Traceback") == 1


def test_no_worker_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(GUARDED.format(toy=f"Toy({str(tmp_path)!r}, items={{9: 'hang', 13: 'hang'}})"))
    process = start(script)
    assert process.stdout is not None
    assert process.stdout.readline() == "0 1 2 3\n"
    process.kill()
    # They have the same standard output, so it ends when the last of them does.
    process.communicate()
    assert not (tmp_path / "over").exists()


def test_ctrl_c_is_the_parents_to_answer(tmp_path: Path) -> None:
    """A terminal sends it to all processes; the workers say nothing of it, and are gone when the parent is."""
    script = tmp_path / "script.py"
    script.write_text(GUARDED.format(toy=f"Toy({str(tmp_path)!r}, items={{9: 'hang', 13: 'hang'}})"))
    process = start(script, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "0 1 2 3\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == -signal.SIGINT
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")
