"""Shuffling what comes one by one: a buffer of bounded size, from which a random one is taken for each that comes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from variegate.data.shuffle import OrderPurpose, random_words

T = TypeVar("T")

# Random numbers drawn at a time.
_BLOCK = 1024


def shuffled(
    stream: Iterable[T],
    size_of: Callable[[T], int],
    *,
    seed: int,
    epoch: int,
    max_items: int,
    max_bytes: int,
) -> Iterator[T]:
    """The stream in another order, which is a function of (seed, epoch), the limits and the sizes.

    The buffer fills up to ``max_items``, or until ``size_of`` its items passes ``max_bytes`` (one item may stand over
    the limit); from there on one drawn from it goes out before the next comes in. An item comes at most
    ``max_items - 1`` places earlier than it stands in the stream; later it may come by any number.
    """
    held: list[T] = []
    held_bytes = 0
    draws = _draws(seed, epoch)

    def take() -> T:
        nonlocal held_bytes
        place = next(draws) * len(held) >> 32
        held[place], held[-1] = held[-1], held[place]
        taken = held.pop()
        held_bytes -= size_of(taken)
        return taken

    for item in stream:
        held.append(item)
        held_bytes += size_of(item)
        while len(held) >= max_items or held_bytes > max_bytes:
            yield take()
    while held:
        yield take()


def _draws(seed: int, epoch: int) -> Iterator[int]:
    first = 0
    while True:
        yield from random_words(first, _BLOCK, seed, epoch, OrderPurpose.BUFFER)[:, 0].tolist()
        first += _BLOCK
