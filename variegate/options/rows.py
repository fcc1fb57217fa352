"""Names of rows, the one grammar of ``train --policy``, ``search`` and ``evaluate``: a policy and the parts after it.

``none``, ``flip``, ``crop``, ``flip+crop``, ``randaugment-1-5``, ``randaugment-1-5+flip+crop+cutout8``,
``mine.yaml+crop2``. A row has exactly the policy and the parts of its name. ``crop`` and ``cutout`` have a number of
pixels, or the one that the options set. A policy that includes its own crop takes no parts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from variegate.checks import did_you_mean

NO_AUGMENTATION = "none"
POLICY_SUFFIXES = (".json", ".yaml", ".yml")
PARTS = ("flip", "crop", "cutout")
ACCEPTED_ROWS = (
    "none, or a policy and parts joined by +, such as flip+crop, randaugment-1-5+flip+crop or mine.yaml+crop2+cutout8; "
    "parts are flip, crop and cutout, the last two with a number of pixels if wanted"
)
_PART = re.compile(r"(?:flip|(crop|cutout)(\d{0,4}))")
_OLD_NAMES = {
    "flip-crop": "flip+crop, or flip+crop+cutout with a cutout",
    "adaptive:gap": "adaptive:entropy",
}


@dataclass(frozen=True)
class Row:
    """A policy and the parts after it.

    ``policy``: a name or a file; for races also a transform, or None. ``crop``: padding in pixels. ``cutout``: side in
    pixels. 0 leaves these two out, and None means the number that the options set.
    """

    name: str
    policy: Any = None
    flip: bool = False
    crop: int | None = 0
    cutout: int | None = 0

    @property
    def has_parts(self) -> bool:
        return self.flip or self.crop != 0 or self.cutout != 0

    def pixels(self, argument: str, padding: int, cutout: int) -> tuple[int, int]:
        """(padding, side of the cutout), from the options where the name has no number. Raises ValueError if a part of
        the name would do nothing."""
        found = []
        for part, named, default in (("crop", self.crop, padding), ("cutout", self.cutout, cutout)):
            if named is None and not default:
                raise ValueError(
                    f"{argument}: got {self.name!r}, with 0 pixels as options; accepted: such as {part}2, or without "
                    f"{part}"
                )
            found.append(default if named is None else named)
        return found[0], found[1]

    def check_has_own_crop(self, argument: str) -> None:
        """Call it for a policy that includes its own crop. Raises ValueError if the row has parts."""
        if self.has_parts:
            raise ValueError(
                f"{argument}: got {self.name!r}, whose policy has a crop of its own; accepted: no parts, as in "
                f"{self.policy}"
            )


def parse_row(text: str, argument: str = "policies") -> Row:
    """Parse a row's name; case matters for files only. Raises ValueError naming ``argument``."""
    policy, parts = _split(text.strip())
    if policy in _OLD_NAMES:
        raise ValueError(f"{argument}: got {text!r}, an old name; accepted: {_OLD_NAMES[policy]}")
    is_none = policy == NO_AUGMENTATION and bool(parts)
    if _PART.fullmatch(policy):
        policy, parts = NO_AUGMENTATION, [policy, *parts]
    found: dict[str, Any] = {}
    for part in parts:
        match = _PART.fullmatch(part)
        kind = "flip" if match is None else match[1] or "flip"
        if match is None or match[2] == "0" or kind in found:
            twice = " twice" if match is not None and kind in found else ""
            hint = did_you_mean(part, PARTS) if match is None else ""
            raise ValueError(f"{argument}: got {part!r}{twice} in {text!r}; accepted: {ACCEPTED_ROWS}{hint}")
        found[kind] = True if kind == "flip" else int(match[2]) if match[2] else None
    if is_none:
        raise ValueError(f"{argument}: got {text!r}; accepted: none alone, or the parts alone: {'+'.join(parts)}")
    row = Row("", None if policy == NO_AUGMENTATION else policy, **found)
    return Row(row_name(row, policy), row.policy, **found)


def row_name(row: Row, policy: str | None) -> str:
    """The name of a row, in its one form. ``policy``: its policy as named."""
    parts = [] if policy in (None, NO_AUGMENTATION) else [policy]
    parts += ["flip"] if row.flip else []
    for kind, pixels in (("crop", row.crop), ("cutout", row.cutout)):
        if pixels != 0:
            parts.append(kind if pixels is None else f"{kind}{pixels}")
    return "+".join(filter(None, parts)) or NO_AUGMENTATION


def is_policy_file(policy: str) -> bool:
    return policy.lower().endswith(POLICY_SUFFIXES) or "/" in policy or "\\" in policy


def _split(name: str) -> tuple[str, list[str]]:
    """Split a row into its policy and parts, in lower case except for a file, whose name may contain a plus."""
    items = name.split("+")
    parts = list[str]()
    while len(items) > 1 and (_PART.fullmatch(items[-1].lower()) or not is_policy_file("+".join(items))):
        parts.insert(0, items.pop().lower())
    policy = "+".join(items)
    return (policy if is_policy_file(policy) else policy.lower()), parts
