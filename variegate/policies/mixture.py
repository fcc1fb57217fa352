"""An image mixed with chains of operations over it: what AugMix is, torchvision's and timm's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from variegate.ops.arguments import MAX_STEPS, ArgumentError
from variegate.ops.base import set_field
from variegate.policies.table import Policy
from variegate.program import rng
from variegate.program.sampling import Floats, Rows, Sampling

# A chain without a depth of its own has one to so many operations, uniformly.
DEEPEST = 3
# Every chain is an image of its own until they are joined.
WIDEST = 16


class ChainMixture(Policy, abstract=True):
    """``mixture_width`` chains of ``chain_depth`` operations, -1 for one to three; weights by ``alpha``."""

    mixture_width: int
    chain_depth: int
    alpha: float
    _step_slots = 1
    _forks = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.chain_depth == 0:
            raise ArgumentError(self, "chain_depth", 0, f"an integer from 1 to {MAX_STEPS}, or -1 for one to three")
        set_field(self, "num_slots", self._weight_slots + self.mixture_width * self._chain_slots)

    def emit_step(self, sampling: Sampling, rows: Rows, words: npt.NDArray[np.uint32], slot: int) -> None:
        """Append one operation to each of ``rows``, by its own ``words[R, step slots, 4]``."""
        raise NotImplementedError(f"{type(self).__name__} does not define emit_step()")

    @property
    def _weight_slots(self) -> int:
        numbers = 2 + self.mixture_width
        return -(-numbers // 4) if self.alpha == 1.0 else numbers * rng.GAMMA_SLOTS

    @property
    def _chain_slots(self) -> int:
        return 1 + self._deepest * self._step_slots

    @property
    def _deepest(self) -> int:
        return DEEPEST if self.chain_depth < 0 else self.chain_depth

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        if len(rows) == 0:
            return
        sampling = sampling.as_batch()
        original, chains = self._weights(sampling, rows, slot)
        forks = sampling.fork(rows, self.mixture_width)
        self._run_chains(sampling, forks, slot + self._weight_slots)
        sampling.blend(rows, original)
        sampling.blend(forks.ravel(), chains.T.ravel())

    def _weights(self, sampling: Sampling, rows: Rows, slot: int) -> tuple[Floats, Floats]:
        """float64[R] of the images and [R, width] of their chains: Dirichlet weights are normalised gamma numbers."""
        words = sampling.words(rows, slot, self._weight_slots)
        if self.alpha == 1.0:
            # Gamma(1) is the exponential distribution: one number each, and no rejections.
            gamma = -np.log(rng.to_unit(words.reshape(len(rows), -1)[:, : 2 + self.mixture_width]) + 2.0**-33)
        else:
            gamma = rng.to_gamma(words.reshape(len(rows), -1, rng.GAMMA_SLOTS, 4), self.alpha)
        mixed = gamma[:, 1] / gamma[:, :2].sum(axis=1)
        shares = gamma[:, 2:] / gamma[:, 2:].sum(axis=1, keepdims=True)
        return 1.0 - mixed, shares * mixed[:, None]

    def _run_chains(self, sampling: Sampling, forks: npt.NDArray[np.intp], slot: int) -> None:
        """All chains of all images side by side, step by step; a chain's own slots make it differ from the others."""
        first = [slot + chain * self._chain_slots for chain in range(self.mixture_width)]
        depth = np.full(forks.shape, self._deepest)
        if self.chain_depth < 0:
            drawn = [sampling.uniform(row, begin)[:, 0] for row, begin in zip(forks, first, strict=True)]
            depth = 1 + (np.stack(drawn) * DEEPEST).astype(np.intp)
        for step in range(self._deepest):
            own = 1 + step * self._step_slots
            words = np.concatenate(
                [sampling.words(row, begin + own, self._step_slots) for row, begin in zip(forks, first, strict=True)]
            )
            alive = np.flatnonzero(depth.ravel() > step)
            self.emit_step(sampling, forks.ravel()[alive], words[alive], slot)
