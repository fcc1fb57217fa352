"""Batches made by workers: those of the local loader to the bit, whoever makes them and whatever happens to them."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import variegate as vg
from tests.loader.cases import CASES, NUMBER, everything, plain
from tests.loader.loading import CROPPED, NORMALIZED, load
from tests.loader.samples import BROKEN, MemorySource
from variegate import transforms as T
from variegate.errors import DecodeError
from variegate.loader.workers.job import BatchJob, BatchTask
from variegate.workers import devices, protocol, wire
from variegate.workers.threads import ThreadPool

SHARED = {"batch_size": 24, "prefetch": 1}
DEVICES = [f"cpu:{number}" for number in range(3)]


class PicklingPool(ThreadPool):
    """Threads that get and give what processes would."""

    def __init__(self, spec: Any, devices: Any, num_threads: int) -> None:
        sent = wire.decode(wire.encode(replace(spec, cache=None)))
        super().__init__(replace(sent, cache=spec.cache), devices, num_threads)

    def send(self, worker: int, assignment: protocol.Assignment) -> None:
        payload = wire.decode(wire.encode(assignment.payload))
        super().send(worker, assignment._replace(payload=payload))

    def wait(self, timeout: float) -> list[protocol.WorkerEvent]:
        return [wire.unpack_event(*wire.pack_event(event)) for event in super().wait(timeout)]


@pytest.fixture
def pickling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "ThreadPool", PicklingPool)


@pytest.mark.usefixtures("pickling")
@pytest.mark.parametrize("name", CASES)
def test_workers_make_the_batches_of_the_local_loader(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where devices have no room for a whole batch."""
    source, transform, options, _ = CASES[name]
    options = SHARED | options
    expected = everything(load(source(), transform, **options))
    assert len(expected) > 2
    assert everything(load(source(), transform, device="auto", devices=DEVICES, **options)) == expected
    sizes: set[int] = set()
    make_rows = BatchJob._make_rows

    def make_with_little_room(job: BatchJob, task: BatchTask, *args: Any) -> Any:
        if len(task) > 5:
            raise MemoryError
        sizes.add(len(task))
        return make_rows(job, task, *args)

    monkeypatch.setattr(BatchJob, "_make_rows", make_with_little_room)
    assert everything(load(source(), transform, device="auto", devices=DEVICES, **options)) == expected
    assert sizes


class EndsItsWorker(MemorySource):
    def read(self, index: int) -> Any:
        if index == 7:
            raise SystemExit(3)
        return super().read(index)


@pytest.mark.usefixtures("pickling")
@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_sample_that_ends_its_workers_is_a_bad_sample(on_error: str) -> None:
    """Its batch is made row by row, until it is known and left out."""
    known = {7: DecodeError("memory: 7.jpg", "ended by SystemExit: 3")}
    expected = everything(load(MemorySource(30, known), on_error=on_error, **SHARED))
    found = load(EndsItsWorker(30), on_error=on_error, device="auto", devices=DEVICES, **SHARED)
    assert everything(found) == expected
    with pytest.raises(DecodeError, match=r"memory: 7\.jpg: ended by SystemExit: 3"):
        list(load(EndsItsWorker(30), device="auto", devices=DEVICES, **SHARED))


@pytest.mark.usefixtures("pickling")
def test_every_worker_has_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are at work at the same time, although fewer batches are prefetched; at the latest once all have started."""
    lock = threading.Lock()
    at_work: set[int] = set()
    are_all_at_work = threading.Event()
    make_rows = BatchJob._make_rows

    def make_together(job: BatchJob, task: BatchTask, *args: Any) -> Any:
        assert len(task) == 10
        with lock:
            at_work.add(id(job))
            if len(at_work) == len(DEVICES):
                are_all_at_work.set()
        are_all_at_work.wait(1.0)
        with lock:
            at_work.discard(id(job))
        return make_rows(job, task, *args)

    monkeypatch.setattr(BatchJob, "_make_rows", make_together)
    loader = load(MemorySource(60), CROPPED, batch_size=10, prefetch=1, device="auto", devices=DEVICES)
    for _ in range(20):
        assert len(list(loader)) == 6
        if are_all_at_work.is_set():
            return
    raise AssertionError("a worker was idle all the time")


@pytest.mark.usefixtures("pickling")
def test_an_epoch_goes_on_from_its_middle_and_is_left_there() -> None:
    local, loader = load(MemorySource(NUMBER)), load(MemorySource(NUMBER), device="auto", devices=DEVICES)
    expected = [plain(list(batch)) for batch in local]
    iterator = iter(loader)
    for step in range(3):
        assert plain(list(next(iterator))) == expected[step]
    again = load(MemorySource(NUMBER), device="auto", devices=DEVICES[:2], prefetch=0)
    again.load_state_dict(loader.state_dict())
    assert [plain(list(batch)) for batch in again] == expected[3:]
    assert plain(list(loader.batch(7, epoch=0))) == expected[7]
    loader.set_epoch(0)  # begun anew while the iteration before is not over
    assert [plain(list(batch)) for batch in loader] == expected
    assert loader.stats().augment.samples == NUMBER


def test_errors_are_those_of_the_local_loader() -> None:
    broken = load(MemorySource(20, BROKEN), shuffle=False, device="auto", devices=DEVICES)
    with pytest.raises(DecodeError, match=r"memory: 5\.jpg: truncated"):
        list(broken)
    refused = load(MemorySource(20), T.Compose([T.RandomCrop(400), T.Resize(8)]), device="auto", devices=DEVICES)
    with pytest.raises(ValueError, match="400") as error:
        list(refused)
    with pytest.raises(ValueError, match="400") as expected:
        list(load(MemorySource(20), T.Compose([T.RandomCrop(400), T.Resize(8)])))
    assert str(error.value) == str(expected.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": "fork"}, "workers: got 'fork'; accepted: 'thread', 'process', 'ray'"),
        ({"device": "cpu", "devices": ["cpu:0"]}, "device: got 'cpu' with devices="),
        ({"devices": ["cpu:0", "cpu:0"]}, "devices: got 'cpu:0' 2 times"),
        ({"devices": ["cpu:0"], "workers": vg.ProcessWorkers(2)}, r"devices: got \['cpu:0'\] with count=2"),
        ({"devices": ["cpu:0"], "cache": "device"}, "cache: got 'device' with workers or devices"),
    ],
)
def test_arguments_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vg.Loader(MemorySource(4), CROPPED, **options)


@pytest.mark.parametrize("count", [0, (3, 2), (1, 2, 3), "2"])
def test_counts_that_are_refused(count: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="count: got"):
        vg.RayWorkers(count=count)


def worker_processes() -> list[int]:
    """Worker processes that this one has started, or whom it has started."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        with suppress(OSError):
            if entry.isdigit():
                parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
                commands[int(entry)] = Path(f"/proc/{entry}/cmdline").read_text()

    def is_ours(process: int) -> bool:
        while process > 1 and process != os.getpid():
            process = parents.get(process, 0)
        return process == os.getpid()

    return [process for process, command in commands.items() if "spawn_main" in command and is_ours(process)]


class KillsItsReader(MemorySource):
    """One sample ends every process that reads it, apart from this one."""

    home = os.getpid()

    def __init__(self, number: int, home: int) -> None:
        super().__init__(number)
        self.home = home

    def read(self, index: int) -> Any:
        if index == 7 and os.getpid() != self.home:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(index)


@pytest.mark.process
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="finds processes in /proc")
def test_processes_make_the_batches_of_the_local_loader() -> None:
    """Whatever happens to them, and to results that are held; they end with their loader."""
    options: dict[str, Any] = {"on_error": "replace", **SHARED}
    local = load(MemorySource(NUMBER, BROKEN), NORMALIZED, **options)
    loader = load(MemorySource(NUMBER, BROKEN), NORMALIZED, workers=vg.ProcessWorkers(2), **options)
    assert everything(loader) == everything(local)

    # They lie in memory that workers use again once nobody holds it.
    held = [batch.images for batch in loader]
    copies = [images.clone() for images in held]
    for batch in loader:
        batch.images.zero_()
    assert all(map(torch.equal, held, copies))

    local.set_epoch(5)
    loader.set_epoch(5)
    steps = iter(loader)
    batches = [next(steps)]
    for process in worker_processes():
        os.kill(process, signal.SIGKILL)
    batches += list(steps)
    loader.set_epoch(5)
    assert everything(loader)[:-1] == everything(local)[:-1]

    workers = worker_processes()
    assert workers
    del loader, steps, batches, batch
    deadline = time.monotonic() + 60
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_sample_that_kills_its_workers_is_named() -> None:
    options: dict[str, Any] = {"workers": vg.ProcessWorkers(2), "shuffle": False, **SHARED}
    with pytest.raises(DecodeError, match=r"memory: 7\.jpg: killed by signal 9"):
        list(load(KillsItsReader(20, os.getpid()), **options))
    loader = load(KillsItsReader(20, os.getpid()), on_error="skip", **options)
    assert [int(each) - 1000 for batch in loader for each in batch.ids] == [n for n in range(20) if n != 7]
    assert "killed by signal 9" in loader.errors[0].reason


def test_iterations_that_are_left_leave_no_thread_waiting() -> None:
    """Such a thread would hold up the end of the interpreter."""
    before = set(threading.enumerate())
    # Left after each of its batches, several times, as it depends on what the threads are doing.
    for number in range(28):
        loader = load(MemorySource(24), CROPPED, batch_size=4, prefetch=3, device="auto", devices=DEVICES[:2])
        iterator = iter(loader)
        for _ in range(number % 7):
            next(iterator, None)
        del iterator, loader
    gc.collect()

    def waiting() -> list[str]:
        names = [thread.name for thread in set(threading.enumerate()) - before]
        return [name for name in names if name.startswith(("variegate-batch", "variegate-plan"))]

    deadline = time.monotonic() + 20
    while waiting() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert waiting() == []
