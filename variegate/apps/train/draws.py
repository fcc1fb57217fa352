"""What a training draws of torch's generators: weights, and what layers such as dropout draw, by seeds of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch

from variegate.program import rng

# Beside the domains of samples, orders and searches, so that no two share a stream.
_DOMAIN = 0x54524149

# The CPU's generator is one for the whole process: of several trainings, one at a time draws from it.
_CPU = RLock()


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Weights drawn within follow from ``seed``; those of models for a GPU as well, which are made on the CPU."""
    with _CPU, _lent(torch.default_generator, seed):
        yield


def layer_seed(seed: int, time: int, rank: int = 0) -> int:
    """Of what layers draw in an epoch, or in a step."""
    words = rng.stream_key(seed, time, rank, _DOMAIN)
    return int(words[0]) << 32 | int(words[1])


class LayerDraws:
    """Makes what a model draws while it trains a function of its seed and the epoch.

    Of the CPU's generator, a model that draws nothing is known after its first epoch, and trains beside others then.
    """

    def __init__(self, device: str, seed: int) -> None:
        self._device, self._seed = torch.device(device), seed
        self._are_none = False

    @contextmanager
    def seeded(self, epoch: int) -> Iterator[None]:
        """The model trains for this epoch within."""
        seed = layer_seed(self._seed, epoch)
        if self._device.type == "cuda":
            # A GPU has a generator of its own, and one thread that trains on it.
            with _lent(torch.cuda.default_generators[self._device.index or 0], seed):
                yield
        elif self._are_none:
            yield
        else:
            with _CPU, _lent(torch.default_generator, seed):
                before = torch.default_generator.get_state()
                yield
                self._are_none = torch.equal(before, torch.default_generator.get_state())


@contextmanager
def _lent(generator: torch.Generator, seed: int) -> Iterator[None]:
    state = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(state)
