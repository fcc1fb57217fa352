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
        axes, fourier = T.PixelDistributionAdaptation(img, transform_type="pca"), T.FDA(img, 0.5, p=1.0)
        for t in (T.HistogramMatching(img), T.PixelDistributionAdaptation(img), axes, fourier):
            np.testing.assert_array_equal(made(t, img), img)


@pytest.mark.parametrize("size", [(60, 80), (61, 47), (40, 201)])
@pytest.mark.parametrize("beta", [0.02, 0.05, 0.31])
def test_low_frequencies_have_the_amplitudes_of_the_reference(size: tuple[int, int], beta: float) -> None:
    """As Yang & Soatto publish it: the whole spectrum of either image, of one size, the square around its middle."""
    img, reference = photo(*size), np.clip(photo(*size, "cat") * [0.5, 0.8, 1.2] + [60, 0, 10], 0, 255).astype(np.uint8)
    own, wanted = (np.fft.fft2(each, axes=(0, 1)) for each in (img, reference))
    down, across = (np.abs(np.fft.fftfreq(side) * side).round() for side in size)
    cycles = int(beta * min(size))
    is_low = ((down[:, None] < cycles) & (across < cycles))[..., None]
    mixed = np.where(is_low, np.abs(wanted), np.abs(own)) * np.exp(1j * np.angle(own))
    expected = np.clip(np.fft.ifft2(mixed, axes=(0, 1)).real, 0, 255)
    # Rounded, and amplitudes as 16-bit floats.
    np.testing.assert_allclose(made(T.FDA(reference, beta, p=1.0), img), expected, atol=0.7)
    means = made(T.FDA(reference // 4 + 90, 1.1 / min(size), p=1.0), img // 4 + 90).mean(axis=(0, 1))
    np.testing.assert_allclose(means, (reference // 4 + 90).mean(axis=(0, 1)), atol=0.6)


def test_frequencies_that_an_image_or_its_reference_lacks_stay() -> None:
    small, img = np.full((5, 5, 3), 90, np.uint8), photo(64, 64) // 2 + 60
    out = np.fft.fft2(made(T.FDA(small, 0.5, p=1.0), img), axes=(0, 1))
    low = np.abs(np.fft.fftfreq(64) * 64) < 2.5  # what five pixels hold
    is_low, before = low[:, None] & low, np.fft.fft2(img, axes=(0, 1))
    changed = np.abs(out - before).mean(axis=2)
    assert changed[is_low].min() > 100 > changed[~is_low].max()
    constant = made(T.FDA(REFERENCE, 0.5, p=1.0), np.full((20, 31, 3), 70, np.uint8))
    np.testing.assert_allclose(constant, np.broadcast_to(REFERENCE.mean(axis=(0, 1)), constant.shape), atol=0.6)
    assert (made(T.FDA(REFERENCE, 0.5, p=1.0), 0 * img) == 0).all()


def test_beta_and_the_chance_are_drawn() -> None:
    images, t = [photo(40, 40)] * 200, T.FDA([REFERENCE, REFERENCE // 2], (0.0, 0.2), p=0.6)
    program = vg.Augmenter(t).program(images, ids=range(200))
    assert 100 < program.length.sum() < 140
    betas = program.args[program.length > 0, 0, 0]
    assert 0 < betas.min() < 0.02 < 0.18 < betas.max() < 0.2
    outputs = vg.Augmenter(t, layout="NHWC")(images, ids=range(200)).numpy()
    np.testing.assert_array_equal(outputs[program.length == 0], np.stack(images)[program.length == 0])
    assert repr(T.FDA(REFERENCE)).startswith("FDA((<reference")


def test_colors_lie_along_the_axes_of_the_reference() -> None:
    """Whatever the signs of either: those of the reference, with the deviations of the image."""
    img, reference = photo(60, 80) // 2 + 60, REFERENCE[..., [2, 0, 1]] // 2 + 60
    out = made(T.PixelDistributionAdaptation(reference, 1.0, "pca"), img)
    (own, _), (_, axes), (got, got_axes) = (
        np.linalg.eigh(np.cov(each.reshape(-1, 3).T)) for each in (img, reference, out)
    )
    np.testing.assert_allclose(np.abs((axes * got_axes).sum(axis=0)), 1.0, atol=1e-3)
    np.testing.assert_allclose(got, own + 1 / 12, rtol=1e-3, atol=0.1)  # rounding's own
    np.testing.assert_allclose(out.mean(axis=(0, 1)), reference.mean(axis=(0, 1)), atol=0.1)
    # Light stays light.
    assert np.corrcoef(out.mean(axis=2).ravel(), img.mean(axis=2).ravel())[0, 1] > 0.9
    half = made(T.PixelDistributionAdaptation(reference, 0.5, "pca"), img)
    np.testing.assert_allclose(half, 0.5 * img + 0.5 * out, atol=1)
    lone = made(T.PixelDistributionAdaptation(reference, 1.0, "pca"), gray(40, 30))
    luma = np.asarray(PIL.Image.fromarray(reference).convert("L")).mean()
    np.testing.assert_allclose(lone.mean(), np.clip(gray(40, 30) - gray(40, 30).mean() + luma, 0, 255).mean(), atol=0.2)


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
    references = [REFERENCE, gray(5, 6)]
    axes = T.PixelDistributionAdaptation(references, transform_type="pca")
    for t, kind, size in (
        *((T.HistogramMatching(references), "int16", 3e3), (axes, "int16", 3e3)),
        (T.FDA(references, 0.2, p=1.0), "float16", 9e4),
    ):
        described = json.loads(json.dumps(t.to_dict()))
        assert [sorted(each) for each in described["references"]] == [sorted(("hash", kind))] * 2
        assert len(json.dumps(described)) < 2 * size
        again = T.from_dict(described)
        assert again == t
        np.testing.assert_array_equal(made(again, photo(20, 30)), made(t, photo(20, 30)))
        assert "reference" in repr(t)
    assert T.FDA(REFERENCE[::-1]).references[0].hash != T.FDA(REFERENCE).references[0].hash


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
    for t, kind in ((T.HistogramMatching(REFERENCE), "int16"), (T.FDA(REFERENCE), "float16")):
        described = t.to_dict()
        entry = described["references"][0]
        for wrong in (
            {"hash": "x"},
            {**entry, kind: entry[kind][:-8]},
            {**entry, kind: ("A" if kind == "int16" else "/") * len(entry[kind])},
            {"hash": "x", {"int16": "float16", "float16": "int16"}[kind]: entry[kind]},
        ):
            with pytest.raises(PolicyError, match=r"transform\.references: got"):
                T.from_dict({**described, "references": [wrong]})
    with pytest.raises(T.ArgumentError, match=r"HistogramMatching: references=<reference"):
        T.HistogramMatching(T.FDA(REFERENCE).references)


@pytest.mark.parametrize("blend", [-0.1, 1.5, (0.5, 0.2)])
def test_bad_shares_are_named(blend: Any) -> None:
    with pytest.raises(T.ArgumentError, match=r"blend_ratio=.*; accepted: a number"):
        T.HistogramMatching(REFERENCE, blend)
    with pytest.raises(T.ArgumentError, match="transform_type='lab'; accepted: one of 'standard', 'minmax', 'pca'"):
        T.PixelDistributionAdaptation(REFERENCE, transform_type="lab")  # type: ignore[arg-type]
    with pytest.raises(T.ArgumentError, match=r"beta_limit=.*; accepted: a number.* from 0 to 0.5"):
        T.FDA(REFERENCE, 0.6)


def test_what_refuses_adaptations_names_them() -> None:
    for t, name in (
        (T.FDA(REFERENCE, p=1.0), "FDA"),
        (T.PixelDistributionAdaptation(REFERENCE, transform_type="pca"), "PixelDistributionAdaptation"),
    ):
        with pytest.raises(
            ValueError, match=f"^{name}: got an image of 5 channels; accepted: images of one channel, or"
        ):
            vg.Augmenter(t)([np.zeros((9, 9, 5), np.uint8)])
        with pytest.raises(ValueError, match=rf"tiles: got {name}.*, which needs the whole image at once; accepted"):
            vg.Engine(devices=["cpu:0"], workers="thread").map_image(photo(9, 9), t)
