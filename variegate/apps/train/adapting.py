"""Which magnitudes a training adapts, made of its options, its policy and its images."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.apps.train.adaptation import (
    GAP_START,
    GAP_STEP,
    GAP_TARGET,
    Adaptation,
    EntropyAdaptation,
    GapAdaptation,
    RecordedAdaptation,
)
from variegate.apps.train.magnitudes import RecordedMagnitudes
from variegate.formats.base import Source, StreamSource
from variegate.loader.shuffle import Permutation
from variegate.options.training import TrainOptions
from variegate.policies.given import at_given_magnitude, needs_magnitude, refuse_given_magnitude
from variegate.transforms import Transform

# Images that train and are looked at without augmentation after each epoch, at most.
_MOST_COMPARED = 10_000


def adapted(
    policy: Transform | None, source: Source | StreamSource, validation: Any, options: TrainOptions
) -> tuple[Transform | None, Adaptation, str | None]:
    """-> the policy that is given magnitudes, what gives them, and what identifies those of another training.

    Raises ValueError naming the option for a policy without a magnitude, for one that is given none, for a stream, and
    for ``gap`` without other images.
    """
    name = "adapt" if options.adapt_from is None else "adapt_from"
    got = getattr(options, name)
    if got == "none":
        refuse_given_magnitude(policy, "policy", "with adapt='gap', adapt='entropy' or adapt_from")
        return policy, Adaptation(), None
    changed, start = (None, None) if policy is None else at_given_magnitude(policy)
    if not needs_magnitude(changed):
        raise ValueError(
            f"{name}: got {got!r} with policy {options.policy!r}, which has no magnitude to give; accepted: with "
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
