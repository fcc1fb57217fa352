"""The output's format: Normalize, ToDtype, Grayscale, and what may follow them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.images import gray, photo
from variegate import transforms as T

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def test_without_normalize_the_output_stays_uint8(draw: Any) -> None:
    assert not draw(T.RandomHorizontalFlip(), 2).output.is_float


def test_normalize_sets_mean_and_std(draw: Any) -> None:
    output = draw(T.Normalize(MEAN, STD), 2).output
    assert (output.mean, output.std) == (MEAN, STD)
    assert draw(T.Normalize(0.5, 0.25), 2).output.mean == (0.5,)


def test_to_dtype_scales_to_one_or_keeps_levels(draw: Any) -> None:
    for scaled in (T.ToDtype(torch.float16, scale=True), T.ConvertImageDtype(torch.float16)):
        output = draw(scaled, 2).output
        assert (output.mean, output.std, output.dtype) == ((0.0,), (1.0,), "float16")
    for plain in (T.ToDtype(torch.float32), T.ToDtype("float32", False)):
        scale, bias = draw(plain, 2).output.scale_and_bias(3)
        assert scale.tolist() == [1.0] * 3
        assert np.abs(bias).max() == 0


def test_defaults_that_once_were_others_are_always_written_down() -> None:
    """A description says what it means to the versions before and after the change of a default."""
    assert T.ToDtype("float16").to_dict() == {"type": "ToDtype", "dtype": "float16", "scale": False}
    assert T.ToDtype(scale=True).to_dict() == {"type": "ToDtype", "scale": True}
    assert T.ConvertImageDtype().to_dict() == {"type": "ConvertImageDtype"}
    assert T.Grayscale().to_dict() == {"type": "Grayscale", "num_output_channels": 1}
    assert T.Grayscale(3).to_dict() == {"type": "Grayscale", "num_output_channels": 3}


# -- one channel -------------------------------------------------------------------------------------------------------

RGB, GRAY = photo(20, 30), gray(20, 30)


@pytest.mark.parametrize("device", ["cpu", "oracle"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_grayscale_leaves_one_channel_as_pillow_makes_it(device: str, layout: str) -> None:
    expected = np.asarray(Image.fromarray(RGB).convert("L"))
    out = vg.Augmenter(T.Grayscale(), device=device, layout=layout)([RGB, RGB])
    assert isinstance(out, torch.Tensor)
    assert tuple(out.shape) == ((2, 1, 20, 30) if layout == "NCHW" else (2, 20, 30, 1))
    assert out.is_contiguous()
    np.testing.assert_array_equal(out[1].numpy().squeeze(), expected)
    three = vg.Augmenter(T.Grayscale(3), device=device, layout="NHWC")([RGB])[0].numpy()
    np.testing.assert_array_equal(three, np.repeat(expected[:, :, None], 3, axis=2))


def test_gray_and_coloured_images_become_one_batch() -> None:
    out = vg.Augmenter(T.Grayscale())([RGB, GRAY])
    assert isinstance(out, torch.Tensor)
    assert tuple(out.shape) == (2, 1, 20, 30)
    several = vg.Augmenter(T.Grayscale())([RGB, GRAY[:7]])
    assert [tuple(image.shape) for image in several] == [(1, 20, 30), (1, 7, 30)]


@pytest.mark.parametrize("normalize", [T.Normalize(0.5, 0.25), T.Normalize(MEAN, STD), T.ToDtype(scale=True)])
def test_what_follows_grayscale_is_what_a_gray_image_gets(normalize: T.Transform) -> None:
    """Also three means and deviations: of a gray image their mean counts."""
    after = [
        T.RandomHorizontalFlip(),
        T.ColorJitter(0.4, 0.4, 0.4, 0.1),
        T.RandomEqualize(),
        T.RandomRotation(20, fill=9),
    ]
    whole = T.Compose([T.Grayscale(), *after, T.GaussianNoise(), normalize, T.RandomErasing(1.0, value="random")])
    rest = T.Compose([*after, T.GaussianNoise(), normalize, T.RandomErasing(1.0, value="random")])
    ashen = np.asarray(Image.fromarray(RGB).convert("L"))
    ids = range(8)
    out = vg.Augmenter(whole)([RGB] * 8, ids=ids)
    assert torch.equal(out, vg.Augmenter(rest)([ashen] * 8, ids=ids))  # type: ignore[arg-type]


def test_files_and_programs_give_one_channel_too() -> None:
    file = io.BytesIO()
    Image.fromarray(RGB).save(file, "PNG")
    aug = vg.Augmenter(T.Grayscale())
    expected = aug([RGB], ids=[0])
    assert torch.equal(aug.decode_and_run([file.getvalue()], ids=[0]), expected)  # type: ignore[arg-type]
    assert torch.equal(aug.run(aug.program([RGB], ids=[0]), [RGB]), expected)  # type: ignore[arg-type]
    loader = vg.Loader((np.stack([RGB] * 4), [0, 1, 2, 3]), T.Grayscale(), batch_size=2, device="cpu")
    assert [tuple(images.shape) for images, _ in loader] == [(2, 1, 20, 30)] * 2
    assert tuple(T.Grayscale()(RGB).shape) == (1, 20, 30)


def test_one_channel_is_for_the_whole_batch(draw: Any) -> None:
    draw(T.RandomApply([T.Grayscale(3)], p=0.5), 50)
    # Policies choose per image: there it keeps the channels, whatever it says.
    policy = T.RandAugment(1, operations=[T.Grayscale(), "Rotate"])
    assert vg.Augmenter(policy)([RGB] * 9).shape == (9, 3, 20, 30)  # type: ignore[union-attr]


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


@pytest.mark.parametrize(
    "after",
    [
        *(T.RandomHorizontalFlip(p=1.0), T.ColorJitter(0.5), T.CenterCrop(4), T.Cutout(4), T.RandAugment()),
        *(T.RandomApply([T.Invert()]), T.Cond("label", {1: T.Invert()})),
    ],
)
@pytest.mark.parametrize(
    "last",
    [
        *(T.Normalize(0.5, 0.5), T.ToTensor(), T.FiveCrop(4), T.Lambda(abs), T.MixUp(), T.RandomApply([T.MixUp()])),
        T.Cond("epoch", {0: T.Normalize(0.5, 0.5)}),
    ],
)
def test_what_changes_bytes_comes_before_what_is_last(last: T.Transform, after: T.Transform) -> None:
    name = {"RandomApply": "MixUp", "Cond": "Normalize"}.get(type(last).__name__, type(last).__name__)
    accepted = rf"{type(after).__name__}\(.* after {name}; accepted: {type(after).__name__} before {name}$"
    for first in (last, T.Compose([T.Invert(), last])):
        with pytest.raises(T.ArgumentError, match=rf"^Compose: transforms\[2\]={accepted}"):
            T.Compose([T.ToImage(), first, after])


def test_what_may_follow_what_is_last() -> None:
    T.Compose([T.ToDtype("uint8", scale=True), T.Invert(), T.ToDtype("float32"), T.Normalize(0, 1), T.RandomErasing()])
    T.Compose([T.Invert(), T.MixUp(), T.RandomApply([T.SanitizeBoundingBoxes(), T.ClampBoundingBoxes(), T.Identity()])])


def test_normalize_is_for_the_whole_batch(draw: Any) -> None:
    """Known when it is made: of a batch all images may draw the same."""
    normalize = T.Normalize(0.5, 0.5)
    nested = T.Compose([T.Invert(), normalize])
    for make in (
        lambda: T.RandomApply([normalize], p=0.001),
        lambda: T.OneOf([T.Invert(), nested]),
        lambda: T.RandomOrder([T.Invert(), normalize]),
        lambda: T.Cond("label", {0: nested, 1: normalize}),
        lambda: T.RandomChoice([T.Invert(), T.ToDtype()]),
    ):
        with pytest.raises(
            T.ArgumentError, match=r"(Normalize|ToDtype) inside a choice; .* last, outside of the choice"
        ):
            make()
    for always in (T.RandomApply([normalize], p=1.0), T.Cond("epoch", {0: normalize}, default=normalize)):
        assert draw(always, 5).output.is_float


def test_a_dtype_after_floats_changes_the_dtype_alone() -> None:
    """As in torchvision, which scales integers only."""
    image = photo(20, 30)
    normalize = T.Normalize([0.5] * 3, [0.25] * 3)
    wanted = vg.Augmenter(normalize)([image], ids=[0])
    for then in (T.ToDtype(), T.ToDtype(scale=True), T.ConvertImageDtype()):
        assert torch.equal(vg.Augmenter(T.Compose([normalize, then]))([image], ids=[0]), wanted)
    twice = T.Compose([T.ToDtype(scale=True), T.ToDtype()])
    assert torch.equal(vg.Augmenter(twice)([image], ids=[0]), vg.Augmenter(T.ToDtype(scale=True))([image], ids=[0]))


IN_BYTES = (123.7, 116.3, 103.5), (58.4, 57.1, 57.4)


def test_statistics_of_bytes_are_refused_where_fractions_are_meant() -> None:
    image = np.full((4, 4, 3), 200, np.uint8)
    message = (
        r"mean.* got \(123.7, 116.3, 103.5\); accepted: fractions of 1: .* mean=\(0.4851, 0.4561, 0.4059\), std=\(0.229"
    )
    for first in ([], [T.ToDtype(torch.float32, scale=True)], [T.ToDtype(torch.float64, scale=True)]):
        augmenter = vg.Augmenter(T.Compose([*first, T.Normalize(*IN_BYTES)]))
        with pytest.raises(ValueError, match=message):
            augmenter([image])
    with pytest.raises(ValueError, match=r"std.* got \(255.0,\); accepted: fractions of 1: .* std=\(1\)"):
        vg.Augmenter(T.Normalize(0.0, 255.0))([image])
    with pytest.raises(ValueError, match=r"mean=.*123.7.*; accepted: fractions of 1"):
        T.functional.normalize(image, *IN_BYTES)


def test_statistics_of_bytes_may_follow_an_unscaled_to_dtype() -> None:
    image = np.full((4, 4, 3), 200, np.uint8)
    mean, std = np.array(IN_BYTES)
    in_bytes = vg.Augmenter(T.Compose([T.ToDtype(torch.float32, scale=False), T.Normalize(*IN_BYTES)]))([image])
    fractions = vg.Augmenter(T.Normalize(mean / 255, std / 255))([image])
    torch.testing.assert_close(in_bytes, fractions)
