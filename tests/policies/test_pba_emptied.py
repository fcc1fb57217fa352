"""``PBA(emptied="reference")``: every pair of operations against RGBA images in Pillow, as arcelien/pba has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

import variegate as vg
from tests.images import photo
from variegate.policies import PBA, Schedule, Segment
from variegate.policies.pba import PairStep
from variegate.policies.spaces import space
from variegate.program.ops import Op
from variegate.transforms import ArgumentError, Transform

FILL = (125, 122, 113)
NAMES = space("pba").default
EVERYTHING = Schedule((Segment(1, tuple((name, 0.5, 5) for name in NAMES)),))
BY_COLOUR = {"Invert": ImageOps.invert, "Equalize": ImageOps.equalize, "AutoContrast": ImageOps.autocontrast}
Pair = tuple[tuple[int, float], tuple[int, float]]


@dataclass(frozen=True)
class Pairs(Transform):
    """Row i gets the operations ``pairs[i]``, each an index and an argument."""

    pairs: tuple[Pair, ...]
    emptied: str
    num_slots = 4

    def sample(self, sampling: Any, rows: Any, slot: int) -> None:
        policy = PBA(EVERYTHING, emptied=self.emptied)  # type: ignore[arg-type]
        steps = [
            PairStep(
                np.array([pair[k][0] for pair in self.pairs]), np.array([pair[k][1] for pair in self.pairs]), slot + k
            )
            for k in (0, 1)
        ]
        if self.emptied == "reference":
            policy._pairs.emit(sampling, rows, *steps)
        else:
            for step in steps:
                policy._table.emit(sampling, rows, step.entry, step.parameter, step.slot)


def in_pillow(pixels: Any, pair: Pair, holes: Iterator[Any]) -> Any:
    img = Image.fromarray(pixels).convert("RGBA")
    for index, value in pair:
        name, opaque = NAMES[index], img.convert("RGB")
        maps = {
            "ShearX": (1, value, 0, 0, 1, 0),
            "ShearY": (1, 0, 0, value, 1, 0),
            "TranslateX": (1, 0, -value, 0, 1, 0),
            "TranslateY": (1, 0, 0, 0, 1, -value),
        }
        if name in maps:
            img = img.transform(img.size, Image.Transform.AFFINE, maps[name])
        elif name == "Rotate":
            img = img.rotate(value)
        elif name == "Cutout":
            top, left, height, width = next(holes)
            pixels = np.array(img)
            pixels[top : top + height, left : left + width] = (*FILL, 0)
            img = Image.fromarray(pixels)
        elif name in BY_COLOUR:
            img = BY_COLOUR[name](opaque).convert("RGBA")
        elif name in ("Posterize", "Solarize"):
            change: Any = ImageOps.posterize if name == "Posterize" else ImageOps.solarize
            img = change(opaque, int(value)).convert("RGBA")
        else:
            img = getattr(ImageEnhance, name)(img).enhance(value)
    out = np.array(img)
    out[out[..., 3] == 0, :3] = FILL
    return out[..., :3]


def every_pair(rng: np.random.Generator) -> tuple[Pair, ...]:
    def drawn(index: int) -> tuple[int, float]:
        return index, float(space("pba").rules[NAMES[index]].parameters(rng.integers(1, 10), rng.random() < 0.5))

    return tuple((drawn(i), drawn(k)) for i in range(15) for k in range(15))


def results(size: tuple[int, int], emptied: str) -> Iterator[tuple[Pair, Any, Any]]:
    rng = np.random.default_rng(size[0])
    for name in ("flower", "noise"):
        pixels = photo(*size) if name == "flower" else rng.integers(0, 256, (*size, 3), dtype=np.uint8)
        pairs = every_pair(rng)
        aug = vg.Augmenter(Pairs(pairs, emptied), layout="NHWC")
        images, ids = [pixels] * len(pairs), range(len(pairs))
        program = aug.program(images, ids=ids)
        outputs = np.asarray(aug(images, ids=ids))
        for i, pair in enumerate(pairs):
            erased = [args for op, args in program.operations(i) if op is Op.ERASE]
            holes = [program.tables.rectangles[int(args[0])] for args in erased]
            yield pair, outputs[i], in_pillow(pixels, pair, iter(holes))


@pytest.mark.parametrize("size", [(32, 32), (17, 31), (5, 3)])
def test_every_pair_is_the_references(size: tuple[int, int]) -> None:
    for pair, ours, expected in results(size, "reference"):
        np.testing.assert_array_equal(ours, expected, err_msg=str([NAMES[index] for index, _ in pair]))


def test_pairs_that_differ_where_emptied_pixels_are_filled_at_once() -> None:
    found = {
        (pair[0][0], pair[1][0]) for pair, ours, expected in results((32, 32), "filled") if (ours != expected).any()
    }
    moves = {"Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY"}
    colours = set(NAMES) - moves - {"Cutout"}
    blended = {"Brightness", "Color", "Contrast", "Sharpness"}
    expected = {(i, k) for i in moves for k in colours} | {("Cutout", k) for k in blended}
    assert len(expected) == 49
    assert {(NAMES[i], NAMES[k]) for i, k in found} == expected


def test_the_same_operations_are_drawn(draw) -> None:
    filled, other = (draw(PBA("pba-cifar10", emptied=way), 400, epoch=150) for way in ("filled", "reference"))
    alike = (other.length == filled.length).mean()
    assert 0.7 < alike < 1  # but for those that are filled again
    for row in np.flatnonzero(other.length == filled.length):
        count = filled.length[row]
        assert sorted(other.opcode[row, :count]) == sorted(filled.opcode[row, :count])


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_images_of_any_size_alone_and_in_a_batch(device: str) -> None:
    schedule = Schedule(
        (Segment(1, (("Rotate", 1.0, 9), ("Sharpness", 1.0, 9), ("TranslateX", 1.0, 4))),), "pba-relative"
    )
    images = [photo(40 + i, 50 - i) for i in range(10)] + [photo(20, 30)[..., :1]]
    aug = vg.Augmenter(PBA(schedule, emptied="reference"), device=device)
    together = aug(images, ids=range(11))
    expected = vg.Augmenter(PBA(schedule, emptied="reference"))(images, ids=range(11))
    for i, image in enumerate(images):
        assert np.array_equal(together[i], expected[i])
        assert np.array_equal(aug([image], ids=[i])[0], together[i])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"emptied": "black"}, "emptied='black'; accepted: one of 'filled', 'reference'"),
        ({"emptied": "reference", "interpolation": "bilinear"}, "'filled' with interpolation='bilinear'"),
        (
            {"schedule": Schedule((Segment(1, (("SolarizeAdd", 0.1, 3),)),), "timm"), "emptied": "reference"},
            "emptied='reference'; accepted: 'filled' with SolarizeAdd in the schedule",
        ),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        PBA(**arguments)
    assert message in str(caught.value)


def test_how_far_the_fill_is_from_the_references_is_said() -> None:
    """Its mean of CIFAR-10 and standard deviations, as arcelien/pba has them; what is empty becomes 0 of them."""
    mean = np.array([0.49139968, 0.48215841, 0.44653091])
    deviation = np.array([0.24703223, 0.24348513, 0.26158784])
    page = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()
    below = 255 * mean - FILL
    normalised = (np.array(FILL) / 255 - mean) / deviation
    told = (
        "({:.2f}, {:.2f}, {:.2f})",
        "{:.2f}, {:.2f} and {:.2f} levels below",
        "{:.3f}, {:.3f} and {:.3f} after normalization",
    )
    for text, numbers in zip(told, (255 * mean, below, normalised), strict=True):
        assert text.format(*numbers) in page
