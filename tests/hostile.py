"""Descriptions of every transform, and the same with addresses in the place of their values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import variegate as vg
from tests.ops.examples import BY_BOXES, EXAMPLES, MIXERS, POLICIES
from tests.recording_opens import ADDRESSES, replaced
from variegate import transforms as T
from variegate.policies.uniform import AdaptiveRandAugment
from variegate.transforms import functional as F


class Scanlines(T.CustomOp):
    """An operation of a user's."""

    magnitude = T.Magnitude(0.0, 1.0)

    def lut(self, m: float) -> Any:
        return np.arange(256, dtype=np.uint8)


@vg.pipeline
def turned(image: Any) -> Any:
    if vg.coin(0.5):
        image = F.rotate(image, vg.uniform(0, 30))
    return image


SCHEDULE: dict[str, Any] = {
    "format": "variegate-schedule/1",
    "source": "a search",
    "space": {"base": "pba-relative", "operations": ["Rotate", "Scanlines:0..1"], "around": ["Crop"]},
    "operations": ["Rotate"],
    "segments": [{"epochs": 2, "policy": [["Rotate", 0.5, 3]]}],
}
POLICY = {"format": "variegate-policy/1", "source": "a", "space": "pil", "policy": [[["Rotate", 0.5, 3]]]}
TRANSFORMS = [
    *(example for examples in (EXAMPLES | MIXERS | BY_BOXES).values() for example in examples),
    *(
        *POLICIES,
        AdaptiveRandAugment(),
        turned,
        Scanlines(0.5),
        T.PBA(),
        T.MultiView([T.Identity()]),
        vg.load_policy("dino"),
    ),
    *(vg.load_policy(name) for name in ("dino", "original-mstd0.5", "augmix-m5-w4-d2", "v0r", "3a")),
]


def injected(*values: Any) -> Iterator[dict[str, Any]]:
    """Of every class a description with each of its arguments in turn as one of ``values``."""
    for transform in {type(each).__name__: each for each in TRANSFORMS}.values():
        described = transform.to_dict()
        for field in dataclasses.fields(transform):  # type: ignore[arg-type]
            yield from ({**described, field.name: value} for value in values if field.init)


def hostile(described: Any, addresses: Sequence[str] = ADDRESSES) -> Iterator[Any]:
    for address in addresses:
        yield from replaced(described, address)
