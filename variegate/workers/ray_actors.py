"""Ray actors as workers, one per device, perhaps on other machines."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from variegate.errors import one_line
from variegate.io.addresses import shown_host
from variegate.workers import wire
from variegate.workers.protocol import (
    SHUTDOWN_SECONDS,
    Assignment,
    JobSpec,
    WorkerEvent,
    WorkerInfo,
    WorkerLost,
    error_line,
    serve,
)
from variegate.workers.wire import Parts

INSTALL = "pip install 'variegate[ray]'"


def connect(address: str | None = None, wanted: str = "workers='ray'") -> Any:
    """The module ``ray``, connected to a cluster: its own already, the one at ``address``, or a new one that stays.

    Raises ImportError where Ray is not installed, ConnectionError where nobody answers at the address.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError(f"{wanted} needs Ray: {INSTALL}") from error
    if not ray.is_initialized():
        if address is not None:
            _check_address(address)
        is_debugging = logging.getLogger("variegate").isEnabledFor(logging.DEBUG)
        # Read when a cluster is started here; who has made up their mind keeps it.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            level = logging.INFO if is_debugging else logging.ERROR
            ray.init(address=address, include_dashboard=False, log_to_driver=is_debugging, logging_level=level)
        except (ConnectionError, RuntimeError, ValueError) as error:
            if address is None or shown_host(address) == address:
                raise
            # Without the cause: its message may hold the address with a password.
            said = one_line(error, address)
            where = f"got {shown_host(address)!r}, where Ray does not connect"
            raise ConnectionError(f"address: {where} ({said})") from None
    return ray


def _check_address(address: str) -> None:
    """Ray itself would try for minutes."""
    shown = shown_host(address)
    host, _, port = shown.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdigit():
            socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ConnectionError(f"address: got {shown!r}, where no Ray cluster answers ({error})") from None


class RayPool:
    """See ``WorkerPool``. Each GPU worker has a GPU of its own, whatever number the device has here.

    ``needs``: resources of a worker, as of an actor's options; None for its cores, or one GPU.
    """

    def __init__(
        self,
        spec: JobSpec,
        devices: Sequence[str],
        num_threads: int,
        address: str | None = None,
        needs: Mapping[str, float] | None = None,
    ) -> None:
        self._ray = connect(address)
        self._pickler = self._ray.cloudpickle.CloudPickler
        self._spec = self._ray.put(_as_arrays(wire.encode_spec(spec, self._pickler)))
        self._shares_arrays = bool(getattr(spec, "shares_arrays", False))
        self._devices = devices
        self._num_threads = num_threads
        self._needs = needs
        self._actor_class = self._ray.remote(concurrency_groups={"assignments": 1, "events": 1})(_Actor)
        self._actors: dict[int, Any] = {}  # by worker
        self._polls: dict[Any, int] = {}  # workers by the pending reply of ``next_events``

    def start(self, device: int, worker: int) -> None:
        name = self._devices[device]
        is_gpu = name.startswith("cuda")
        info = WorkerInfo(worker, "cuda:0" if is_gpu else name, self._num_threads)
        default_needs = {"num_gpus": 1, "num_cpus": 0} if is_gpu else {"num_cpus": self._num_threads}
        actor_class = self._actor_class.options(**(self._needs or default_needs), max_restarts=0)
        self._actors[worker] = actor_class.remote(self._spec, tuple(info), self._shares_arrays)
        self._poll(worker)

    def send(self, worker: int, assignment: Assignment) -> None:
        if (actor := self._actors.get(worker)) is not None:
            *head, payload = assignment
            parts = [] if payload is None else _as_arrays(wire.encode(payload, self._pickler))
            actor.receive.options(concurrency_group="assignments").remote(head, parts)

    def stop(self, worker: int) -> None:
        self._polls = {reply: polled for reply, polled in self._polls.items() if polled != worker}
        if (actor := self._actors.pop(worker, None)) is not None:
            self._ray.kill(actor, no_restart=True)

    def wait(self, timeout: float) -> list[WorkerEvent]:
        if not self._polls:
            time.sleep(timeout)
            return []
        self._ray.wait(list(self._polls), num_returns=1, timeout=timeout)
        ready, _ = self._ray.wait(list(self._polls), num_returns=len(self._polls), timeout=0)
        return [event for reply in ready for event in self._events_of(reply)]

    def close(self, force: bool = False) -> None:
        pending = list(self._polls)
        for worker in list(self._actors):
            self.stop(worker)
        if pending:
            # A pending reply becomes an error once its actor has ended.
            self._ray.wait(pending, num_returns=len(pending), timeout=SHUTDOWN_SECONDS)

    def _poll(self, worker: int) -> None:
        self._polls[self._actors[worker].next_events.options(concurrency_group="events").remote()] = worker

    def _events_of(self, reply: Any) -> list[WorkerEvent]:
        worker = self._polls.pop(reply)
        try:
            events = [wire.unpack_event(event, _copied(parts)) for event, parts in self._ray.get(reply)]
        except self._ray.exceptions.RayError as error:
            events = [WorkerLost(worker, describe_death(error))]
        if any(isinstance(event, WorkerLost) for event in events):
            self.stop(worker)
        else:
            self._poll(worker)
        return events


class _Actor:
    """A worker: a thread runs its job; one method receives assignments, another returns events."""

    def __init__(self, spec: Parts, info: tuple[int, str, int], shares_arrays: bool) -> None:
        import ray

        self._pickler = ray.cloudpickle.CloudPickler
        # Arrays that nobody writes to stay in the object store.
        self._spec = spec if shares_arrays else _copied(spec)
        self._info = WorkerInfo(*info)
        self._assignments: SimpleQueue[Assignment | None] = SimpleQueue()
        self._events: SimpleQueue[tuple[WorkerEvent, Parts]] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()
        threading.Thread(target=_end_with_raylet, daemon=True).start()

    def receive(self, head: tuple[Any, ...], parts: Parts) -> None:
        wire.decode_assignment(self._info.worker, head, _copied(parts), self._assignments.put, self._report)

    def next_events(self) -> list[tuple[WorkerEvent, Parts]]:
        """Wait for an event."""
        events = [self._events.get()]
        while not self._events.empty():
            events.append(self._events.get())
        return events

    def _run(self) -> None:
        try:
            serve(lambda: wire.decode_spec(self._spec), self._info, self._assignments.get, self._report)
        except BaseException as error:
            self._report(WorkerLost(self._info.worker, f"ended by {error_line(error)}"))

    def _report(self, event: WorkerEvent) -> None:
        event, parts = wire.pack_event(event, self._pickler)
        self._events.put((event, _as_arrays(parts)))


def _end_with_raylet() -> None:
    """End this actor's process with its raylet: Ray leaves behind the actors of a raylet that was killed."""
    raylet = os.getppid()
    while os.getppid() == raylet:
        time.sleep(1.0)
    os._exit(0)


def _as_arrays(parts: Parts) -> Parts:
    """Arrays instead of memoryviews, which Ray cannot pickle; it keeps large arrays in its object store."""
    return [bytes(part) if number == 0 else np.frombuffer(part, np.uint8) for number, part in enumerate(parts)]


def _copied(parts: Parts) -> Parts:
    """Copies of Ray's arrays, whose memory all processes share and none may write to."""
    copies = parts[:1]
    for part in parts[1:]:
        copies.append(wire.take_buffer(len(part)))
        memoryview(copies[-1])[:] = part
    return copies


def describe_death(error: BaseException) -> str:
    """Ray's description of an actor's death without its addresses and advice."""
    text = one_line(error)
    text = text[max(text.find("The actor is dead because"), 0) :]
    return text.partition(" Some common causes")[0]
