"""Threads and locks in a process that may be forked, or at its end; ``at_fork`` gives owners new ones in a child."""

from __future__ import annotations

import os
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class HasForked(Protocol):
    def after_fork(self) -> None:
        """Reset in a forked child: new locks and no threads. Nobody else is running, and nothing may be waited for."""
        ...


_known: weakref.WeakSet[HasForked] = weakref.WeakSet()
_is_forked = False


def at_fork(owner: HasForked) -> None:
    """Have ``owner.after_fork()`` called in forked children, for as long as somebody else keeps the owner."""
    _known.add(owner)


def _in_child() -> None:
    global _is_forked
    _is_forked = True
    for owner in list(_known):
        owner.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


if TYPE_CHECKING:
    from functools import cached_property

    computed_once = cached_property
else:

    class computed_once:
        """``functools.cached_property`` without its lock, which Python 3.10 and 3.11 have one of for each class: taken
        by another thread at a fork, it stays taken in the child. Two threads may compute a value twice instead."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._compute(instance)
            return value


def default_threads() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_running(what: str) -> None:
    """Raises RuntimeError while the interpreter is torn down, when modules that work needs are gone."""
    if sys.is_finalizing():
        raise RuntimeError(f"{what}: used while Python shuts down; use it before that, or in an atexit handler")


class Threads(Executor):
    """A ``ThreadPoolExecutor`` of ``number`` threads that also works in a forked child, with threads of its own, and
    where no thread can be started: at the end of the interpreter, or at a limit of the machine. The work is then done
    by whoever submits it.

    Work runs in the context (``contextvars``) of its submitter. Without this, it would run in an empty context, and in
    free-threaded Python in that of the thread that happened to start the worker thread.
    """

    def __init__(self, number: int, name: str) -> None:
        self._number = number
        self._name = name
        self._is_closed = False
        self._last: weakref.ref[Future[Any]] | None = None  # weak: its result is the caller's alone
        self._pool = ThreadPoolExecutor(number, name)
        at_fork(self)

    def after_fork(self) -> None:
        self._pool = ThreadPoolExecutor(self._number, self._name)
        self._last = None

    def submit(self, function: Callable[..., T], /, *args: Any, **options: Any) -> Future[T]:
        """Raises RuntimeError after ``shutdown``."""
        work = _Once(partial(copy_context().run, function, *args, **options))
        try:
            # A new thread keeps the context that it is started in for as long as it lives.
            future: Future[T] = Context().run(self._pool.submit, work)
        except RuntimeError:
            if self._is_closed:
                raise
            last = None if self._last is None else self._last()
            if self._number == 1 and last is not None:
                wait([last])  # one thread keeps its work in order
            return work.done_here()
        self._last = weakref.ref(future)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._is_closed = True
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


class Lookahead(Generic[T]):
    """Work begun ahead of its use, taken in that order; every ``next`` of ``begin_each`` begins one more piece."""

    def __init__(self, begin_each: Iterator[T]) -> None:
        self._begin_each = begin_each
        self._begun: deque[T] = deque()

    def __len__(self) -> int:
        """Pieces that are begun and not taken."""
        return len(self._begun)

    def begin(self, number: int) -> None:
        """Have ``number`` pieces begun, or as many as there are."""
        while len(self._begun) < number:
            try:
                self._begun.append(next(self._begin_each))
            except StopIteration:
                return

    def take(self) -> T | None:
        """The piece begun first, begun now if none is; None at the end."""
        self.begin(1)
        return self._begun.popleft() if self._begun else None

    def close(self) -> list[T]:
        """Start no more tasks; return the started results that were never consumed."""
        self._begin_each, begun = iter(()), list(self._begun)
        self._begun.clear()
        return begun


def in_order(pool: Executor, tasks: Iterable[Callable[[], T]], ahead: int) -> Iterator[T]:
    """Yield results in the order of the tasks; up to ``ahead`` tasks start before their results are needed. When the
    iterator is closed, tasks that wait are cancelled."""
    begun: deque[Future[T]] = deque()
    try:
        for task in tasks:
            begun.append(pool.submit(task))
            if len(begun) > ahead:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        for future in begun:
            future.cancel()


def by_openmp(work: Callable[[], T]) -> T:
    """Run ``work``, which torch may split among OpenMP threads. In a forked child the forking thread would wait forever
    for its parent's OpenMP threads; another thread starts new threads."""
    return Threads(1, "variegate-openmp").submit(work).result() if _is_forked else work()


class _Once:
    """Work that is done once, although an executor without a free thread has it in its queue too."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = [work]

    def __call__(self) -> Any:
        try:
            work = self._work.pop()
        except IndexError:
            return None
        return work()

    def done_here(self) -> Future[Any]:
        """The result, for a thread that could not hand the work over."""
        future: Future[Any] = Future()
        try:
            future.set_result(self._work.pop()())
        except BaseException as error:
            future.set_exception(error)
        return future


def wait_briefly() -> None:
    """Call before torch is loaded: waiting threads of GNU OpenMP then sleep soon and free their core for the loader."""
    if not any(name in os.environ for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")):  # either is the user's choice
        # Some 100 microseconds: more than threads wait for each other that all have a core.
        os.environ["GOMP_SPINCOUNT"] = "10000"
