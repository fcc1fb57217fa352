"""Every (space, operation, bin) against the formula its source states, written out here independently."""

from __future__ import annotations

import math

import numpy as np
import pytest

from variegate.policies.spaces import SPACES, space
from variegate.policies.table import emission_of

ENHANCE = ("Brightness", "Color", "Contrast", "Sharpness")
PLAIN = ("AutoContrast", "Equalize", "Invert", "Identity")


def values(name: str, operation: str, negative: bool = False) -> list[float]:
    chosen = space(name)
    return [chosen.rules[operation].argument(float(level), negative) for level in range(chosen.bins)]


def at(name: str, operation: str, level: float, negative: bool = False) -> float:
    return float(space(name).rules[operation].argument(float(level), negative))


def test_torchvision_posterize_bits() -> None:
    assert values("torchvision-autoaugment", "Posterize") == [8, 8, 7, 7, 6, 6, 5, 5, 4, 4]
    assert values("torchvision-randaugment", "Posterize") == [8] * 4 + [7] * 8 + [6] * 7 + [5] * 8 + [4] * 4
    wide = [8] * 3 + [7] * 5 + [6] * 5 + [5] * 5 + [4] * 5 + [3] * 5 + [2] * 3
    assert values("torchvision-trivialaugment", "Posterize") == wide
    assert values("torchvision-augmix", "Posterize") == [4, 4, 3, 3, 2, 2, 1, 1, 1, 1]


@pytest.mark.parametrize("name", ["timm", "tf"])
def test_the_ten_level_scale(name: str) -> None:
    for level in range(11):
        part = level / 10
        assert at(name, "Rotate", level) == pytest.approx(30 * part)
        assert at(name, "Rotate", level, negative=True) == pytest.approx(-30 * part)
        assert at(name, "ShearY", level) == pytest.approx(0.3 * part)
        assert at(name, "Posterize", level) == max(1, int(4 * level / 10))
        assert at(name, "Solarize", level) == min(256, 256 * level // 10)
        assert at(name, "SolarizeAdd", level) == 11 * level
        for operation in ENHANCE:
            assert at(name, operation, level) == at(name, operation, level, negative=True)
            assert at(name, operation, level) == pytest.approx(0.1 + 1.8 * part)


def test_level_nine_of_the_facts_table() -> None:
    assert at("timm-increasing", "Color", 9) == pytest.approx(1.81)
    assert at("timm-increasing", "Color", 9, negative=True) == pytest.approx(0.19)
    assert at("timm-increasing", "Color", 10, negative=True) == pytest.approx(0.1)
    assert at("timm-increasing", "Posterize", 9) == 1
    assert at("timm-increasing", "Posterize", 10) == 1  # 0 bits would be a black image
    assert at("timm-increasing", "Solarize", 9) == 26
    assert at("timm-increasing", "SolarizeAdd", 9) == 99
    assert at("timm-increasing", "TranslateX", 9) == pytest.approx(0.405)
    assert at("timm-original", "Posterize", 8) == 7
    assert at("tf", "TranslateY", 9) == 225
    assert at("tf", "Cutout", 8) == 160  # TensorFlow's constant of 100 is half a side
    assert at("timm", "Desaturate", 0) == pytest.approx(0.5)
    assert at("timm", "Desaturate", 10) == pytest.approx(0.0)
    assert at("timm", "GaussianBlur", 10) == pytest.approx(2.0)


def test_levels_beyond_the_scale_stay_within_what_operations_accept() -> None:
    for name in ("timm", "timm-increasing", "timm-original"):
        for level in (0.0, 3.3, 10.0, 25.0):
            assert 1 <= at(name, "Posterize", level) <= 8
            assert 0 <= at(name, "Solarize", level) <= 256
            assert at(name, "SolarizeAdd", level) <= 128
            assert at(name, "Brightness", level, negative=True) >= 0.1


def test_the_pba_space() -> None:
    assert list(space("pba").default) == [
        "Rotate",
        "TranslateX",
        "TranslateY",
        "Brightness",
        "Color",
        "Invert",
        "Sharpness",
        "Posterize",
        "ShearX",
        "Solarize",
        "ShearY",
        "Equalize",
        "AutoContrast",
        "Cutout",
        "Contrast",
    ]
    assert values("pba", "Posterize") == [4, 4, 4, 3, 3, 2, 2, 2, 1, 1]
    assert values("pba", "Cutout") == [2 * level for level in range(10)]
    assert values("pba", "Rotate", negative=True) == [-3 * level for level in range(10)]
    assert values("pba", "TranslateX") == list(range(10))
    assert values("pba", "Solarize") == [256 - int(25.6 * level) for level in range(10)]
    assert at("pba", "Contrast", 5) == pytest.approx(1.0)
    assert at("pba", "Color", 9) == pytest.approx(1.72)
    for operation in ("TranslateX", "Cutout"):
        for level in range(10):
            assert math.trunc(at("pba-relative", operation, level) * 32 + 1e-9) == at("pba", operation, level)


@pytest.mark.parametrize("relative", [False, True])
def test_the_dali_spaces(relative: bool) -> None:
    """What NVIDIA's suites of augmentations return for every bin, without the image's shape and with it."""
    names = [f"dali-{name}augment" + relative * "-relative" for name in ("auto", "rand", "trivial")]
    auto, rand, trivial = names
    ends = {name: at(name, "TranslateX", space(name).full) for name in names}
    assert ends == dict(zip(names, (1, 100 / 224, 1) if relative else (250, 100, 32), strict=True))
    assert at(auto, "TranslateY", 9, negative=True) == pytest.approx(-0.9 if relative else -225)
    for operation in ENHANCE:
        assert values(auto, operation) == values(auto, operation, True) == pytest.approx(np.linspace(0.1, 1.9, 11))
        for name, low, high in ((rand, 0, 0.9), (trivial, 0.01, 0.99)):
            assert values(name, operation) == pytest.approx(1 + np.linspace(low, high, 31))
            assert values(name, operation, True) == pytest.approx(1 - np.linspace(low, high, 31))
    assert values(auto, "Solarize") == pytest.approx(np.linspace(0, 256, 11))
    assert values(rand, "Solarize") == values(trivial, "Solarize") == pytest.approx(np.linspace(256, 0, 31))
    # No bits at all would be a black image, and so they keep one.
    assert values(auto, "Posterize") == [1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4]
    assert values(rand, "Posterize") == [8] * 4 + [7] * 8 + [6] * 7 + [5] * 8 + [4] * 4
    assert values(trivial, "Posterize")[::15] == [8, 5, 2]
    assert values(auto, "SolarizeAdd") == [11 * level for level in range(11)]
    assert space(rand).default == space(trivial).default
    assert len(space(rand).default) == 14


def test_the_same_printed_bin_differs_between_libraries() -> None:
    """The trap that makes a policy name its space: bin 8 of posterize and solarize."""
    bits = [at(name, "Posterize", 8) for name in ("torchvision-autoaugment", "timm", "timm-increasing", "pba")]
    assert bits == [4, 3, 1, 1]
    thresholds = [at(name, "Solarize", 8) for name in ("torchvision-autoaugment", "timm", "pba")]
    assert thresholds == [pytest.approx(28.333, abs=1e-3), 204, 52]


@pytest.mark.parametrize("name", SPACES)
def test_every_space_is_sourced_and_emittable(name: str) -> None:
    chosen = space(name)
    assert len(chosen.source) > 20
    assert all(emission_of(name) for name in chosen.ops.values())
    assert set(chosen.default) <= set(chosen.rules)
    for operation in PLAIN:
        if operation in chosen.rules:
            assert set(values(name, operation)) == {0.0}


def test_sizes_of_the_default_sets() -> None:
    sizes = {name: len(space(name).default) for name in SPACES if name.startswith("torchvision")}
    assert sizes == {
        "torchvision-autoaugment": 14,
        "torchvision-randaugment": 14,
        "torchvision-trivialaugment": 14,
        "torchvision-augmix": 13,
    }
