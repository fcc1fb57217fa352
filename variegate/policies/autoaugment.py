"""AutoAugment (Cubuk et al. 2019, arXiv 1805.09501): published policies, or one's own."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from variegate.checks import did_you_mean, integer, number, one_of
from variegate.ops.arguments import MAX_ENTRIES, MAX_STEPS, ArgumentError, Fill
from variegate.ops.base import set_field
from variegate.policies.augmentation import Augmentation, entry_of
from variegate.policies.spaces import DATA, Deviation, Space, noisy, space_of
from variegate.policies.table import AnyInterpolation, Entry, Index, OperationTable, Policy
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import floor
from variegate.program.sampling import Floats
from variegate.threads import computed_once

Step = tuple[str | Augmentation, float, int | None]
SubPolicy = tuple[Step, ...]

PUBLISHED = ("imagenet", "cifar10", "svhn", "v0")
_TIMM_SPACES = ("timm", "timm-increasing", "timm-original", "timm-research")
_SPACES = ("torchvision", "tf", *_TIMM_SPACES, "dali", "dali-relative", "pba", "pba-relative")


@functools.cache
def published_policy(name: str) -> tuple[SubPolicy, ...]:
    """The sub-policies of a published policy, repeated ones included: ((operation, probability, bin or None), ...)."""
    described = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return tuple(tuple((op, p, level) for op, p, level in sub_policy) for sub_policy in described["policy"])


@dataclass(frozen=True)
class AutoAugment(Policy):
    """Apply one sub-policy, drawn uniformly: its operations in order, each with its own probability.

    Args:
        policy: "imagenet", "cifar10" or "svhn" (the 25 rows as in torchvision, including repetitions), or "v0" (the
            TPU-EfficientNet policy, not in any paper). Or a list of sub-policies ``[[operation, probability,
            magnitude], ...]``: a name of the space (or an Augmentation), a probability 0..1 and a bin, None for
            operations without magnitude.
        interpolation: also "random", as in timm: bilinear or bicubic, drawn for every operation.
        fill: None is the space's own (torchvision 0; tf, timm and dali 128).
        space: meaning of bins, which differs between libraries for the same policy: "torchvision" (10 bins; the default
            except for v0), "tf" (11 bins, level / 10; v0's default), "timm", "timm-increasing", "timm-original",
            "timm-research", "dali" (translate 250 pixels), "dali-relative" (translate by the size of the image) or
            "pba".
        magnitude_std: standard deviation of Gaussian noise on every bin, as timm's ``-mstd0.5``; infinity draws
            uniformly from 0 to the bin.

    Raises ArgumentError with the place in the policy. Paper: arXiv:1805.09501.
    """

    policy: str | Sequence[Sequence[Sequence[Any]]] = "imagenet"
    interpolation: AnyInterpolation = "nearest"
    fill: Fill | None = None
    space: str | None = None
    magnitude_std: Deviation = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        # torchvision's AutoAugmentPolicy has its name as ``value``.
        policy = getattr(self.policy, "value", self.policy)
        if isinstance(policy, str):
            if policy not in PUBLISHED:
                names = "one of " + ", ".join(map(repr, PUBLISHED))
                accepted = f"{names}, or a list of sub-policies{did_you_mean(policy, PUBLISHED)}"
                raise ArgumentError(self, "policy", policy, accepted)
        elif isinstance(policy, (list, tuple)) and 0 < len(policy) <= MAX_ENTRIES:
            policy = tuple(tuple(sub) if isinstance(sub, (list, tuple)) else sub for sub in policy)
            policy = tuple(self._checked(i, sub) for i, sub in enumerate(policy))
        else:
            raise ArgumentError(self, "policy", policy, f"a name, or a list of 1 to {MAX_ENTRIES:,} sub-policies")
        set_field(self, "policy", policy)
        if self.space is None:
            set_field(self, "space", "tf" if policy == "v0" else "torchvision")
        one_of("space", self.space, _SPACES, error=partial(ArgumentError, self))
        set_field(self, "num_slots", 1 + self._built[1].shape[1] * self._step_slots)

    def _checked(self, i: int, sub_policy: Any) -> SubPolicy:
        """A user's sub-policy with its steps' shapes and probabilities checked."""
        accepted = "[operation, probability 0..1, bin or None]"
        if not isinstance(sub_policy, tuple) or not 0 < len(sub_policy) <= MAX_STEPS:
            raise ArgumentError(self, f"policy[{i}]", sub_policy, f"a list of 1 to {MAX_STEPS} of {accepted}")
        for k, step in enumerate(sub_policy):
            if not isinstance(step, (list, tuple)) or len(step) != 3:
                raise ArgumentError(self, f"policy[{i}][{k}]", step, accepted)
        error, chance = partial(ArgumentError, self), "a probability from 0 to 1"
        return tuple(
            (op, number(f"policy[{i}][{k}][1]", p, 0, 1, accepted=chance, error=error), level)
            for k, (op, p, level) in enumerate(sub_policy)
        )

    @computed_once
    def _space(self) -> Space:
        return space_of(str(self.space), "autoaugment")

    @computed_once
    def _sub_policies(self) -> tuple[SubPolicy, ...]:
        return published_policy(self.policy) if isinstance(self.policy, str) else self.policy  # type: ignore[return-value]

    @computed_once
    def _built(self) -> tuple[OperationTable, Index, Floats, Floats]:
        """The table of all steps; per [sub-policy, step] its entry, its probability, and [..., 2] signed arguments."""
        shape = (len(self._sub_policies), max(map(len, self._sub_policies)))
        index, probability, parameter = np.zeros(shape, np.intp), np.zeros(shape), np.zeros((*shape, 2))
        entries: list[Entry] = []
        for i, sub_policy in enumerate(self._sub_policies):
            for k, (operation, p, level) in enumerate(sub_policy):
                where = f"policy[{i}][{k}]"
                entry = entry_of(self, f"{where}[0]", operation, self._space)
                if level is not None:
                    last = self._space.bins - 1
                    accepted = f"a bin from 0 to {last} of the space {self.space!r}, or None"
                    integer(f"{where}[2]", level, 0, last, accepted=accepted, error=partial(ArgumentError, self))
                index[i, k], probability[i, k] = len(entries), p
                parameter[i, k] = [entry.rule.argument(float(level or 0), negative) for negative in (False, True)]
                entries.append(entry)
        return self._table_of(entries, self._space.fill), index, probability, parameter

    @property
    def _table(self) -> OperationTable:
        return self._built[0]

    @property
    def _step_slots(self) -> int:
        # One for the chance, the sign and the interpolation, and one for noise where there is some.
        return 1 + (self.magnitude_std > 0) + self._table.num_slots

    def draw(self, image: DrawContext, slot: int) -> None:
        table, index, probability, parameter = self._built
        chosen = floor(image.uniform(slot) * len(index))
        for k in range(index.shape[1]):
            step = slot + 1 + k * self._step_slots
            fires = image.where(image.uniform(step) < image.lookup(probability[:, k], chosen))
            if not fires:
                continue
            negative = floor(fires.uniform(step, 1) * 2)
            entry = image.lookup(index[:, k], chosen)
            argument = image.lookup(parameter[:, k], 2 * chosen + negative)
            interpolation = self._drawn(fires.uniform(step, 2))
            if self.magnitude_std > 0:
                step += 1
                level = fires.lookup(self._levels, entry)
                level = noisy(fires, level, self.magnitude_std, step, float(self._space.full))
                argument = table.argument(fires, entry, level, negative)
            table.add(fires, entry, argument, step + 1, interpolation)

    @computed_once
    def _levels(self) -> Floats:
        """float64[entries of the table]: the bin of every step."""
        return np.array([level or 0 for sub_policy in self._sub_policies for _, _, level in sub_policy], np.float64)
