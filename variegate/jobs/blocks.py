"""Results of worker processes in memory that both sides map: blocks without a name, of which nothing is left when the
processes end, however they end.

A worker's pool of results takes its memory from blocks. What lies in one is sent as a place in it, and the worker does
not use that memory again before the receiver has let go of it.
"""

from __future__ import annotations

import mmap
import os
import socket
import weakref
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from variegate.arrays import UInt8Array
from variegate.jobs import wire
from variegate.jobs.wire import Buffer, Parts

# Smaller results are sent as they are.
_LEAST_BYTES = 1 << 18
HAS_MEMFD = hasattr(os, "memfd_create") and hasattr(socket, "send_fds")


class BlockPlace(NamedTuple):
    """Bytes of a block. ``size``: of the block, whose descriptor follows the message; 0 where it was sent before."""

    block: int
    size: int
    offset: int
    nbytes: int


class Message(NamedTuple):
    """Precedes the parts of a message that are sent as they are. ``ticket``: to be given back when no array in a place
    is used any more; ``gone``: blocks that will not be used again."""

    ticket: int
    places: list[BlockPlace | None]
    gone: list[int]


class MemoryBlocks:
    """The blocks of a process. Any thread may call any method."""

    def __init__(self) -> None:
        self._starts: list[int] = []  # addresses, ascending
        self._blocks: dict[int, tuple[int, int, int]] = {}  # by address: number, size, descriptor
        self._numbers = count(1)
        self.senders: weakref.WeakSet[SharedBlocks] = weakref.WeakSet()

    def allocate(self, size: int) -> UInt8Array:
        """uint8[size]"""
        if size < _LEAST_BYTES:
            return np.empty(size, np.uint8)
        descriptor = os.memfd_create("variegate")
        os.ftruncate(descriptor, size)
        array = np.frombuffer(mmap.mmap(descriptor, size), np.uint8)
        start = array.ctypes.data
        self._blocks[start] = next(self._numbers), size, descriptor
        self._starts = sorted(self._blocks)
        weakref.finalize(array, self._forget, start)
        return array

    def find(self, view: memoryview) -> tuple[int, int, int, int] | None:
        """(number, size, descriptor) of the block of some bytes, and their place in it; None for none."""
        starts = self._starts
        address = np.frombuffer(view, np.uint8).ctypes.data
        start = starts[max(bisect_right(starts, address) - 1, 0)] if starts else 0
        block = self._blocks.get(start)
        if block is None or not start <= address <= start + block[1] - view.nbytes:
            return None
        return *block, address - start

    def _forget(self, start: int) -> None:
        number, _, descriptor = self._blocks.pop(start)
        self._starts = sorted(self._blocks)
        for sender in list(self.senders):
            sender.gone.append(number)
        os.close(descriptor)


class SharedBlocks:
    """The sender's side of a connection, for one thread; any may call ``release``."""

    def __init__(self, blocks: MemoryBlocks) -> None:
        self._blocks = blocks
        self._sent: set[int] = set()
        self.gone: list[int] = []
        self._held: dict[int, Sequence[Buffer]] = {}
        self._ticket = 0
        blocks.senders.add(self)

    def send(self, sock: socket.socket, head: Callable[[Message], bytes], parts: Parts) -> None:
        """Raises OSError where nobody reads any more."""
        gone = self.gone
        self.gone = []
        self._sent.difference_update(gone)
        self._ticket += 1
        places: list[BlockPlace | None] = []
        descriptors = []
        inline = []
        for part in parts:
            view = memoryview(part)
            found = self._blocks.find(view) if view.nbytes >= _LEAST_BYTES else None
            if found is None:
                places.append(None)
                inline.append(part)
                continue
            number, size, descriptor, offset = found
            is_new = number not in self._sent
            if is_new:
                self._sent.add(number)
                descriptors.append(descriptor)
            places.append(BlockPlace(number, size if is_new else 0, offset, view.nbytes))
        if any(places):
            self._held[self._ticket] = parts
        wire.send_parts(sock, [head(Message(self._ticket, places, gone)), *inline])
        for descriptor in descriptors:
            socket.send_fds(sock, [b"\0"], [descriptor])

    def release(self, ticket: int) -> None:
        self._held.pop(ticket, None)

    def close(self) -> None:
        """Leave to the receiver what it may still read."""
        from variegate.executors.cpu.memory import RESULTS

        RESULTS.give_up(memoryview(part) for parts in list(self._held.values()) for part in parts)
        self._held.clear()


class MappedBlocks:
    """The receiver's side. ``release`` is called with a ticket, by whichever thread lets go of its last array."""

    def __init__(self, release: Callable[[int], None]) -> None:
        self._release = release
        self._maps: dict[int, mmap.mmap] = {}
        self._leases: dict[int, tuple[weakref.ref[Any], ...]] = {}

    def receive(self, sock: socket.socket, message: Message, inline: Parts) -> Parts:
        """All parts of a message. Raises EOFError or OSError where the connection is lost."""
        for number in message.gone:
            self._maps.pop(number, None)
        for place in message.places:
            if place is not None and place.size:
                read, descriptors, _, _ = socket.recv_fds(sock, 1, 1)
                if not read or not descriptors:
                    raise EOFError("the other side has ended")
                self._maps[place.block] = mmap.mmap(descriptors[0], place.size)
                os.close(descriptors[0])
        plain = iter(inline)
        parts = [next(plain) if place is None else self._array(place) for place in message.places]
        arrays = [part for part, place in zip(parts, message.places, strict=True) if place is not None]
        if arrays:
            self._lease(message.ticket, arrays)
        return parts

    def _array(self, place: BlockPlace) -> UInt8Array:
        return np.frombuffer(self._maps[place.block], np.uint8, place.nbytes, place.offset)

    def _lease(self, ticket: int, arrays: Sequence[UInt8Array]) -> None:
        left = len(arrays)

        def end(_: object) -> None:
            nonlocal left
            left -= 1
            if not left:
                self._leases.pop(ticket, None)
                self._release(ticket)

        self._leases[ticket] = tuple(weakref.ref(array, end) for array in arrays)
