"""The magnitudes of torchvision's four classes, to the bit: its own floats are in ``torchvision_magnitudes.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate.policies import AutoAugment, RandAugment, TrivialAugmentWide
from variegate.policies.spaces import linspace, space
from variegate.program.ops import Op

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "torchvision_magnitudes.json").read_text())
ENHANCEMENTS = {"Brightness", "Color", "Contrast", "Sharpness"}
CASES = [(name, names, floats) for name, by in GOLDEN["spaces"].items() for names, floats in by.items()]


@pytest.mark.parametrize(("name", "operations", "floats"), CASES)
def test_every_magnitude_is_torchvisions(name: str, operations: str, floats: list[float]) -> None:
    chosen = space(name)
    magnitudes = np.array(floats, np.float32).astype(np.float64)
    assert chosen.bins == len(magnitudes)
    levels = np.arange(chosen.bins)
    for operation in operations.split():
        rule = chosen.rules[operation]
        if rule.size >= 0:
            continue  # in pixels: the next test
        for negative in (False, True):
            signed = -magnitudes if negative and rule.signed else magnitudes
            if operation in ENHANCEMENTS:
                expected = 1.0 + signed
            elif operation == "Solarize":
                expected = 255.0 * signed
            elif operation == "Posterize":
                expected = np.maximum(signed, 1)  # Pillow refuses the 0 bits of torchvision's AugMix
            else:
                expected = np.trunc(signed) if operation.startswith("Translate") else signed
            arguments = [rule.argument(float(level), negative) for level in levels]
            np.testing.assert_array_equal(arguments, expected, err_msg=operation)


@pytest.mark.parametrize("operation", ["TranslateX", "TranslateY"])
@pytest.mark.parametrize(("name", "bins"), [("torchvision-autoaugment", 10), ("torchvision-randaugment", 31)])
def test_translations_are_torchvisions(draw, name: str, bins: int, operation: str) -> None:
    (floats,) = [floats for names, floats in GOLDEN["spaces"][name].items() if operation in names.split()]
    size = (GOLDEN["height"], GOLDEN["width"])
    for level in range(bins):
        if bins == 10:
            policy: Any = AutoAugment([[[operation, 1.0, level]]])
        else:
            policy = RandAugment(1, level, operations=[operation])
        moved = np.abs(draw(policy, 8, size=size).args[:, 0, 0])
        assert set(moved) == {float(int(floats[level]))}


def test_a_single_image_moves_as_in_a_batch() -> None:
    """Translations are computed in a way of their own there."""
    for width in (33, 100, 331):
        image = np.arange(4 * width, dtype=np.uint8).reshape(4, width)
        policy = TrivialAugmentWide(operations=["TranslateX", "TranslateY"])
        shared = RandAugment(3, 7, operations=["TranslateX"], fill=9)
        for t in (policy, shared):
            aug = vg.Augmenter(t)
            together = aug([image] * 12, ids=list(range(12)))
            for i in range(12):
                assert np.array_equal(aug([image], ids=[i])[0], together[i])


def test_bin_15_moves_by_15_pixels(draw) -> None:
    program = draw(TrivialAugmentWide(operations=["TranslateX"]), 4000)
    moved = set(np.abs(program.args[program.opcode[:, 0] == Op.TRANSLATE_X, 0, 0]).tolist())
    assert 15.0 in moved
    assert 16.0 not in moved  # bin 15 of 0..32 is 15.999999 in torch, and bin 16 is 17.07


def test_a_pixel_just_below_the_threshold_is_kept() -> None:
    """255 * linspace(1, 0, 31)[28] is 17.0000009 in torchvision: 17 is not inverted."""
    image = np.full((5, 7, 3), 17, np.uint8)
    out = vg.Augmenter(RandAugment(1, 28, operations=["Solarize"]))([image])
    assert (np.asarray(out) == 17).all()


@pytest.mark.parametrize("full", [1, 2, 9, 15, 30, 100])
@pytest.mark.parametrize("high", [0.3, 0.9, 0.99, 30.0, 32.0, 135.0, 150 / 331 * 224, 0.0])
def test_linspace_is_torchs(full: int, high: float) -> None:
    torch = pytest.importorskip("torch")
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("torch rounds twice on processors that multiply and add in two instructions")
    low = 1.0 if high == 0 else 0.0
    expected = torch.linspace(low, high, full + 1).double().numpy()
    assert [linspace(low, high, full, level) for level in range(full + 1)] == expected.tolist()
