"""A Ray actor per device: the same workers over a cluster. Nothing here supposes that they run on this machine."""

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
from variegate.io.addresses import shown_host, without_secrets
from variegate.jobs import wire
from variegate.jobs.jobs import GRACE, Assignment, JobSpec, Task, WorkerEvent, WorkerInfo, WorkerLost, end_of, serve
from variegate.jobs.wire import PackedEvent, Parts

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
            said = " ".join(without_secrets(str(error), address).split())
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
        self._actor_class = self._ray.remote(concurrency_groups={"tasks": 1, "reports": 1})(_Actor)
        self._actors: dict[int, Any] = {}
        self._polls: dict[Any, WorkerInfo] = {}  # workers by the pending reply of ``next_reports``

    def start(self, device: int, worker: int) -> None:
        name = self._devices[device]
        is_gpu = name.startswith("cuda")
        info = WorkerInfo(device, worker, "cuda:0" if is_gpu else name, self._num_threads)
        of_kind = {"num_gpus": 1, "num_cpus": 0} if is_gpu else {"num_cpus": self._num_threads}
        options = self._needs or of_kind
        actor_class = self._actor_class.options(**options, max_restarts=0)
        self._actors[worker] = actor_class.remote(self._spec, tuple(info), self._shares_arrays)
        self._poll(info)

    def send(self, worker: int, task: Task, payload: Sequence[Any] | None) -> None:
        if (actor := self._actors.get(worker)) is not None:
            parts = None if payload is None else _as_arrays(wire.encode(payload, self._pickler))
            receive_task = actor.receive_task.options(concurrency_group="tasks")
            receive_task.remote(task.number, task.start, task.stop, parts)

    def stop(self, worker: int) -> None:
        self._polls = {reply: info for reply, info in self._polls.items() if info.worker != worker}
        if (actor := self._actors.pop(worker, None)) is not None:
            self._ray.kill(actor, no_restart=True)

    def wait(self, timeout: float) -> list[WorkerEvent]:
        if not self._polls:
            time.sleep(timeout)
            return []
        self._ray.wait(list(self._polls), num_returns=1, timeout=timeout)
        ready, _ = self._ray.wait(list(self._polls), num_returns=len(self._polls), timeout=0)
        return [message for reply in ready for message in self._messages(reply)]

    def close(self, force: bool = False) -> None:
        pending = list(self._polls)
        for worker in list(self._actors):
            self.stop(worker)
        if pending:
            # A pending reply becomes an error once its actor has ended.
            self._ray.wait(pending, num_returns=len(pending), timeout=GRACE)

    def _poll(self, info: WorkerInfo) -> None:
        next_reports = self._actors[info.worker].next_reports.options(concurrency_group="reports")
        self._polls[next_reports.remote()] = info

    def _messages(self, reply: Any) -> list[WorkerEvent]:
        info = self._polls.pop(reply)
        try:
            packed = self._ray.get(reply)
            found = [wire.unpack_event((event, parts and _copied(parts))) for event, parts in packed]
        except self._ray.exceptions.RayError as error:
            found = [WorkerLost(info.device, info.worker, how_it_died(error))]
        if any(isinstance(message, WorkerLost) for message in found):
            self.stop(info.worker)
        else:
            self._poll(info)
        return found


class _Actor:
    """A worker: a thread runs its tasks; two methods, each called by one thread, pass tasks in and reports out."""

    def __init__(self, spec: Parts, info: tuple[int, int, str, int], shares_arrays: bool) -> None:
        import ray

        self._pickler = ray.cloudpickle.CloudPickler
        # Arrays that nobody writes to stay in the object store.
        self._spec = spec if shares_arrays else _copied(spec)
        self._info = WorkerInfo(*info)
        self._tasks: SimpleQueue[Assignment | None] = SimpleQueue()
        self._reports: SimpleQueue[PackedEvent] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()
        threading.Thread(target=_end_with_raylet, daemon=True).start()

    def receive_task(self, task: int, start: int, stop: int, parts: Parts | None) -> None:
        copied = None if parts is None else _copied(parts)
        wire.deliver(self._info, copied, (task, start, stop), self._tasks.put, self._report)

    def next_reports(self) -> list[PackedEvent]:
        """Wait for reports, one at least."""
        reports = [self._reports.get()]
        while not self._reports.empty():
            reports.append(self._reports.get())
        return reports

    def _run(self) -> None:
        try:
            serve(lambda: wire.decode_spec(self._spec), self._info, self._tasks.get, self._report)
        except BaseException as error:
            self._report(WorkerLost(self._info.device, self._info.worker, f"ended by {end_of(error)}"))

    def _report(self, message: WorkerEvent) -> None:
        event, parts = wire.pack_event(message, self._pickler)
        self._reports.put((event, None if parts is None else _as_arrays(parts)))


def _end_with_raylet() -> None:
    """End this actor's process with its raylet: Ray leaves behind the actors of a raylet that was killed."""
    raylet = os.getppid()
    while os.getppid() == raylet:
        time.sleep(1.0)
    os._exit(0)


def _as_arrays(parts: Parts) -> Parts:
    """Arrays instead of memoryviews, which Ray cannot pass on; it keeps large ones apart as well."""
    return [bytes(parts[0]), *(np.frombuffer(part, np.uint8) for part in parts[1:])]


def _copied(parts: Parts) -> Parts:
    """Copy of an array of Ray's, whose memory all processes share and none may write to."""
    copies = []
    for part in parts[1:]:
        copies.append(wire.take_buffer(len(part)))
        memoryview(copies[-1])[:] = part
    return [parts[0], *copies]


def how_it_died(error: BaseException) -> str:
    """Ray's account of an actor's death without its addresses and advice."""
    text = one_line(error)
    text = text[max(text.find("The actor is dead because"), 0) :]
    return text.partition(" Some common causes")[0]
