"""Magnitudes of a policy that follow the model's confidence in each image (EntAugment, arXiv 2409.06290).

Magnitudes are fixed for an epoch, so that an image is a function of (seed, epoch, id, magnitude).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from variegate.arrays import BoolArray, Int32Array
from variegate.data.samples import Samples
from variegate.learn.magnitudes import Ids, MagnitudeTable
from variegate.loader.options import ConditionsOfIds
from variegate.options.training import TrainOptions
from variegate.policies.uniform import at_given_magnitude, needs_magnitude, refuse_given_magnitude
from variegate.transforms import Transform

# int32 [N] -> the maximum of each element over all ranks.
OverRanks = Callable[[Int32Array], Int32Array]

_DIGITS = 6
_PREFIX = "adaptation/"


class Adaptation:
    """Base class; gives no magnitudes.

    Order of calls in an epoch: ``of_epoch``; for each batch ``noting`` (if any) with its scores, then ``trained`` with
    its ids; for each step ``end_step``; then ``synchronize`` and ``end_epoch``.
    """

    has_magnitudes = False
    noting: Callable[[torch.Tensor], None] | None = None

    def of_epoch(self, epoch: int) -> ConditionsOfIds:
        return lambda ids: {}

    def trained(self, ids: Ids, keep: BoolArray | None = None) -> None:
        """Take the ids of the scores that were noted last. ``keep``: bool [N], False for padding rows."""

    def end_step(self) -> list[float]:
        """The sum of the step's magnitudes and their number, to be summed over ranks; empty without magnitudes."""
        return []

    def log_fields(self, steps: int, sums: list[float]) -> list[dict[str, float]]:
        """Log fields of ``steps`` steps, from the sums of ``end_step`` over all ranks."""
        return [{}] * steps

    def synchronize(self, over_ranks: OverRanks = lambda values: values) -> None:
        """Exchange recorded magnitudes; every rank calls it."""

    def end_epoch(self) -> None:
        """Use recorded magnitudes from the next epoch on."""

    def record(self, out: Path, epoch: int) -> None:
        """Write the magnitudes of the epoch."""

    def tensors(self) -> dict[str, torch.Tensor]:
        """State for a checkpoint, complete after ``synchronize``."""
        return {}

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        pass


class EntropyAdaptation(Adaptation):
    """A magnitude per image: 1 - H(p) / log(classes), where p is the model's last prediction for it in training; 0
    before the first."""

    has_magnitudes = True

    def __init__(self, ids: Ids) -> None:
        self.table = MagnitudeTable(ids)
        self.noting = self._note
        self._next = self.table.codes.copy()
        self._codes = torch.empty(0)
        self._pending: list[tuple[Ids, torch.Tensor]] = []
        self._current = self.table.given()
        self._used = [0.0, 0.0]

    def of_epoch(self, epoch: int) -> ConditionsOfIds:
        self._current = self.table.given()
        return self._current

    def _note(self, scores: torch.Tensor) -> None:
        self._codes = confidence_codes(scores)

    def trained(self, ids: Ids, keep: BoolArray | None = None) -> None:
        codes = self._codes
        if keep is not None:
            ids = ids[keep]
            codes = codes[torch.from_numpy(keep).to(codes.device)]
        self._used[0] += float(self._current(ids)["magnitude"].sum())
        self._used[1] += len(ids)
        # Read from the device in synchronize(): reading waits for the GPU.
        self._pending.append((ids, codes))

    def end_step(self) -> list[float]:
        used = self._used
        self._used = [0.0, 0.0]
        return used

    def log_fields(self, steps: int, sums: list[float]) -> list[dict[str, float]]:
        pairs = zip(sums[::2], sums[1::2], strict=True)
        return [{"magnitude": round(total / number, _DIGITS)} if number else {} for total, number in pairs]

    def synchronize(self, over_ranks: OverRanks = lambda values: values) -> None:
        fresh = np.full(len(self._next), -1, np.int32)
        for ids, codes in self._pending:
            fresh[self.table.rows(ids)] = codes.cpu().numpy()
        self._pending.clear()
        fresh = over_ranks(fresh)
        self._next = np.where(fresh >= 0, fresh, self._next).astype(np.uint8)

    def end_epoch(self) -> None:
        self.table.codes = self._next.copy()

    def record(self, out: Path, epoch: int) -> None:
        self.table.write(out, epoch)

    def tensors(self) -> dict[str, torch.Tensor]:
        return {
            _PREFIX + "used": torch.from_numpy(self.table.codes.copy()),
            _PREFIX + "next": torch.from_numpy(self._next.copy()),
        }

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        self.table.codes = tensors[_PREFIX + "used"].numpy().copy()
        self._next = tensors[_PREFIX + "next"].numpy().copy()


@torch.no_grad()
def confidence_codes(scores: torch.Tensor) -> torch.Tensor:
    """uint8 [N]: 1 - H(p) / log(classes) of scores [N, classes], from 0 (all classes alike) to 255 (one class)."""
    logarithms = scores.float().log_softmax(1)
    entropy = -(logarithms.exp() * logarithms).sum(1)
    confidence = 1 - entropy / max(math.log(scores.shape[1]), 1e-9)
    return (confidence.clamp(0, 1) * 255).round().nan_to_num(0).to(torch.uint8)


def adapted(policy: Transform | None, source: Samples, options: TrainOptions) -> tuple[Transform | None, Adaptation]:
    """The policy with its magnitudes left open if ``options.adapt`` says so, and what gives them. Raises ValueError."""
    if options.adapt == "none":
        refuse_given_magnitude(policy, "policy", "with adapt='entropy'")
        return policy, Adaptation()
    changed = None if policy is None else at_given_magnitude(policy)
    if not needs_magnitude(changed):
        raise ValueError(
            f"adapt: got {options.adapt!r} with policy {options.policy_name!r}, which has no magnitude to give; "
            "accepted: with randaugment, or a file that has a RandAugment or an AdaptiveRandAugment in it"
        )
    return changed, EntropyAdaptation(source.ids(np.arange(len(source), dtype=np.int64)))
