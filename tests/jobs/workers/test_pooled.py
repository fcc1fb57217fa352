"""Worker processes that several share: the contract, and what sharing brings with it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.children import start_python
from tests.jobs.workers.contract import NAMES, Run, WorkersContract, check_made, made_of, tasks
from tests.jobs.workers.toys import Toy
from variegate.jobs import blocks
from variegate.jobs.drive import FailedItem, FinishedItems
from variegate.jobs.jobs import Result
from variegate.jobs.pooled import PoolFolder, SharedProcessPool, Turns

pytestmark = [
    pytest.mark.process,
    pytest.mark.xdist_group("pooled"),
    pytest.mark.skipif(not blocks.ARE_THERE, reason="memory that processes pass on is Linux's"),
]
Results = list[FinishedItems | FailedItem]


@pytest.fixture(scope="module", autouse=True)
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for pools; workers end by themselves."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp(
            "pools, in a folder whose path is longer than those of sockets may be on any system"
        )
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder


def run_of(work: Any, pool: str = "toys", names: tuple[str, ...] = NAMES[:1], **rules: Any) -> Run:
    return Run(SharedProcessPool(pool, work, names, 1), names, **rules)


class TestPooled(WorkersContract):
    kind = partial(SharedProcessPool, "contract")
    death = "the pool's process has ended"

    def check_nothing_left(self, pid: int) -> None:
        """Nothing of this user: the process waits for others."""
        os.kill(pid, 0)


def test_two_share_a_process_and_are_served_in_turn() -> None:
    first, second = run_of(Toy(slow={"cpu:0": 0.02}))(tasks(20, 1)), run_of(Toy(slow={"cpu:0": 0.02}))(tasks(20, 1))
    found: tuple[Results, Results] = ([next(first)], [next(second)])
    # Nobody takes what the first makes: it has no more than its prefetch done, and waits for nobody.
    found[1].extend(second)
    found[0].extend(first)
    for results in found:
        check_made(results, 20)
    assert len({made.pid for results in found for made in made_of(results)}) == 1


def test_a_killed_process_is_replaced_for_all() -> None:
    runs = [run_of(Toy(slow={"cpu:0": 0.01})) for _ in range(2)]
    streams = [run(tasks(60)) for run in runs]
    found: list[Results] = [[next(stream)] for stream in streams]
    os.kill(made_of(found[0])[0].pid, signal.SIGKILL)
    for results, stream in zip(found, streams, strict=True):
        results.extend(stream)
        check_made(results, 60)
    assert all(run.losses for run in runs)
    assert len({made_of(results)[-1].pid for results in found}) == 1


USER = """
from tests.jobs.workers.contract import check_made, made_of, tasks
from tests.jobs.workers.test_pooled import run_of
from tests.jobs.workers.toys import Toy

run = run_of(Toy(slow={"cpu:0": 0.01}))
results = []
for result in run(tasks(80)):
    results.append(result)
    if len(results) == 1:
        print(made_of(results)[0].pid, flush=True)
        input()
check_made(results, 80)
print({made.pid for made in made_of(results)}, run.losses)
"""


def test_who_started_it_may_be_killed() -> None:
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    owner, other = (start_python(USER, env=dict(os.environ), **options) for _ in range(2))
    pids = [child.stdout.readline() for child in (owner, other) if child.stdout is not None]
    owner.kill()
    said, _ = other.communicate("\n")
    assert pids[0] == pids[1]
    assert said == f"{{{int(pids[0])}}} 0\n"


class Filled:
    """Large arrays of results' memory, each of one value."""

    def open(self, device: str, num_threads: int) -> Filled:
        return self

    def run(self, items: range, payload: Any, beat: Any) -> Result:
        from variegate.executors.cpu.memory import RESULTS

        beat()
        arrays = [RESULTS.take(1 << 20) for _ in items]
        for array, item in zip(arrays, items, strict=True):
            array[:] = payload[item - items.start]
        return Result(arrays, {})


def test_results_outlive_the_run_that_made_them() -> None:
    """The process goes on, and makes others' results in other memory."""

    def made(value: int) -> list[Any]:
        done = run_of(Filled())((item, item + 1, [value]) for item in range(6))
        return [output for each in done for output in each.outputs]  # type: ignore[union-attr]

    held = made(1)
    for value in (2, 3):
        made(value)
    assert [np.unique(array).tolist() for array in held] == [[1]] * 6


def test_a_process_without_users_ends() -> None:
    results = list(run_of(Toy(), "short")(tasks(4)))
    pid = made_of(results)[0].pid
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{pid}").exists()
    assert Path(PoolFolder("short").path).stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_enter_opens_nothing() -> None:
    folder = Path(PoolFolder("hostile").path)
    folder.chmod(0o755)
    with pytest.raises(PermissionError, match=r"pool: .* is not a folder of this user alone; accepted: another name"):
        run_of(Toy(), "hostile")
    folder.rmdir()
    folder.symlink_to(folder.parent)
    with pytest.raises(PermissionError, match="pool: "):
        run_of(Toy(), "hostile")


def test_turns_come_in_order_and_who_waits_hears_of_progress() -> None:
    turns, heard = Turns(), list[int]()
    turns.take(lambda: None)
    order: list[int] = []

    def work(number: int) -> None:
        turns.take(lambda: heard.append(number))
        order.append(number)
        turns.give()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    time.sleep(1.1)
    assert heard == []
    turns.beat()
    time.sleep(0.7)
    assert sorted(heard) == [0, 1, 2]
    turns.give()
    for thread in threads:
        thread.join(5)
    assert order == [0, 1, 2]
