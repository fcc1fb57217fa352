"""A Ray actor per device: the same workers over a cluster. Nothing here supposes that they run on this machine."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

import variegate
from variegate.io.addresses import shown_host, without_secrets
from variegate.jobs import wire
from variegate.jobs.jobs import GRACE, Assignment, JobSpec, Task, WorkerEvent, WorkerInfo, WorkerLost, end_of, serve
from variegate.jobs.pooled import IDLE_SECONDS, SpecInTurn, Turns
from variegate.jobs.wire import PackedEvent, Parts

# Of an actor that several pools share: it waits so long for something to say, and so long for a user that does not
# ask, as a training may pause.
_PATIENCE, _GONE_SECONDS = 20.0, 600.0
_MOST_USERS = 128
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

    ``needs``: resources of a worker, as of an actor's options; None for its cores, or one GPU. ``pool``: the name under
    which its actors serve other pools as well, of this process or of others, each in turn.
    """

    def __init__(
        self,
        spec: JobSpec,
        devices: Sequence[str],
        num_threads: int,
        address: str | None = None,
        needs: Mapping[str, float] | None = None,
        pool: str | None = None,
    ) -> None:
        self._ray = connect(address)
        self._pickler = self._ray.cloudpickle.CloudPickler
        self._spec = self._ray.put(_as_arrays(wire.encode_spec(spec, self._pickler)))
        self._shares = bool(getattr(spec, "shares_arrays", False))
        self._devices, self._num_threads, self._needs, self._pool = devices, num_threads, needs, pool
        groups = {"hear": 1, "speak": 1 if pool is None else _MOST_USERS}
        self._actor_class = self._ray.remote(concurrency_groups=groups)(_Actor)
        self._id = uuid.uuid4().hex
        self._actors: dict[int, Any] = {}
        self._polls: dict[Any, WorkerInfo] = {}  # by what a worker will have said next
        self._heard: set[int] = set()

    def start(self, device: int, worker: int) -> None:
        name = self._devices[device]
        is_gpu = name.startswith("cuda")
        info = WorkerInfo(device, worker, "cuda:0" if is_gpu else name, self._num_threads)
        of_kind = {"num_gpus": 1, "num_cpus": 0} if is_gpu else {"num_cpus": self._num_threads}
        options: dict[str, Any] = dict(self._needs or of_kind)
        if self._pool is not None:
            options |= {"name": f"{self._pool} {name} {variegate.__version__}", "namespace": "variegate"}
            # Its death is that of none of its users.
            options |= {"get_if_exists": True, "lifetime": "detached"}
        actor = self._actors[worker] = self._actor_class.options(**options, max_restarts=0).remote(self._pool is None)
        self._poll(info, actor.begin, self._spec, tuple(info), self._shares)

    def send(self, worker: int, task: Task, payload: Sequence[Any] | None) -> None:
        if (actor := self._actors.get(worker)) is not None:
            parts = None if payload is None else _as_arrays(wire.encode(payload, self._pickler))
            user, hear = self._user(worker), actor.hear.options(concurrency_group="hear")
            hear.remote(user, task.number, task.start, task.stop, parts)

    def stop(self, worker: int) -> None:
        self._polls = {said: info for said, info in self._polls.items() if info.worker != worker}
        if (actor := self._actors.pop(worker, None)) is not None:
            self._ray.kill(actor, no_restart=True)

    def wait(self, timeout: float) -> list[WorkerEvent]:
        if not self._polls:
            time.sleep(timeout)
            return []
        self._ray.wait(list(self._polls), num_returns=1, timeout=timeout)
        ready, _ = self._ray.wait(list(self._polls), num_returns=len(self._polls), timeout=0)
        return [message for said in ready for message in self._messages(said)]

    def close(self, force: bool = False) -> None:
        last = list(self._polls)
        for worker in list(self._actors):
            self._leave(worker)
        if last:
            # What an actor was about to say comes as an error once it has ended.
            self._ray.wait(last, num_returns=len(last), timeout=GRACE)

    def _leave(self, worker: int) -> None:
        """End a worker that others do not need: one that may still wait for a machine keeps nobody busy."""
        actor = self._actors.get(worker)
        if actor is not None and self._pool is not None and worker in self._heard:
            actor.end.options(concurrency_group="hear").remote(self._user(worker))
            del self._actors[worker]
        self.stop(worker)

    def _user(self, worker: int) -> str:
        return f"{self._id} {worker}"

    def _poll(self, info: WorkerInfo, ask: Any, *args: Any) -> None:
        said = ask.options(concurrency_group="speak").remote(self._user(info.worker), *args)
        self._polls[said] = info

    def _messages(self, said: Any) -> list[WorkerEvent]:
        info = self._polls.pop(said)
        try:
            packed = self._ray.get(said)
            found = [wire.unpack_event((event, parts and _copied(parts))) for event, parts in packed]
            self._heard.add(info.worker)
        except self._ray.exceptions.RayError as error:
            found = [WorkerLost(info.device, info.worker, how_it_died(error))]
        # Not every user of an actor knows it by the same numbers.
        found = [event._replace(device=info.device, worker=info.worker) for event in found]
        if any(isinstance(message, WorkerLost) for message in found):
            self._leave(info.worker)
        else:
            self._poll(info, self._actors[info.worker].speak)
        return found


class _User:
    """Of an actor: a thread runs its tasks; two methods, each called by one thread, pass them in and results out."""

    def __init__(self, spec: Parts, info: tuple[int, int, str, int], shares: bool, turns: Turns | None) -> None:
        import ray

        self._pickler = ray.cloudpickle.CloudPickler
        self._spec, self._shares, self._info, self._turns = spec, shares, WorkerInfo(*info), turns
        self._tasks: SimpleQueue[Assignment | None] = SimpleQueue()
        self._said: SimpleQueue[PackedEvent] = SimpleQueue()
        self.asked_at = time.monotonic()
        threading.Thread(target=self._run, daemon=True).start()

    def hear(self, task: int, start: int, stop: int, parts: Parts | None) -> None:
        copied = None if parts is None else _copied(parts)
        wire.deliver(self._info, copied, (task, start, stop), self._tasks.put, self._say)

    def speak(self, patience: float | None) -> list[PackedEvent]:
        try:
            said = [self._said.get(timeout=patience)]
        except Empty:
            said = []
        while not self._said.empty():
            said.append(self._said.get())
        self.asked_at = time.monotonic()
        return said

    def end(self) -> None:
        self._tasks.put(None)

    def _run(self) -> None:
        try:
            serve(self._open, self._info, self._tasks.get, self._say)
        except BaseException as error:
            self._say(WorkerLost(self._info.device, self._info.worker, f"ended by {end_of(error)}"))

    def _open(self) -> JobSpec:
        """Arrays that nobody writes to stay in the object store."""
        spec = wire.decode_spec(self._spec if self._shares else _copied(self._spec))
        return spec if self._turns is None else SpecInTurn(self._turns, spec)

    def _say(self, message: WorkerEvent) -> None:
        event, parts = wire.pack_event(message, self._pickler)
        self._said.put((event, None if parts is None else _as_arrays(parts)))


class _Actor:
    """A worker of one pool, or of several that use its name; then it ends itself when all of them are gone."""

    def __init__(self, is_own: bool) -> None:
        self._users: dict[str, _User] = {}
        self._turns = None if is_own else Turns()
        self._patience = None if is_own else _PATIENCE
        threading.Thread(target=self._watch, daemon=True).start()

    def begin(self, user: str, spec: Parts, info: tuple[int, int, str, int], shares: bool) -> list[PackedEvent]:
        """-> what it says first"""
        self._users[user] = _User(spec, info, shares, self._turns)
        return self.speak(user)

    def hear(self, user: str, task: int, start: int, stop: int, parts: Parts | None) -> None:
        self._users[user].hear(task, start, stop, parts)

    def speak(self, user: str) -> list[PackedEvent]:
        """Waits until there is something to say; a shared actor for some time, lest it wait for the dead."""
        return self._users[user].speak(self._patience)

    def end(self, user: str) -> None:
        if (found := self._users.pop(user, None)) is not None:
            found.end()

    def _watch(self) -> None:
        """End a shared actor with its users, and any with its raylet: Ray leaves behind those of a killed one."""
        is_own, raylet, used_at = self._turns is None, os.getppid(), time.monotonic()
        while os.getppid() == raylet and (now := time.monotonic()) < used_at + IDLE_SECONDS:
            for name, user in list(self._users.items()):
                if not is_own and now > user.asked_at + _GONE_SECONDS:
                    self.end(name)
            used_at = now if is_own or self._users else used_at
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
    text = " ".join(str(error).split())
    text = text[max(text.find("The actor is dead because"), 0) :]
    return text.partition(" Some common causes")[0]
