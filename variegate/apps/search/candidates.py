"""Rows of a race or an evaluation by name: a policy, and the crop, flip and cutout around it.

``NAME`` is the policy within the crop, flip and cutout that the options set. ``NAME+PART+PART`` has exactly the parts
named, each ``flip``, ``crop`` or ``cutout``, the last two with a number of pixels or as the options set them. ``none``,
``flip``, ``crop`` and ``cutout`` alone have nothing else, and ``flip-crop`` is what the options set, without a policy.
"""

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
from variegate.policies.load import SUFFIXES, load_policy, scaled_policy
from variegate.policies.uniform import AdaptiveRandAugment, refuse_given_magnitude
from variegate.policies.whole import is_whole

if TYPE_CHECKING:
    from variegate.apps.train.images import BaselineAugmentation

# Names beside those of ``load_policy``.
NO_AUGMENTATION, FLIP_CROP = "none", "flip-crop"
GAP, ENTROPY = "adaptive:gap", "adaptive:entropy"
ADAPTIVE = (GAP, ENTROPY)
# Of a race without --policies, the simplest first.
DEFAULT_CANDIDATES = (
    *("none", "flip", "crop", "flip+crop", "flip+crop+cutout", "randaugment-1-5+flip+crop"),
    *("randaugment-2-9+flip+crop", "trivialaugment+flip+crop", "adaptive:entropy+flip+crop"),
)
_PART = re.compile(r"(?:flip|(crop|cutout)(\d{0,4}))")
_ACCEPTED = "NAME, or NAME+PART+PART with parts flip, crop, cutout, crop2 and cutout8 (pixels), such as none+crop2"


@dataclass(frozen=True)
class Candidate:
    """A row. ``policy``: a name or file, a transform, or None.

    ``crop`` (padding) and ``cutout`` (side) in pixels, ``flip``: None is the options' own; ``is_exact``: the options
    only give numbers of parts that were named without one.
    """

    name: str
    policy: str | T.Transform | None = None
    crop: int | None = None
    flip: bool | None = None
    cutout: int | None = None
    is_exact: bool = False

    @property
    def adaptive(self) -> str | None:
        """The way its magnitudes adapt, of ``ADAPTIVE``; None for others."""
        return self.policy if isinstance(self.policy, str) and self.policy in ADAPTIVE else None

    def loaded(self, epochs: int | None = None) -> T.Transform | None:
        """The policy alone. ``epochs``: of the training that a schedule is scaled to. Raises what ``load_policy`` does;
        ValueError for magnitudes that nobody gives."""
        if self.adaptive is not None:
            return AdaptiveRandAugment()
        if not isinstance(self.policy, str):
            return self.policy
        policy = load_policy(self.policy) if epochs is None else scaled_policy(self.policy, epochs)
        refuse_given_magnitude(policy, f"policies: {self.name}", " and ".join(ADAPTIVE))
        return policy

    def around(self, baseline: BaselineAugmentation) -> BaselineAugmentation:
        """The crop, flip and cutout of this row. Raises ValueError for a part without a number that is off."""
        padding = baseline.padding if self.crop is None else self.crop
        flip = baseline.flip if self.flip is None else self.flip
        cutout = baseline.cutout if self.cutout is None else self.cutout
        for part, own, pixels in (("crop", self.crop, padding), ("cutout", self.cutout, cutout)):
            if self.is_exact and own is None and not pixels:
                raise ValueError(f"policies: got {self.name!r}, with 0 pixels as options; accepted: such as {part}2")
        return replace(baseline, padding=padding, flip=flip, cutout=cutout)

    def transform(self, baseline: BaselineAugmentation, epochs: int) -> T.Transform:
        """All that is done to images that train with it."""
        policy = self.loaded(epochs)
        if self.is_exact and self.policy is not None and is_whole(policy):
            raise ValueError(f"policies: got {self.name!r}, whose policy has a crop of its own; accepted: no parts")
        return self.around(baseline).with_policy(policy)

    def without_images(self) -> T.Transform:
        """For a training whose images are not known. Raises ValueError for what depends on their size."""
        has_size = self.is_exact and (self.crop != 0 or self.cutout is None)
        if has_size or self.adaptive is not None or (self.policy is None and not self.is_exact):
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
    """Their names, and a digest of what these stand for: a file may change. Raises ValueError for Python functions."""
    contents = [
        [one.crop, one.flip, one.cutout, None if (policy := one.loaded()) is None else policy.to_dict()] for one in rows
    ]
    digest = hashlib.blake2b(json.dumps(contents).encode(), digest_size=8).hexdigest()
    return {"policies": [one.name for one in rows], "contents": digest}


def parse_candidate(name: str) -> Candidate:
    """A row by its name, which is in lower case but for files. Raises ValueError for an unknown part."""
    typed = _split(name.strip())
    is_part = _PART.fullmatch(typed[0]) is not None
    policy, parts = (NO_AUGMENTATION, typed) if is_part else (typed[0], typed[1:])
    is_exact = bool(parts) or policy == NO_AUGMENTATION
    found: dict[str, Any] = {"crop": 0, "flip": False, "cutout": 0} if is_exact else {}
    for part in parts:
        match = _PART.fullmatch(part)
        kind = "flip" if match is None else match[1] or "flip"
        if match is None or found[kind] or found[kind] is None or match[2] == "0" or policy == FLIP_CROP:
            raise ValueError(f"policies: got {part!r} in {name!r}; accepted: {_ACCEPTED}")
        found[kind] = True if kind == "flip" else int(match[2]) if match[2] else None
    is_plain = policy in (NO_AUGMENTATION, FLIP_CROP)
    return Candidate("+".join(typed), None if is_plain else policy, **found, is_exact=is_exact)


def _split(name: str) -> list[str]:
    """A policy and its parts, in lower case but for a file, whose name may have a plus in it."""
    items, parts = name.split("+"), list[str]()
    while len(items) > 1 and (_PART.fullmatch(items[-1].lower()) or not is_file("+".join(items))):
        parts.insert(0, items.pop().lower())
    policy = "+".join(items)
    return [policy if is_file(policy) else policy.lower(), *parts]


def is_file(policy: str) -> bool:
    return policy.lower().endswith(SUFFIXES) or "/" in policy or "\\" in policy


def default_candidates(baseline: BaselineAugmentation) -> dict[str, Candidate]:
    """``DEFAULT_CANDIDATES`` without the parts that the options turn off."""
    is_on = {"crop": baseline.padding > 0, "flip": baseline.flip, "cutout": baseline.cutout > 0}
    names = ("+".join(part for part in name.split("+") if is_on.get(part, True)) for name in DEFAULT_CANDIDATES)
    return candidates_of(list(dict.fromkeys(name or NO_AUGMENTATION for name in names)))


def variations(row: Candidate, baseline: BaselineAugmentation) -> list[Candidate]:
    """Rows one step away: operations and magnitude of RandAugment, padding, cutout, flip on or off. None of a policy
    that is whole."""
    if is_whole(row.loaded()):
        return []
    around, side = row.around(baseline), min(baseline.size)
    own = replace(row, crop=around.padding, flip=around.flip, cutout=around.cutout, is_exact=True)
    found = [replace(own, policy=policy) for policy in _near(row.policy)]
    found += [replace(own, crop=padding) for padding in _steps(around.padding, side // 8, side // 4)]
    found += [replace(own, cutout=cutout) for cutout in _steps(around.cutout, side // 4, side * 3 // 4)]
    if baseline.flip:  # else the options say that a mirrored image is another
        found.append(replace(own, flip=not around.flip))
    first = row.name.split("+")[0]
    plain = "" if row.policy is None else first
    return [replace(one, name=_spelled(one, one.policy if isinstance(one.policy, str) else plain)) for one in found]


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


def _spelled(row: Candidate, policy: str) -> str:
    parts = [policy, "flip" if row.flip else "", f"crop{row.crop}" if row.crop else ""]
    parts.append(f"cutout{row.cutout}" if row.cutout else "")
    return "+".join(filter(None, parts)) or NO_AUGMENTATION
