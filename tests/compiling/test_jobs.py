"""Who of several processes compiles what."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any

import pytest

from variegate.compiling.team import Ask, Do, Done, Jobs, KernelJob, Ready, Run


def job(key: str, weight: int = 1) -> KernelJob:
    return KernelJob(key, key.encode(), weight)


def test_a_free_process_runs_the_next_task_and_another_the_one_after() -> None:
    jobs = Jobs(["first", "second"])
    assert jobs.hear(0, Ask([], True)) == [(0, Run("first"))]
    assert jobs.hear(1, Ask([], True)) == [(1, Run("second"))]
    assert jobs.hear(2, Ask([], True)) == []
    assert jobs.hear(0, Done("first")) == []
    assert not jobs.are_done
    assert jobs.hear(1, Done("second")) == [(2, Ready())]
    assert jobs.are_done


def test_nothing_is_compiled_twice() -> None:
    jobs = Jobs([])
    assert jobs.hear(0, Ask([job("a")], True)) == [(0, Do(job("a")))]
    assert jobs.hear(1, Ask([job("a")], True)) == []
    assert jobs.hear(0, Done("a")) == [(1, Ready())]
    assert jobs.hear(2, Ask([job("a")], True)) == [(2, Ready())]
    assert jobs.num_done == 1


def test_callees_go_to_whoever_is_free_the_heaviest_first() -> None:
    jobs = Jobs(["all"])
    jobs.hear(0, Ask([], True))
    jobs.hear(0, Ask([job("caller", 9)], True))
    callees = [job("a", 1), job("b", 5), job("c", 3)]
    assert jobs.hear(0, Ask(callees, False)) == [(0, Do(job("b", 5)))]
    # Before what it asks for itself: somebody waits for them.
    assert jobs.hear(1, Ask([job("other", 20)], True)) == [(1, Do(job("c", 3)))]
    jobs.hear(1, Done("c"))
    assert jobs.hear(1, Ask([job("other", 20)], True)) == [(1, Do(job("a", 1)))]
    jobs.hear(0, Done("b"))
    assert jobs.hear(0, Ask(callees, False)) == []
    assert jobs.hear(1, Done("a")) == [(0, Ready())]


def test_in_the_middle_of_a_kernel_only_its_callees_are_compiled() -> None:
    """Anything else could need, by way of others, the kernel itself."""
    jobs = Jobs([])
    jobs.hear(0, Ask([job("a")], True))
    jobs.hear(1, Ask([job("b")], True))
    assert jobs.hear(0, Ask([job("b")], False)) == []
    jobs.hear(1, Ask([job("c"), job("d")], False))
    assert jobs.hear(1, Done("c")) == []  # d is free, and not for the first
    assert [answer for _, answer in jobs.hear(1, Ask([job("c"), job("d")], False))] == [Do(job("d"))]


class Processes:
    """Some that compile kernels, each of which calls some of the later ones, as ``Helper`` does: coroutines, whose
    turns come in random order."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self.rng, self.compiled = rng, list[str]()
        self.calls = {n: rng.sample(range(n + 1, 30), min(rng.randrange(5), 29 - n)) for n in range(30)}
        self.jobs = Jobs(["task 0", "task 1"])
        self.live = dict(enumerate(self._serve() for _ in range(number)))
        self.answers: list[tuple[int, Any]] = []

    def run(self) -> None:
        for process in list(self.live):
            self._go_on(process, None)
        while self.answers:
            self._go_on(*self.answers.pop(self.rng.randrange(len(self.answers))))

    def _go_on(self, process: int, answer: Any) -> None:
        try:
            said = self.live[process].send(answer)
            while isinstance(said, Done):
                self.answers += self.jobs.hear(process, said)
                said = next(self.live[process])
            self.answers += self.jobs.hear(process, said)
        except StopIteration:
            del self.live[process]

    def _serve(self) -> Generator[Any, Any, None]:
        while not isinstance(answer := (yield Ask([], True)), Ready):
            if isinstance(answer, Run):
                yield from self._bring([job(answer.task.removeprefix("task "))], True)
                yield Done(answer.task)
            else:
                yield from self._do(answer.job)

    def _bring(self, wanted: list[KernelJob], has_begun_none: bool) -> Generator[Any, Any, None]:
        while isinstance(answer := (yield Ask(wanted, has_begun_none)), Do):
            yield from self._do(answer.job)

    def _do(self, what: KernelJob) -> Generator[Any, Any, None]:
        callees = [job(str(n), self.rng.randrange(9)) for n in self.calls[int(what.key)]]
        for some in (callees[:1], callees[1:]):
            if some:
                yield from self._bring(some, False)
        self.compiled.append(what.key)
        yield Done(what.key)


@pytest.mark.parametrize("number", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(20))
def test_all_is_compiled_once_and_nobody_waits_forever(number: int, seed: int) -> None:
    processes = Processes(number, random.Random(seed))
    processes.run()
    assert processes.live == {}
    assert processes.jobs.are_done
    assert len(processes.compiled) == len(set(processes.compiled)) == processes.jobs.num_done
    assert {"0", "1"} <= set(processes.compiled)
