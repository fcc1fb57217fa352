"""Control of a policy's magnitude while a model trains, by the gap between its losses, or by its confidence.

Magnitudes hold for an epoch, so that an image is a function of (seed, epoch, id, magnitude).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.apps.train.magnitudes import MagnitudeTable, RecordedMagnitudes, same_for_all
from variegate.apps.train.step import entropy_share
from variegate.formats.base import Source, StreamSource
from variegate.loader.options import ConditionsOfIds
from variegate.loader.shuffle import Permutation
from variegate.options.training import TrainOptions
from variegate.policies.uniform import at_given_magnitude, needs_magnitude, refuse_given_magnitude
from variegate.transforms import Transform

Ids = npt.NDArray[np.uint64]
# int32[N] -> the highest of each place that any rank has.
OverRanks = Callable[[npt.NDArray[np.int32]], npt.NDArray[np.int32]]

# Of the validation loss, the part that images which train do not have: above it, overfitting costs more than all that
# the model cannot tell of either.
GAP_TARGET = 0.5
# Of the range, an epoch: from nothing to all of it in 20 epochs. As in StyleGAN2-ADA (arXiv 2006.06676), it does not
# depend on how far the gap is from its target.
GAP_STEP = 0.05
# RandAugment's 9 of 30, where the policy says nothing else.
GAP_START = 0.3
_DIGITS = 6
# Of the names of tensors.
_PREFIX = "adaptation/"


class Adaptation:
    """No magnitudes and no learning: the base of the others.

    In an epoch: ``of_epoch``; ``noting`` (None: no need) with the scores of each batch, then ``trained`` with its ids;
    ``end_step``; ``settle``, then ``end_epoch``. ``tensors`` are complete between two steps that were settled.
    """

    gives = needs_losses = False
    noting: Callable[[torch.Tensor], None] | None = None

    def __init__(self) -> None:
        self._current: ConditionsOfIds = lambda ids: {}
        self._used = [0.0, 0.0]

    def of_epoch(self, epoch: int) -> ConditionsOfIds:
        self._current = self._given(epoch)
        return self._current

    def _given(self, epoch: int) -> ConditionsOfIds:
        return lambda ids: {}

    def trained(self, ids: Ids, keep: npt.NDArray[np.bool_] | None = None) -> None:
        """Take the ids of the scores noted last. ``keep``: bool[N], False where a row is no sample; None for all."""
        if self.gives:
            kept = ids if keep is None else ids[keep]
            self._used[0] += float(self._current(kept)["magnitude"].sum())
            self._used[1] += len(kept)

    def end_step(self) -> list[float]:
        """The sum of the magnitudes that it used, and how many, to be added up over ranks; nothing without any."""
        used, self._used = self._used, [0.0, 0.0]
        return used if self.gives else []

    def told(self, steps: int, sums: list[float]) -> list[dict[str, float]]:
        """Mean magnitudes for the lines of so many steps, from the sums of ``end_step`` over all ranks."""
        if not self.gives:
            return [{}] * steps
        pairs = zip(sums[::2], sums[1::2], strict=True)
        return [{"magnitude": round(total / number, _DIGITS)} if number else {} for total, number in pairs]

    def settle(self, over_ranks: OverRanks = lambda values: values) -> None:
        """Ranks tell each other what they noted; every rank calls it."""

    def end_epoch(self, train: float = math.nan, validation: float = math.nan) -> dict[str, Any]:
        """The losses of images that train and of others, where ``needs_losses`` -> what the epoch's line says."""
        return {}

    def record(self, out: Path, epoch: int) -> None:
        """Write the epoch's magnitudes where its steps do not tell all of them."""

    def tensors(self) -> dict[str, torch.Tensor]:
        return {}

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        pass


class GapAdaptation(Adaptation):
    """One magnitude for all images: an integral controller.

    It moves by ``step`` an epoch, up while 1 - loss of images that train / loss of validation images is above
    ``target``. Both are mean cross-entropies without augmentation, by the model that is scored.
    """

    gives = needs_losses = True

    def __init__(self, magnitude: float = GAP_START, target: float = GAP_TARGET, step: float = GAP_STEP) -> None:
        super().__init__()
        self.magnitude, self._target, self._step = round(magnitude, _DIGITS), target, step

    def _given(self, epoch: int) -> ConditionsOfIds:
        return same_for_all(self.magnitude)

    def end_epoch(self, train: float = math.nan, validation: float = math.nan) -> dict[str, Any]:
        gap = 1 - train / validation if validation > 0 else 0.0
        moved = self.magnitude + (self._step if gap > self._target else -self._step)
        self.magnitude = round(min(1.0, max(0.0, moved)), _DIGITS)
        losses = {"loss_train": train, "loss_validation": validation}
        # JSON has no word for what is no number; the next step's loss says it.
        said = {name: loss if math.isfinite(loss) else None for name, loss in losses.items()}
        return {**said, "next_magnitude": self.magnitude}

    def tensors(self) -> dict[str, torch.Tensor]:
        return {_PREFIX + "magnitude": torch.tensor(self.magnitude, dtype=torch.float64)}

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        self.magnitude = round(tensors[_PREFIX + "magnitude"].item(), _DIGITS)


class EntropyAdaptation(Adaptation):
    """A magnitude for each image by the model's confidence (Yang et al. 2024, EntAugment, arXiv 2409.06290).

    1 - H(p) / log(classes), of the probabilities p in the epoch before, as a byte; 0 before an image has trained.
    """

    gives = True

    def __init__(self, ids: Ids) -> None:
        super().__init__()
        self.table = MagnitudeTable(ids)
        self._next = self.table.codes.copy()
        self._codes: torch.Tensor | None = None
        self._pending: list[tuple[Ids, torch.Tensor, npt.NDArray[np.bool_] | None]] = []
        self.noting = self._note

    def _given(self, epoch: int) -> ConditionsOfIds:
        return self.table.given()

    def _note(self, scores: torch.Tensor) -> None:
        codes = confidence_codes(scores)
        if self._codes is None or self._codes.shape != codes.shape:
            self._codes = codes
        else:
            self._codes.copy_(codes)  # into the same memory: a CUDA graph knows it by its place

    def trained(self, ids: Ids, keep: npt.NDArray[np.bool_] | None = None) -> None:
        super().trained(ids, keep)
        assert self._codes is not None
        # A GPU is waited for when they settle.
        self._pending.append((ids, self._codes.clone(), keep))

    def settle(self, over_ranks: OverRanks = lambda values: values) -> None:
        fresh = np.full(len(self._next), -1, np.int32)
        for ids, codes, keep in self._pending:
            kept = slice(None) if keep is None else keep
            fresh[self.table.rows(ids[kept])] = codes.cpu().numpy()[kept]
        self._pending.clear()
        fresh = over_ranks(fresh)
        self._next = np.where(fresh >= 0, fresh, self._next).astype(np.uint8)

    def end_epoch(self, train: float = math.nan, validation: float = math.nan) -> dict[str, Any]:
        self.table.codes = self._next.copy()
        return {}

    def record(self, out: Path, epoch: int) -> None:
        self.table.write(out, epoch)

    def tensors(self) -> dict[str, torch.Tensor]:
        codes = {"used": self.table.codes, "next": self._next}
        return {_PREFIX + name: torch.from_numpy(one.copy()) for name, one in codes.items()}

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        self.table.codes, self._next = (tensors[_PREFIX + name].numpy().copy() for name in ("used", "next"))


class RecordedAdaptation(Adaptation):
    """The magnitudes of another training, again; nothing is measured."""

    gives = True

    def __init__(self, recorded: RecordedMagnitudes) -> None:
        super().__init__()
        self._recorded = recorded

    def _given(self, epoch: int) -> ConditionsOfIds:
        return self._recorded(epoch)

    def record(self, out: Path, epoch: int) -> None:
        if not self._recorded.is_same_for_all:
            self._recorded.table(epoch).write(out, epoch)


@torch.no_grad()
def confidence_codes(scores: torch.Tensor) -> torch.Tensor:
    """uint8[N]: 1 - H(p) / log(classes) of scores [N, classes], from 0 (all classes alike) to 255 (one class alone)."""
    confidence = 1 - entropy_share(scores)
    return (confidence.clamp(0, 1) * 255).round().nan_to_num(0).to(torch.uint8)


# Images that train and are looked at without augmentation after each epoch, at most.
_MOST_COMPARED = 10_000


def adapted(
    policy: Transform | None, source: Source | StreamSource, validation: Any, options: TrainOptions
) -> tuple[Transform | None, Adaptation, str | None]:
    """The policy, what gives its magnitudes, and the identity of recorded ones. Raises ValueError naming the option."""
    name = "adapt" if options.adapt_from is None else "adapt_from"
    got = getattr(options, name)
    if got == "none":
        refuse_given_magnitude(policy, "policy", "with adapt='gap', adapt='entropy' or adapt_from")
        return policy, Adaptation(), None
    changed, start = (None, None) if policy is None else at_given_magnitude(policy)
    if not needs_magnitude(changed):
        raise ValueError(
            f"{name}: got {got!r} with policy {options.policy_name!r}, which has no magnitude to give; accepted: with "
            "randaugment, or a file that has a RandAugment or an AdaptiveRandAugment in it"
        )
    if not isinstance(source, Source):
        raise ValueError(
            f"{name}: got {got!r} with a stream, whose samples are not known beforehand; accepted: samples by index: "
            "open_source(..., stream=False)"
        )
    ids = source.ids(np.arange(len(source), dtype=np.int64))
    if options.adapt_from is not None:
        recorded = RecordedMagnitudes(options.adapt_from)
        recorded.check(options.epochs, ids)
        return changed, RecordedAdaptation(recorded), recorded.fingerprint(options.epochs)
    if options.adapt == "entropy":
        return changed, EntropyAdaptation(ids), None
    if validation is None:
        raise ValueError("adapt: got 'gap' without validation images; accepted: with validation (--validation SRC2)")
    target = GAP_TARGET if options.adapt_target is None else options.adapt_target
    step = GAP_STEP if options.adapt_step is None else options.adapt_step
    return changed, GapAdaptation(GAP_START if start is None else start, target, step), None


def compared_indices(source: Source, others: Any, seed: int) -> npt.NDArray[np.int64]:
    """Of images that train, the ones whose loss stands beside that of ``others``: as many, drawn by ``seed``."""
    most = len(others) if isinstance(others, Source) else _MOST_COMPARED
    number = min(len(source), most, _MOST_COMPARED)
    return np.sort(Permutation(len(source), seed, 0)(np.arange(number)))
