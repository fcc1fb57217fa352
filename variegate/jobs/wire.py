"""Objects as a short pickle and large buffers, one copy out and one in, through sockets and between processes."""

from __future__ import annotations

import io
import pickle
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import variegate
from variegate.jobs.jobs import (
    Assignment,
    FatalError,
    JobSpec,
    TaskDone,
    TaskFailed,
    WorkerEvent,
    WorkerInfo,
    end_of,
)

Buffer: TypeAlias = Any  # bytes, or whatever else has them
# What is pickled at once: the first part is the pickle, the others are its buffers.
Parts: TypeAlias = list[Buffer]

# A buffer smaller than this goes into the pickle: a part of its own would cost more than the copy.
_SMALL_BYTES = 4096
# Of the tensors that an array can stand for; others go as torch pickles them.
_NAMES = ("uint8", "int8", "int16", "int32", "int64", "bool", "float16", "bfloat16", "float32", "float64")
_DTYPES = {f"torch.{name}" for name in _NAMES}


def encode(value: Any, pickler: type[pickle.Pickler] = pickle.Pickler) -> Parts:
    """The buffers are not copied: they must stay as they are until they were sent."""
    parts: Parts = [b""]

    def keep_small(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _SMALL_BYTES:
            return True
        parts.append(raw)
        return False

    stream = io.BytesIO()
    make = _with_tensors(pickler)  # type: ignore[arg-type]  # a class is hashable, whatever its instances are
    make(stream, protocol=5, buffer_callback=keep_small).dump(value)
    parts[0] = stream.getbuffer()
    return parts


def decode(parts: Sequence[Buffer]) -> Any:
    """The arrays lie in the parts, and can be written to where these can."""
    return pickle.loads(parts[0], buffers=parts[1:])


def encode_spec(spec: JobSpec, pickler: type[pickle.Pickler] = pickle.Pickler) -> Parts:
    """Work for a process that may have another version."""
    first, *buffers = encode(spec, pickler)
    return [variegate.__version__.encode() + b"\n" + first, *buffers]


def decode_spec(parts: Sequence[Buffer]) -> JobSpec:
    """Raises FatalError where another version encoded it."""
    version, _, first = bytes(parts[0]).partition(b"\n")
    if version.decode() != variegate.__version__:
        got = f"the worker has variegate {variegate.__version__}, and its work comes from {version.decode()}"
        raise FatalError(f"{got}; accepted: the same version on every machine")
    spec: JobSpec = decode([first, *parts[1:]])
    return spec


@cache
def _with_tensors(base: type[pickle.Pickler]) -> type[pickle.Pickler]:
    """``base``, but CPU tensors are pickled as arrays: by themselves they would be copied into the pickle."""

    class Pickler(base):  # type: ignore[valid-type, misc]
        def reducer_override(self, value: Any) -> Any:
            torch = sys.modules.get("torch")
            if torch is not None and type(value) is torch.Tensor and _is_plain(value, torch):
                return _from_array, _as_array(value, torch)
            override = getattr(super(), "reducer_override", None)
            return NotImplemented if override is None else override(value)

    return Pickler


def _is_plain(tensor: Any, torch: Any) -> bool:
    is_dense = tensor.device.type == "cpu" and tensor.layout is torch.strided
    return is_dense and str(tensor.dtype) in _DTYPES and not (tensor.requires_grad or tensor.is_neg())


def _as_array(tensor: Any, torch: Any) -> tuple[Any, bool]:
    # NumPy has no bfloat16, and pickles apart only what lies without gaps.
    tensor = tensor.contiguous()
    is_bfloat16 = tensor.dtype == torch.bfloat16
    return (tensor.view(torch.int16) if is_bfloat16 else tensor).numpy(), is_bfloat16


def _from_array(array: Any, is_bfloat16: bool) -> Any:
    import torch

    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if is_bfloat16 else tensor


def send_parts(sock: socket.socket, parts: Sequence[Buffer]) -> None:
    """Raises OSError where nobody reads any more."""
    sizes = struct.pack(f"<I{len(parts)}Q", len(parts), *(memoryview(part).nbytes for part in parts))
    sock.sendall(b"".join([sizes, parts[0]]))
    for part in parts[1:]:
        sock.sendall(part)


def receive_parts(sock: socket.socket) -> Parts:
    """Raises EOFError where the other side has ended, be it in the middle; OSError where the connection is lost."""
    (count,) = struct.unpack("<I", _receive(sock, 4))
    sizes = struct.unpack(f"<{count}Q", _receive(sock, 8 * count))
    return [_receive(sock, size) for size in sizes]


def _receive(sock: socket.socket, size: int) -> Buffer:
    data = take_buffer(size)
    view = memoryview(data)
    while view:
        read = sock.recv_into(view)
        if not read:
            raise EOFError("the other side has ended")
        view = view[read:]
    return data


def take_buffer(size: int) -> Any:
    """Memory used before, where there is any, as fresh memory costs as much as reading into it; else a bytearray."""
    memory = sys.modules.get("variegate.executors.cpu.memory")
    return bytearray(size) if memory is None or size < _SMALL_BYTES else memory.RESULTS.take(size)


# An event without its outputs, and these, encoded.
PackedEvent: TypeAlias = tuple[WorkerEvent, Parts | None]


def pack_event(event: WorkerEvent, pickler: type[pickle.Pickler] = pickle.Pickler) -> PackedEvent:
    if not isinstance(event, TaskDone):
        return event, None
    try:
        return event._replace(outputs=()), encode(event.outputs, pickler)
    except Exception as error:
        return TaskFailed(*event[:3], f"its results cannot be sent: {end_of(error)}"), None


def unpack_event(packed: PackedEvent) -> WorkerEvent:
    event, parts = packed
    if parts is None or not isinstance(event, TaskDone):
        return event
    try:
        return event._replace(outputs=decode(parts))
    except Exception as error:
        return TaskFailed(*event[:3], f"its results cannot be read: {end_of(error)}")


def deliver(
    info: WorkerInfo,
    parts: Parts | None,
    task: tuple[int, int, int],
    put: Callable[[Assignment], None],
    say: Callable[[WorkerEvent], None],
) -> None:
    """Pass a task (number, start, stop) with its encoded payload on to a worker, or report why it cannot be read."""
    try:
        put(Assignment(*task, None if parts is None else decode(parts)))
    except Exception as error:
        reason = f"what belongs to its items cannot be read: {end_of(error)}"
        say(TaskFailed(info.device, info.worker, task[0], reason))
