"""What a worker process does: hear tasks, run them, say what came of them, and end when nobody wants it any more."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
from multiprocessing import connection, parent_process
from queue import SimpleQueue
from typing import Any

from variegate.engine.messages import WorkerEvent
from variegate.engine.workers.loop import Assignment, WorkerInfo, serve
from variegate.engine.workers.wire import Parts, decode, pack_event, receive_parts, send_parts, unpack_task


def run_worker(sock: socket.socket) -> None:
    """Returns when the parent has closed its side and all that it sent before is done.

    Tasks are read and results written by threads of their own: the next task is here when the last is done, and neither
    side ever waits for the other to read before it reads itself.
    """
    # The parent decides what a Ctrl-C means; it was blocked until here, see ``surroundings``.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    first = receive_parts(sock)
    info, spec = WorkerInfo(*pickle.loads(first[0])), first[1:]
    tasks: SimpleQueue[Assignment | None] = SimpleQueue()
    outbox: SimpleQueue[Parts | None] = SimpleQueue()

    def say(message: WorkerEvent) -> None:
        event, outputs = pack_event(message)
        outbox.put([pickle.dumps(event), *(outputs or [])])

    threading.Thread(target=_hear, args=(sock, info, tasks, say), daemon=True).start()
    speaker = threading.Thread(target=_speak, args=(sock, outbox), daemon=True)
    speaker.start()
    try:
        serve(lambda: decode(spec), info, tasks.get, say)
    finally:
        outbox.put(None)
        speaker.join()


def _hear(sock: socket.socket, info: WorkerInfo, tasks: SimpleQueue[Assignment | None], say: Any) -> None:
    try:
        while True:
            head, *body = receive_parts(sock)
            task, start, stop = pickle.loads(head)
            assignment = unpack_task(info, task, start, stop, body or None)
            if isinstance(assignment, WorkerEvent):
                say(assignment)
            else:
                tasks.put(assignment)
            # Not to be held while the next one is awaited.
            del head, body, assignment
    except (EOFError, OSError):
        pass
    finally:
        tasks.put(None)


def _speak(sock: socket.socket, outbox: SimpleQueue[Parts | None]) -> None:
    try:
        while (parts := outbox.get()) is not None:
            send_parts(sock, parts)
            del parts
    except OSError:
        # Nobody hears this worker any more.
        os._exit(1)


def _end_with_parent() -> None:
    """End at once when the parent has, however it did."""
    parent = parent_process()
    assert parent is not None
    number = os.getppid()
    # The sentinel alone is not enough: a process that the parent forked holds it open.
    while not connection.wait([parent.sentinel], timeout=1.0) and os.getppid() == number:
        pass
    os._exit(1)
