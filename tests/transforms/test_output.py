"""The output's format: Normalize, ToDtype, and what may follow them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from variegate import transforms as T

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def test_without_normalize_the_output_stays_uint8(draw: Any) -> None:
    assert not draw(T.RandomHorizontalFlip(), 2).output.is_float


def test_normalize_sets_mean_and_std(draw: Any) -> None:
    output = draw(T.Normalize(MEAN, STD), 2).output
    assert (output.mean, output.std) == (MEAN, STD)
    assert draw(T.Normalize(0.5, 0.25), 2).output.mean == (0.5,)


def test_to_dtype_scales_to_one_or_keeps_levels(draw: Any) -> None:
    output = draw(T.ToDtype(torch.float16), 2).output
    assert (output.mean, output.std, output.dtype) == ((0.0,), (1.0,), "float16")
    scale, bias = draw(T.ToDtype(scale=False), 2).output.scale_and_bias(3)
    assert scale.tolist() == [1.0] * 3
    assert np.abs(bias).max() == 0


def test_to_dtype_then_normalize_is_normalize(draw: Any) -> None:
    output = draw(T.Compose([T.ToImage(), T.ToDtype("float32", scale=True), T.Normalize(MEAN, STD)]), 2).output
    assert (output.mean, output.std) == (MEAN, STD)


def test_two_normalizations_compose(draw: Any) -> None:
    output = draw(T.Compose([T.Normalize(0.5, 0.25), T.Normalize((1.0, 2.0, 3.0), 2.0)]), 2).output
    x = 0.75
    assert output.mean is not None
    assert output.std is not None
    expected = [(((x - 0.5) / 0.25) - m) / 2.0 for m in (1.0, 2.0, 3.0)]
    np.testing.assert_allclose((x - np.array(output.mean)) / np.array(output.std), expected)


@pytest.mark.parametrize("after", [T.RandomHorizontalFlip(p=1.0), T.ColorJitter(0.5), T.CenterCrop(4), T.Cutout(4)])
def test_nothing_but_erasing_may_follow(draw: Any, after: T.Transform) -> None:
    with pytest.raises(ValueError, match=r"after Normalize: only RandomErasing may follow it\. Put Normalize last\."):
        draw(T.Compose([T.Normalize(0.5, 0.5), after]), 20)


def test_normalize_is_for_the_whole_batch(draw: Any) -> None:
    with pytest.raises(ValueError, match=r"Normalize inside a choice .* put it last, outside of the choice"):
        draw(T.RandomApply([T.Normalize(0.5, 0.5)], p=0.5), 50)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: T.Normalize((0.5, 0.5), STD), r"mean=\(0.5, 0.5\); accepted: three numbers \(red, green, blue\), or"),
        (lambda: T.Normalize(MEAN, (1, 0, 1)), r"std=\(1, 0, 1\); accepted: three positive numbers"),
        (lambda: T.ToDtype("int8"), r"ToDtype: dtype='int8'; accepted: one of 'float32', 'float16', 'bfloat16'"),
    ],
)
def test_bad_arguments_are_named(build: Any, message: str) -> None:
    with pytest.raises(T.ArgumentError, match=message):
        build()
