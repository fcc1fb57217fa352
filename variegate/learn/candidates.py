"""Rows of a race or an evaluation: ``variegate.options.rows`` reads their names, and here they become transforms."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from variegate import transforms as T
from variegate.checks import refused
from variegate.options.rows import NO_AUGMENTATION, Row, parse_row, row_name
from variegate.policies.base_augment import has_base_augment
from variegate.policies.load import load_policy, scaled_policy
from variegate.policies.uniform import AdaptiveRandAugment, refuse_given_magnitude

if TYPE_CHECKING:
    from variegate.learn.images import BaselineAugmentation

# The row of ``EntropyAdaptation``.
ADAPTIVE = "adaptive:entropy"
# Of a race without --policies, the simplest first.
DEFAULT_CANDIDATES = (
    "none",
    "flip",
    "crop",
    "flip+crop",
    "flip+crop+cutout",
    "randaugment-1-5+flip+crop",
    "randaugment-2-9+flip+crop",
    "trivialaugment+flip+crop",
    "adaptive:entropy+flip+crop",
)


@dataclass(frozen=True)
class Candidate(Row):
    """A row of a race or an evaluation. ``policy``: a name or file, a transform, or None."""

    @property
    def is_adaptive(self) -> bool:
        """True if its magnitudes follow the training."""
        return isinstance(self.policy, str) and self.policy == ADAPTIVE

    def loaded(self, epochs: int | None = None) -> T.Transform | None:
        """The policy alone. ``epochs``: of the training that a schedule is scaled to. Raises what ``load_policy`` does;
        ValueError for magnitudes that nobody gives."""
        if self.is_adaptive:
            return AdaptiveRandAugment()
        if not isinstance(self.policy, str):
            return self.policy
        policy = load_policy(self.policy) if epochs is None else scaled_policy(self.policy, epochs)
        refuse_given_magnitude(policy, f"policies: {self.name}", ADAPTIVE)
        return policy

    def around(self, baseline: BaselineAugmentation) -> BaselineAugmentation:
        """The crop, flip and cutout of this row. Raises ValueError for a part of 0 pixels."""
        return baseline.with_row(self, "policies")

    def transform(self, baseline: BaselineAugmentation, epochs: int) -> T.Transform:
        """The full transform of images that train with this row."""
        policy = self.loaded(epochs)
        if has_base_augment(policy):
            self.check_has_own_crop("policies")
        return self.around(baseline).with_policy(policy)

    def without_images(self) -> T.Transform:
        """The transform for a training whose images are unknown. Raises ValueError for what depends on their size."""
        if self.crop != 0 or self.cutout is None or self.is_adaptive:
            raise ValueError(f"policies: got {self.name!r}, which needs images; accepted with a source as objective")
        flip = T.RandomHorizontalFlip() if self.flip else None
        cutout = T.Cutout(self.cutout) if self.cutout else None
        steps = [step for step in (self.loaded(), flip, cutout) if step is not None]
        return steps[0] if len(steps) == 1 else T.Compose(steps) if steps else T.Identity()


def candidates_of(policies: Sequence[Any] | Mapping[str, Any]) -> dict[str, Candidate]:
    """Rows by name, of names, files and transforms. Raises ValueError for others, and for one twice."""
    found: dict[str, Candidate] = {}
    is_named = isinstance(policies, Mapping)
    for given, one in policies.items() if isinstance(policies, Mapping) else [("", one) for one in policies]:
        if isinstance(one, (str, os.PathLike)):
            row = parse_candidate(os.fspath(one))
        elif isinstance(one, T.Transform):
            same = sum(row.name.split()[0] == type(one).__name__ for row in found.values())
            row = Candidate(f"{type(one).__name__} {same + 1}" if same else type(one).__name__, one)
        else:
            raise refused("policies", one, "names, files and transforms")
        row = replace(row, name=given) if is_named else row
        if row.name in found:
            raise ValueError(f"policies: got {row.name!r} twice; accepted: each once")
        found[row.name] = row
    return found


def describe_rows(rows: Sequence[Candidate]) -> dict[str, Any]:
    """Names of the rows, and a digest of their content, because a file may change. Raises ValueError for Python
    functions."""
    contents = [
        [one.crop, one.flip, one.cutout, None if (policy := one.loaded()) is None else policy.to_dict()] for one in rows
    ]
    digest = hashlib.blake2b(json.dumps(contents).encode(), digest_size=8).hexdigest()
    return {"policies": [one.name for one in rows], "contents": digest}


def parse_candidate(name: str) -> Candidate:
    """A row by its name. Raises ValueError for an unknown part."""
    return Candidate(**vars(parse_row(name)))


def default_candidates(baseline: BaselineAugmentation) -> dict[str, Candidate]:
    """``DEFAULT_CANDIDATES`` without the parts that the options turn off."""
    is_on = {"crop": baseline.padding > 0, "flip": baseline.flip, "cutout": baseline.cutout > 0}
    names = ("+".join(part for part in name.split("+") if is_on.get(part, True)) for name in DEFAULT_CANDIDATES)
    return candidates_of(list(dict.fromkeys(name or NO_AUGMENTATION for name in names)))


def variations(row: Candidate, baseline: BaselineAugmentation) -> list[Candidate]:
    """Rows one step away: operations and magnitude of RandAugment, padding, cutout, flip on or off. None of a policy
    that is whole."""
    if has_base_augment(row.loaded()):
        return []
    around = row.around(baseline)
    side = min(baseline.size)
    own = replace(row, crop=around.padding, flip=around.flip, cutout=around.cutout)
    found = [replace(own, policy=policy) for policy in _near(row.policy)]
    found += [replace(own, crop=padding) for padding in _steps(around.padding, side // 8, side // 4)]
    found += [replace(own, cutout=cutout) for cutout in _steps(around.cutout, side // 4, side * 3 // 4)]
    if baseline.flip:  # else the options say that a mirrored image is another
        found.append(replace(own, flip=not around.flip))
    plain = None if row.policy is None else row.name.split("+")[0]
    return [replace(one, name=row_name(one, one.policy if isinstance(one.policy, str) else plain)) for one in found]


def _near(policy: Any) -> list[str]:
    """RandAugment with another number of operations, or magnitude; the gentlest one after no policy."""
    if policy is None:
        return ["randaugment-1-3"]
    match = re.fullmatch(r"randaugment(?:-(\d+)-(\d+))?", policy) if isinstance(policy, str) else None
    if match is None:
        return []
    number, magnitude = (int(match[1]), int(match[2])) if match[1] else (2, 9)
    pairs = [(number - 1, magnitude), (number + 1, magnitude), (number, magnitude - 4), (number, magnitude + 4)]
    return [f"randaugment-{n}-{m}" for n, m in pairs if 1 <= n <= 3 and 1 <= m <= 30]


def _steps(pixels: int, first: int, most: int) -> list[int]:
    """Half and twice as many; of none, the ``first``."""
    steps = [pixels // 2 if pixels > 2 else 0, 2 * pixels] if pixels else [first]
    return [one for one in steps if one <= most and one != pixels]
