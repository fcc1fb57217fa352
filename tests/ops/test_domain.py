"""References: what is taken of them, how they are described, and images matched to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from skimage.exposure import match_histograms

import variegate as vg
from tests.images import gray, photo
from variegate import transforms as T
from variegate.errors import PolicyError

REFERENCE = np.clip(photo(33, 47) * [0.5, 0.8, 1.2] + [60, 0, 10], 0, 255).astype(np.uint8)


def made(t: T.Transform, image: Any) -> Any:
    return vg.Augmenter(t, layout="NHWC")([image], ids=[3])[0].numpy()


def test_histograms_are_those_of_scikit_image() -> None:
    img = photo(60, 80)
    matched = match_histograms(img, REFERENCE, channel_axis=2)
    np.testing.assert_allclose(made(T.HistogramMatching(REFERENCE, 1.0), img), matched, atol=1)
    half = made(T.HistogramMatching(REFERENCE, 0.5), img)
    np.testing.assert_allclose(half, 0.5 * img + 0.5 * matched, atol=1)
    np.testing.assert_array_equal(made(T.HistogramMatching(REFERENCE, 0.0), img), img)


def test_an_image_matched_to_itself_stays() -> None:
    for img in (photo(60, 80), gray(31, 17)):
        for t in (T.HistogramMatching(img), T.PixelDistributionAdaptation(img)):
            np.testing.assert_array_equal(made(t, img), img)


def test_means_and_deviations_are_the_references() -> None:
    img = photo(60, 80) // 2 + 40
    out = made(T.PixelDistributionAdaptation(REFERENCE // 2 + 50, 1.0), img).astype(float)
    wanted = (REFERENCE // 2 + 50).astype(float)
    np.testing.assert_allclose(out.mean(axis=(0, 1)), wanted.mean(axis=(0, 1)), atol=0.6)
    np.testing.assert_allclose(out.std(axis=(0, 1)), wanted.std(axis=(0, 1)), atol=0.6)
    ends = made(T.PixelDistributionAdaptation(REFERENCE, 1.0, "minmax"), img)
    for find in (np.min, np.max):
        np.testing.assert_array_equal(find(ends, axis=(0, 1)), find(REFERENCE, axis=(0, 1)))


def test_gray_images_are_matched_to_the_luma() -> None:
    luma = np.asarray(PIL.Image.fromarray(REFERENCE).convert("L"))
    t, gray_t = (T.HistogramMatching(each, 1.0) for each in (REFERENCE, luma))
    np.testing.assert_array_equal(made(t, gray(40, 30)), made(gray_t, gray(40, 30)))


def test_each_image_draws_a_reference() -> None:
    t = T.HistogramMatching([np.full((2, 2), level, np.uint8) for level in (10, 90, 200)], 1.0)
    outputs = vg.Augmenter(t)([photo(8, 9)] * 40, ids=range(40)).numpy()
    assert {int(level) for level in np.unique(outputs)} == {10, 90, 200}
    assert all(len(np.unique(one)) == 1 for one in outputs)


def test_descriptions_hold_statistics_and_hashes() -> None:
    t = T.HistogramMatching([REFERENCE, gray(5, 6)])
    described = json.loads(json.dumps(t.to_dict()))
    assert [sorted(each) for each in described["references"]] == [["hash", "int16"]] * 2
    assert len(json.dumps(described)) < 7000
    again = T.from_dict(described)
    assert again == t
    np.testing.assert_array_equal(made(again, photo(20, 30)), made(t, photo(20, 30)))
    assert "reference" in repr(t)
    assert T.HistogramMatching(REFERENCE[::-1]).references[0].hash != t.references[0].hash


def test_references_come_from_whatever_holds_images(tmp_path: Path) -> None:
    for i in range(70):
        PIL.Image.fromarray(np.full((4, 4, 3), i, np.uint8)).save(tmp_path / f"{i:02}.png")
    expected = T.HistogramMatching(np.full((4, 4, 3), 69, np.uint8)).references[0]
    t = T.HistogramMatching(tmp_path)
    assert len(t.references) == 64
    assert t.references[-1] == expected
    for of in (vg.open_source(tmp_path), str(tmp_path / "69.png"), tmp_path / "69.png"):
        assert T.PixelDistributionAdaptation(of).references[-1] == expected
    image = np.full((4, 4, 3), 69, np.uint8)
    for one in (
        PIL.Image.fromarray(image),
        torch.from_numpy(image),
        [image],
        image[None],
        T.HistogramMatching(image).references,
    ):
        assert T.HistogramMatching(one).references == (expected,)


@pytest.mark.parametrize(
    "value", [None, 5, [], [3], np.zeros((4, 4, 3)), np.zeros((0, 4), np.uint8), [photo(3, 3)] * 65]
)
def test_bad_references_are_named(value: Any) -> None:
    with pytest.raises(T.ArgumentError, match=r"HistogramMatching: references=.*; accepted: images, uint8"):
        T.HistogramMatching(value)


def test_damaged_descriptions_are_named() -> None:
    described = T.HistogramMatching(REFERENCE).to_dict()
    entry = described["references"][0]
    for wrong in (
        {"hash": "x"},
        {**entry, "int16": entry["int16"][:-8]},
        {**entry, "int16": "A" * len(entry["int16"])},
    ):
        with pytest.raises(PolicyError, match=r"transform\.references: got"):
            T.from_dict({**described, "references": [wrong]})


@pytest.mark.parametrize("blend", [-0.1, 1.5, (0.5, 0.2)])
def test_bad_shares_are_named(blend: Any) -> None:
    with pytest.raises(T.ArgumentError, match=r"blend_ratio=.*; accepted: a number"):
        T.HistogramMatching(REFERENCE, blend)
    with pytest.raises(T.ArgumentError, match="transform_type='pca'; accepted: one of 'standard', 'minmax'"):
        T.PixelDistributionAdaptation(REFERENCE, transform_type="pca")  # type: ignore[arg-type]
