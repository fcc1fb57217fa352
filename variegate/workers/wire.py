"""Objects as a short pickle and large buffers, one copy out and one in, through sockets and between processes."""

from __future__ import annotations

import copyreg
import io
import pickle
import socket
import struct
import sys
from collections import ChainMap
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import variegate
from variegate.workers.protocol import (
    Assignment,
    FatalError,
    JobSpec,
    TaskDone,
    TaskFailed,
    WorkerEvent,
    error_line,
)

Buffer: TypeAlias = Any  # bytes, or whatever else has them
# The first part is the pickle, the others are its buffers.
Parts: TypeAlias = list[Buffer]

# A buffer smaller than this goes into the pickle: a part of its own would cost more than the copy.
_SMALL_BYTES = 4096
# Of the tensors that an array can stand for; others go as torch pickles them.
_NAMES = ("uint8", "uint16", "int8", "int16", "int32", "int64", "bool", "float16", "bfloat16", "float32", "float64")
_DTYPES = {f"torch.{name}" for name in _NAMES}


def encode(value: Any, pickler: type[pickle.Pickler] = pickle.Pickler) -> Parts:
    """The buffers are not copied: do not change them before they are sent."""
    parts: Parts = [b""]

    def keep_small(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _SMALL_BYTES:
            return True
        parts.append(raw)
        return False

    stream = io.BytesIO()
    encoder = pickler(stream, protocol=5, buffer_callback=keep_small)
    if (torch := sys.modules.get("torch")) is not None:
        known = getattr(encoder, "dispatch_table", copyreg.dispatch_table)
        encoder.dispatch_table = ChainMap({torch.Tensor: _reduce_tensor}, known)
    encoder.dump(value)
    parts[0] = stream.getbuffer()
    return parts


def decode(parts: Sequence[Buffer]) -> Any:
    """The arrays are views of the parts, and writable if the parts are."""
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


def _reduce_tensor(tensor: Any) -> Any:
    """Pickle a CPU tensor as an array, because torch would copy it into the pickle."""
    import torch

    is_dense = tensor.device.type == "cpu" and tensor.layout is torch.strided
    if not is_dense or str(tensor.dtype) not in _DTYPES or tensor.requires_grad or tensor.is_neg():
        return tensor.__reduce_ex__(5)
    # NumPy has no bfloat16, and pickles only contiguous arrays apart.
    tensor = tensor.contiguous()
    is_bfloat16 = tensor.dtype == torch.bfloat16
    return _from_array, ((tensor.view(torch.int16) if is_bfloat16 else tensor).numpy(), is_bfloat16)


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


def pack_event(event: WorkerEvent, pickler: type[pickle.Pickler] = pickle.Pickler) -> tuple[WorkerEvent, Parts]:
    """An event without its outputs, and these, encoded; no parts for other events."""
    if not isinstance(event, TaskDone):
        return event, []
    try:
        return event._replace(outputs=()), encode(event.outputs, pickler)
    except Exception as error:
        return TaskFailed(event.worker, event.task, f"its results cannot be sent: {error_line(error)}"), []


def unpack_event(event: WorkerEvent, parts: Parts) -> WorkerEvent:
    if not isinstance(event, TaskDone):
        return event
    try:
        return event._replace(outputs=decode(parts))
    except Exception as error:
        return TaskFailed(event.worker, event.task, f"its results cannot be read: {error_line(error)}")


def decode_assignment(
    worker: int,
    head: tuple[Any, ...],
    parts: Parts,
    put: Callable[[Assignment], None],
    report: Callable[[WorkerEvent], None],
) -> None:
    """Pass an assignment to ``put``, or report why it cannot be read. ``head`` holds all but the payload."""
    try:
        put(Assignment._make([*head, decode(parts) if parts else None]))
    except Exception as error:
        report(TaskFailed(worker, head[0], f"what belongs to its items cannot be read: {error_line(error)}"))
