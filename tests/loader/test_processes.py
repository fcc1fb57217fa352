"""Loaders and Augmenters in forked children, as pickled copies, and at the end of the interpreter."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import variegate as vg
from tests.children import start_python
from tests.images import photo
from tests.loader.holding import Halved, Held
from tests.loader.loading import CROPPED, NORMALIZED, ids, load, pixels
from tests.loader.samples import MemoryShards, MemorySource, jpeg
from variegate import transforms as T
from variegate.data.objects.dataset import open_dataset
from variegate.threads import Threads

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
_PATIENCE_S = 60


def in_child(work: Callable[[], Any]) -> Any:
    """What ``work`` returns, pickled, or raises in a forked child; fails where the child hangs."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: a fork of a process with threads
        child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            found = True, work()
        except BaseException as error:
            found = False, error
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(found, pipe)
        os._exit(0)
    os.close(writing)
    answer: list[bytes] = []

    def listen() -> None:
        with os.fdopen(reading, "rb") as pipe:
            answer.append(pipe.read())

    listener = threading.Thread(target=listen)
    listener.start()
    listener.join(_PATIENCE_S)
    if listener.is_alive():
        os.kill(child, 9)
    os.waitpid(child, 0)
    listener.join()
    assert answer[0], "the child hung"
    is_result, found = pickle.loads(answer[0])
    if not is_result:
        raise found
    return found


SOURCES = {
    "indexed": lambda: MemorySource(40),
    "shards": lambda: MemoryShards(40),
    "data set": lambda: open_dataset([(photo(40 + i % 3, 48), i % 2) for i in range(40)], lock=True),
    "arrays": lambda: (np.stack([photo(40, 48)] * 40), list(range(40))),
}


def begun(source: str, batches: int | None) -> vg.Loader:
    """A loader that was left after so many batches, or used up."""
    loader = load(SOURCES[source](), prefetch=3)
    iterator = iter(loader) if batches != 0 else iter(())
    for _ in iterator if batches is None else range(batches):
        next(iterator, None)
    return loader


@pytest.mark.process
@needs_fork
def test_a_forked_child_goes_on_to_the_next_epoch() -> None:
    """Unused, left by a break in the middle, or used up: the child's next epoch is the one that the parent's is."""
    loaders = {(source, batches): begun(source, batches) for source in SOURCES for batches in (0, 1, 3, None)}
    found = in_child(lambda: {name: pixels(loader) for name, loader in loaders.items()})
    assert [name for name, loader in loaders.items() if found[name] != pixels(loader)] == []


@pytest.mark.process
@needs_fork
def test_a_child_forked_in_the_middle_of_an_iteration_may_begin_another() -> None:
    loader = load(MemorySource(40))
    iterator = iter(loader)
    next(iterator)

    def both() -> tuple[str, list[int]]:
        with pytest.raises(RuntimeError) as error:
            next(iterator)
        return str(error.value), ids(loader)

    message, found = in_child(both)
    assert message == (
        "this iteration was begun in another process, whose threads a fork does not bring along; begin one here"
    )
    rest = sum(len(batch.ids) for batch in iterator)
    assert rest == 36
    assert found == ids(loader)


@pytest.mark.process
@needs_fork
def test_forks_while_threads_are_at_work_leave_no_lock_behind() -> None:
    """Whatever the parent's threads hold when it forks: pools, results, caches, sources."""
    loader = load(SOURCES["data set"](), NORMALIZED, prefetch=4, cache="host", batch_size=8)
    augmenter = vg.Augmenter(NORMALIZED, num_threads=2)
    images = [photo(60, 80)] * 16
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            list(loader)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for fork in range(8):
            time.sleep(0.01 * (fork % 4))
            shape = in_child(lambda: tuple(augmenter(images, ids=range(16)).shape))
            assert shape == (16, 3, 24, 24)
            assert len(in_child(lambda: ids(loader))) == 40
    finally:
        stop.set()
        worker.join()


@pytest.mark.process
@needs_fork
def test_a_cache_on_disk_is_shared_by_parent_and_child(tmp_path: Path) -> None:
    loader = load(MemorySource(24), cache=tmp_path)
    first = next(iter(loader))
    loader.set_epoch(0)
    found = in_child(lambda: pixels(loader))
    loader.set_epoch(0)
    assert pixels(loader) == found  # the child wrote to files of its own, not into the middle of the parent's
    again = load(MemorySource(24), cache=tmp_path)
    assert pixels(again) == found
    assert first.ids.tolist() == list(found)[:4]


@pytest.mark.process
@needs_fork
def test_an_augmenter_of_the_parent_works_in_a_child() -> None:
    """float16 by torch's cast, whose own threads do not outlive a fork."""
    transform = T.Compose([T.RandAugment(2, 9), T.Normalize(0.5, 0.25)])
    augmenters = [vg.Augmenter(transform, dtype=dtype, num_threads=2) for dtype in ("float32", "float16", "bfloat16")]
    images = np.stack([photo(224, 224)] * 16)

    def augment() -> list[bytes]:
        return [bytes(augmenter(images, ids=range(16)).view(torch.uint8).numpy()) for augmenter in augmenters]

    torch.ones(1 << 22).to(torch.float16)  # with all of torch's threads
    expected = augment()
    assert in_child(augment) == expected
    assert in_child(lambda: in_child(augment)) == expected


@pytest.mark.process
@needs_fork
def test_a_gpu_is_refused_in_a_forked_child_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    augmenter = vg.Augmenter(CROPPED)
    monkeypatch.setattr(augmenter, "device", "cuda:0")
    loader = load(MemorySource(4))
    monkeypatch.setattr(loader.augmenter, "device", "cuda:0")
    calls: list[Callable[[], Any]] = [
        lambda: list(loader),
        lambda: augmenter([photo(40, 48)]),
        lambda: augmenter.decode_and_run([jpeg(1)]),
    ]
    for call in calls:
        with pytest.raises(RuntimeError) as error:
            in_child(call)
        assert str(error.value) == (
            "device: 'cuda:0' belongs to the process that was forked, and a GPU cannot be used across a fork; start "
            "processes by 'spawn' or 'forkserver', or use device='cpu' in them"
        )
    assert "operations:" in in_child(lambda: augmenter.explain(3))


# Of those that import torch anew, seconds each, one shows what two would.
WORKERS = {"fork": 2, "forkserver": 2, "spawn": 1}
FORK, FORKSERVER = pytest.param("fork", marks=needs_fork), pytest.param("forkserver", marks=pytest.mark.slow)


@pytest.mark.process
@pytest.mark.parametrize("method", [FORK, FORKSERVER, "spawn"])
@pytest.mark.parametrize("batches", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_workers_of_a_data_loader_hold_an_augmenter_and_a_loader(method: str, batches: int) -> None:
    """Each worker goes through the epoch that the loader would begin next, whether or not one was left by a break."""
    augmenter = vg.Augmenter(T.Compose([NORMALIZED.transforms[0], Halved(), NORMALIZED.transforms[1]]), seed=4)
    loader = load(MemorySource(10))
    for _, _ in zip(range(batches), loader, strict=False):
        pass
    dataset = Held(augmenter, 6, loader)
    augmented = list(dataset.augmented())  # used before
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        workers = DataLoader(
            dataset,
            batch_size=None,
            num_workers=WORKERS[method],
            multiprocessing_context=method,
            timeout=_PATIENCE_S,
        )
        found = list(workers)
    expected = [*augmented, *((batch.ids.astype(np.int64), batch.images) for batch in loader)]
    assert len(found) == WORKERS[method] * len(expected)
    for ids_of_batch, images in expected:
        same = [other for other_ids, other in found if other_ids.tolist() == ids_of_batch.tolist()]
        assert len(same) == WORKERS[method]
        assert all(torch.equal(other, images) for other in same)


COPIES: list[Callable[[Any], Any]] = [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy]


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_an_augmenter_is_made_of_its_arguments(copied: Callable[[Any], Any]) -> None:
    augmenter = vg.Augmenter(
        NORMALIZED, "auto", seed=7, dtype=torch.bfloat16, layout="NHWC", num_threads=1, geometry="exact"
    )
    augmenter([photo(40, 48)] * 3)  # the running count is at 3 now
    again = copied(augmenter)
    for name in ("transform", "device", "seed", "dtype", "layout", "num_threads", "geometry", "decode"):
        assert getattr(again, name) == getattr(augmenter, name)
    assert torch.equal(again([photo(40, 48)]), augmenter([photo(40, 48)]))


class Named(vg.Loader):
    def __init__(self, number: int) -> None:
        super().__init__(MemorySource(number), CROPPED, batch_size=4, device="cpu", num_threads=1)
        self.name = f"{number} photos"


@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_of_a_derived_loader_has_its_attributes(copied: Callable[[Any], Any]) -> None:
    again = copied(Named(10))
    assert (type(again), again.name, len(ids(again))) == (Named, "10 photos", 10)


def test_what_cannot_be_pickled_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Picklers that take more are asked where they are in use, as they are in a process that ran other tests.
    for name in ("cloudpickle", "ray.cloudpickle", "joblib.externals.cloudpickle"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    class Local(T.CustomOp):
        def lut(self, m: float) -> Any:
            return np.arange(256)

    augmenter = vg.Augmenter(T.Compose([Local()]))
    with pytest.raises(pickle.PicklingError) as error:
        pickle.dumps(augmenter)
    assert str(error.value).startswith("transform: got a Compose that cannot be pickled (")
    assert "Local" in str(error.value)
    assert str(error.value).endswith("; accepted: functions and classes that a module declares")
    assert "\n" not in str(error.value)
    assert copy.deepcopy(augmenter).transform is augmenter.transform
    with pytest.raises(pickle.PicklingError, match="transform: got a Compose that cannot be pickled"):
        pickle.dumps(load(MemorySource(3), T.Compose([Local()])))

    class Locked(list[Any]):
        def __init__(self) -> None:
            super().__init__([(photo(40, 48), 0)] * 3)
            self.lock = threading.Lock()

    message = r"source: got .* that cannot be pickled \(.*\); accepted: what can be, or make the Loader in"
    with pytest.raises(pickle.PicklingError, match=message):
        pickle.dumps(load(open_dataset(Locked())))
    with pytest.raises(pickle.PicklingError, match="sampler: got a function that cannot be pickled"):
        pickle.dumps(load(MemorySource(3), sampler=lambda epoch: [0]))


def test_cloudpickle_takes_what_it_can() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    loader = load(MemorySource(3), sampler=lambda epoch: [2, epoch])
    assert ids(pickle.loads(cloudpickle.dumps(loader))) == [1002, 1000]


def test_threads_work_where_none_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads = Threads(1, "test")
    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    futures = [threads.submit(done.append, number) for number in range(3)]
    assert [future.result() for future in futures] == [None] * 3
    assert done == [0, 1, 2]
    assert isinstance(threads.submit(int, "x").exception(), ValueError)
    monkeypatch.undo()
    assert threads.submit(int, "3").result() == 3  # what was left in the queue is not done again
    assert done == [0, 1, 2]
    threads.shutdown()
    with pytest.raises(RuntimeError):
        threads.submit(int, "3")


PREAMBLE = """
import atexit, threading, time
import variegate as vg
from tests.loader.samples import MemorySource, MemoryShards
from tests.loader.loading import CROPPED, NORMALIZED, ids, load
from tests.images import photo
augmenter = vg.Augmenter(NORMALIZED, num_threads=2)
images = [photo(60, 80)] * 16
"""
_LATE = "used while Python shuts down; use it before that, or in an atexit handler"
# Programs that must end well, in time and without a word on stderr, and what they print.
AUGMENTERS = {
    "augmenter in atexit": """
        augmenter(images)
        atexit.register(lambda: print(tuple(augmenter(images).shape)))
    """,
    "first use in atexit": "atexit.register(lambda: print(tuple(augmenter(images).shape)))",
    "augmenter in a thread that outlives the main one": """
        def work():
            time.sleep(0.5)
            print(tuple(augmenter(images).shape))
        threading.Thread(target=work).start()
    """,
}
LOADERS = {
    "in atexit": "atexit.register(lambda: print(len(ids(loader))))",
    "again in atexit": "list(loader); atexit.register(lambda: print(len(ids(loader))))",
    "goes on in atexit": """
        batches = iter(loader)
        first = next(batches)
        atexit.register(lambda: print(4 + sum(len(batch.ids) for batch in batches)))
    """,
    "in a thread that outlives the main one": """
        def work():
            batches = iter(loader)
            next(batches)
            time.sleep(0.5)
            print(4 + sum(len(batch.ids) for batch in batches))
        threading.Thread(target=work).start()
    """,
    "left open": "batches = iter(loader); next(batches); print(40)",
    "kept longer than modules are": """
        import os
        os.kept = iter(loader)
        next(os.kept)
        print(40)
    """,
    "left by a break": """
        for batch in loader:
            break
        print(40)
    """,
}
TOO_LATE = """
        list(loader)
        class Late:
            def __init__(self, work):
                self.work = work
            def __del__(self):
                try:
                    self.work()
                except RuntimeError as error:
                    print(error)
        augmented, loaded = Late(lambda: augmenter(images)), Late(lambda: list(loader))
"""
DAEMON = """
        def work():
            while True:
                list(loader)
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.5)
        print(40, flush=True)
"""
# Where a stream, which one thread reads, has something of its own to wait for.
OF_STREAMS = ("goes on in atexit", "left open", "left by a break")
# An exit that another one holds in itself.
HELD_BY_OTHERS = (
    "augmenter in atexit",
    "augmenter in a thread that outlives the main one",
    "in atexit",
    "again in atexit",
)


def _programs() -> Iterator[tuple[str, str, str]]:
    """The name of each, what it does, and the lines that it prints, sorted."""
    for name, program in AUGMENTERS.items():
        yield name, textwrap.dedent(program), "(16, 3, 24, 24)"
    for source in ("MemorySource", "MemoryShards"):
        made = f"loader = load({source}(40), prefetch=3)\n"
        for name, program in LOADERS.items():
            if source == "MemorySource" or name in OF_STREAMS:
                yield f"{source} {name}", made + textwrap.dedent(program), "40"
    made = "loader = load(MemorySource(40), prefetch=3)\n"
    yield "too late", made + textwrap.dedent(TOO_LATE), f"Augmenter: {_LATE}\nLoader: {_LATE}"
    yield "a daemon thread", made + textwrap.dedent(DAEMON), "40"


@pytest.mark.process
@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_programs_end_well(is_whole: bool) -> None:
    """The first of them waits while the others are at work."""
    programs = [one for one in _programs() if is_whole or one[0].removeprefix("MemorySource ") not in HELD_BY_OTHERS]
    options: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    children = [start_python(PREAMBLE + program, **options) for _, program, _ in programs]
    wrong: dict[str, Any] = {}
    for (name, _, expected), child in zip(programs, children, strict=True):
        try:
            out, err = child.communicate(timeout=2 * _PATIENCE_S)
        finally:
            child.kill()
        ended = "\n".join(sorted(out.splitlines())), err, child.returncode
        # Python before 3.14 unwinds a daemon thread that is within torch's C++, which ends the process at once.
        aborted = expected, "terminate called without an active exception\n", -signal.SIGABRT
        if ended != (expected, "", 0) and not (name == "a daemon thread" and ended == aborted):
            wrong[name] = ended
    assert wrong == {}
