"""Ray actors as workers, one per device, perhaps on other machines."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

import numpy as np

from variegate.errors import one_line
from variegate.io.addresses import redact_host
from variegate.workers import wire
from variegate.workers.protocol import (
    Assignment,
    JobSpec,
    WorkerEvent,
    WorkerInfo,
    WorkerLost,
    error_line,
    serve,
)
from variegate.workers.threads import LocalPool, Report, start_thread
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
            if address is None or redact_host(address) == address:
                raise
            # Without the cause: its message may hold the address with a password.
            said = one_line(error, address)
            where = f"got {redact_host(address)!r}, where Ray does not connect"
            raise ConnectionError(f"address: {where} ({said})") from None
    return ray


def _check_address(address: str) -> None:
    """Ray itself would try for minutes."""
    shown = redact_host(address)
    host, _, port = shown.removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdigit():
            socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ConnectionError(f"address: got {shown!r}, where no Ray cluster answers ({error})") from None


class RayPool(LocalPool):
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
        ray = connect(address)
        actor_class = ray.remote(concurrency_groups={"assignments": 1, "events": 1}, max_restarts=0)(_Actor)
        encoded = ray.put(_as_arrays(wire.encode_spec(spec, ray.cloudpickle.CloudPickler)))
        shares_arrays = bool(getattr(spec, "shares_arrays", False))

        def start_actor(info: WorkerInfo) -> Any:
            is_gpu = info.device.startswith("cuda")
            default_needs = {"num_gpus": 1, "num_cpus": 0} if is_gpu else {"num_cpus": num_threads}
            sent = info._replace(device="cuda:0") if is_gpu else info
            return actor_class.options(**(needs or default_needs)).remote(encoded, tuple(sent), shares_arrays)

        super().__init__(partial(_RayWorker, ray, start_actor), devices, num_threads)


class _RayWorker:
    """An actor as a ``LocalWorker``. A thread receives its events."""

    is_killable = True

    def __init__(self, ray: Any, start_actor: Callable[[WorkerInfo], Any], info: WorkerInfo, report: Report) -> None:
        self._ray = ray
        self._info = info
        self._report = report
        self._actor = start_actor(info)
        self.thread = start_thread(f"from variegate {info.device} #{info.worker}", self._receive_events)

    def send(self, assignment: Assignment) -> None:
        *head, payload = assignment
        parts = [] if payload is None else _as_arrays(wire.encode(payload, self._ray.cloudpickle.CloudPickler))
        self._actor.receive.options(concurrency_group="assignments").remote(head, parts)

    def finish(self) -> None:
        self.kill()

    def kill(self) -> None:
        self._ray.kill(self._actor, no_restart=True)

    def _receive_events(self) -> None:
        is_lost = False
        try:
            while not is_lost:
                reply = self._actor.next_events.options(concurrency_group="events").remote()
                for event, parts in self._ray.get(reply):
                    is_lost = isinstance(event, WorkerLost)
                    self._report(wire.unpack_event(event, _copied(parts)))
                # Must not stay in memory while the next events are awaited.
                del reply, event, parts
        except self._ray.exceptions.RayError as error:
            self._report(WorkerLost(self._info.worker, describe_death(error)))
        finally:
            self.kill()


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
        start_thread("job", self._run)
        start_thread("end with raylet", _end_with_raylet)

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
