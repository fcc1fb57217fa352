"""Images of uint16 and float32 through the public ways: dtypes, single images, targets, replay, refusals."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image
import pytest
import torch

import variegate as vg
from tests.images import photo
from variegate import transforms as T
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.program.depth import Depth
from variegate.transforms import functional as F

Array = npt.NDArray[Any]
DEEP = (Depth.UINT16, Depth.FLOAT32)
IDS = [3, 4, 5]

every_depth = pytest.mark.parametrize("depth", DEEP, ids=str)


def images_of(depth: Depth, channels: int = 3) -> Array:
    """[3, 40, 50, channels] whose values are those of 256 levels."""
    levels = np.stack([np.resize(photo(40, 50), (40, 50, channels)) + np.uint8(i) for i in range(3)])
    if depth is Depth.FLOAT32:
        return (levels / np.float32(255)).astype(np.float32)
    return levels.astype(depth.dtype) * depth.dtype.type(257 if depth is Depth.UINT16 else 1)


def augment(transform: Any, images: Any, **options: Any) -> Any:
    return vg.Augmenter(transform, seed=1, num_threads=1, **options)(images, ids=IDS)


NORMALIZED = T.Compose([T.RandomHorizontalFlip(), T.Normalize((0.5,), (0.25,))])
FORMATS = {
    "as it is": (T.RandomHorizontalFlip(), {}, None),
    "as it is, although floats are asked for": (T.RandomHorizontalFlip(), {"dtype": "float16"}, None),
    "normalized": (NORMALIZED, {}, torch.float32),
    "normalized, float16": (NORMALIZED, {"dtype": "float16", "layout": "NHWC"}, torch.float16),
    "ToDtype": (T.ToDtype("float32", scale=True), {}, torch.float32),
    "ToDtype, uint8": (T.ToDtype("uint8", scale=True), {}, torch.uint8),
    "mixed": (T.CutMix(), {}, None),
    "blended": (T.AugMix(), {}, None),
    "views": (T.MultiView([T.RandomResizedCrop(16), T.CenterCrop(8)]), {}, None),
}


@every_depth
@pytest.mark.parametrize(("transform", "options", "wanted"), FORMATS.values(), ids=list(FORMATS))
def test_dtypes_of_results(depth: Depth, transform: Any, options: Any, wanted: Any) -> None:
    partners = "batch" if transform._mixers else None
    made = vg.Augmenter(transform, **options)(images_of(depth), ids=IDS, partners=partners)
    expected = wanted or getattr(torch, str(depth))
    assert {part.dtype for part in (made if isinstance(made, tuple) else (made,))} == {expected}


POLICY = T.Compose([T.RandomResizedCrop(24), T.TrivialAugmentWide(), T.ColorJitter(0.4, 0.4, 0.4, 0.2)])


@every_depth
@pytest.mark.parametrize("transform", [POLICY, T.AutoAugment(), NORMALIZED], ids=["jitter", "AutoAugment", "flip"])
def test_single_images_are_those_of_batches(depth: Depth, transform: Any) -> None:
    images = images_of(depth)
    batch = augment(transform, images)
    augmenter = vg.Augmenter(transform, seed=1, num_threads=1)
    for n, sample_id in enumerate(IDS):
        assert torch.equal(augmenter([images[n]], ids=[sample_id])[0], batch[n])


@every_depth
def test_draws_and_nearest_geometry_are_those_of_uint8(depth: Depth) -> None:
    transform = T.Compose([T.RandomCrop(30, padding=8, fill=(255, 128, 3)), T.RandomAffine(30, fill=9), T.D4()])
    made = augment(transform, images_of(depth)).numpy()
    wanted = augment(transform, images_of(Depth.UINT8)).numpy() * (depth.white / 255)
    np.testing.assert_allclose(made, wanted, rtol=1e-6)


@every_depth
def test_forms_of_one_image(depth: Depth) -> None:
    image = images_of(depth)[0]
    tensor = torch.from_numpy(image).permute(2, 0, 1).contiguous()
    flipped = np.ascontiguousarray(image[:, ::-1])
    flip = T.RandomHorizontalFlip(1.0)
    assert np.array_equal(flip(image).permute(1, 2, 0), flipped)
    assert np.array_equal(flip(tensor).permute(1, 2, 0), flipped)
    assert np.array_equal(F.hflip(image), flipped)
    assert np.array_equal(F.hflip(tensor).permute(1, 2, 0), flipped)
    assert np.array_equal(F.hflip(image[..., 0]), flipped[..., 0])
    patch = np.full((2, 3, 3), 0.5 * depth.white, depth.dtype)
    assert (F.erase(image, 1, 2, 2, 3, patch)[1:3, 2:5] == patch).all()
    assert np.allclose(F.normalize(image, 0.5, 0.25), (image / depth.white - 0.5) / 0.25, atol=1e-5)


def test_floats_beyond_black_and_white_are_moved_as_they_are() -> None:
    image = np.array([[[-3.5], [0.25], [7.0]]], np.float32)
    assert F.hflip(image).reshape(-1).tolist() == [7.0, 0.25, -3.5]
    assert F.invert(image).reshape(-1).tolist() == [1.0, 0.75, 0.0]
    unscaled = T.Compose([T.ToDtype("float32", scale=False), T.Normalize((1.0,), (2.0,))])
    assert vg.Augmenter(unscaled)([image])[0].reshape(-1).tolist() == [-2.25, -0.375, 3.0]


def test_unscaled_floats_are_the_own_numbers_of_uint16() -> None:
    image = np.array([[[0], [1200], [65535]]], np.uint16)
    plain = T.ToDtype("float32", scale=False)
    assert vg.Augmenter(plain)([image])[0].reshape(-1).tolist() == [0.0, 1200.0, 65535.0]
    normalized = T.Compose([plain, T.Normalize((1000.0,), (200.0,))])
    np.testing.assert_allclose(vg.Augmenter(normalized)([image])[0].reshape(-1), [-5.0, 1.0, 322.675], rtol=1e-6)


@every_depth
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_any_number_of_channels(depth: Depth, channels: int) -> None:
    """Each channel is what it is on its own."""
    maps = [T.RandomRotation(30, interpolation=how) for how in ("bilinear", "bicubic")]
    transform = T.Compose([T.RandomResizedCrop(24), T.Posterize(3), maps[0], T.GaussianBlur(3), maps[1]])
    images = images_of(depth, channels)
    made = augment(transform, images, layout="NHWC")
    assert made.shape == (3, 24, 24, channels)
    for c in range(channels):
        alone = augment(transform, images[..., c : c + 1], layout="NHWC")
        assert torch.equal(made[..., c], alone[..., 0])


@every_depth
def test_targets_follow_as_they_do_with_uint8(depth: Depth) -> None:
    transform = T.Compose([T.RandomAffine(30, scale=(0.8, 1.2)), T.RandomHorizontalFlip(), T.ColorJitter(0.4)])
    made = []
    for kind in (Depth.UINT8, depth):
        mask, boxes = photo(40, 50)[..., 0], np.array([[3, 4, 20, 30]], np.float32)
        points = np.array([[10.0, 12.0]])
        samples = [{"image": image, "mask": mask, "boxes": boxes, "keypoints": points} for image in images_of(kind)]
        made.append(augment(transform, samples))
    for shallow, deep in zip(*made, strict=True):
        assert deep["image"].dtype == getattr(torch, str(depth))
        for key in ("mask", "boxes", "keypoints"):
            assert torch.equal(shallow[key], deep[key])


@every_depth
def test_programs_say_the_depth_that_they_are_for(depth: Depth) -> None:
    images = images_of(depth)
    augmenter = vg.Augmenter(POLICY, seed=1, num_threads=1)
    program = augmenter.program(images, ids=IDS)
    assert program.depth is depth
    assert torch.equal(augmenter.run(program, images), augmenter(images, ids=IDS))
    message = re.escape(f"row 0: image 0 is uint8[40, 50, 3]; sampled for {depth}[40, 50, 3]")
    with pytest.raises(ValueError, match=message):
        augmenter.run(program, images_of(Depth.UINT8))


def test_clips() -> None:
    clips = images_of(Depth.UINT16)[None].repeat(2, axis=0)
    made = vg.Augmenter(T.RandomCrop(20), consistent=True)(clips, ids=[0, 1])
    assert (made.shape, made.dtype) == ((2, 3, 3, 20, 20), torch.uint16)


def test_pixels_among_files_have_their_depth() -> None:
    image = images_of(Depth.UINT16)[0]
    files = EncodedBatch([image, image])
    assert vg.Augmenter(T.CenterCrop(10))(image[None]).dtype == torch.uint16
    made = vg.Augmenter(T.CenterCrop(10), layout="NHWC").decode_and_run(files)
    assert np.array_equal(made[0], image[15:25, 20:30])
    png = io.BytesIO()
    PIL.Image.fromarray(photo(40, 50)).save(png, "PNG")
    message = "images[1]: got an image of uint16 in a batch of uint8; accepted: images of one dtype"
    with pytest.raises(ValueError, match=re.escape(message)):
        vg.Augmenter(T.CenterCrop(10))([png.getvalue(), image])


def test_big_endian_numbers() -> None:
    image = np.array([[[1], [258]]], ">u2")
    assert vg.Augmenter(T.RandomHorizontalFlip(1.0))([image])[0].reshape(-1).tolist() == [258, 1]
    assert T.RandomHorizontalFlip(1.0)(image).reshape(-1).tolist() == [258, 1]
    assert F.horizontal_flip(image).reshape(-1).tolist() == [258, 1]


REFUSED_BATCHES = {
    "several dtypes": (
        [images_of(Depth.UINT8)[0], images_of(Depth.UINT16)[0]],
        ValueError,
        "images[1]: got an image of uint16 in a batch of uint8; accepted: images of one dtype",
    ),
    "float64": (
        np.zeros((1, 4, 4, 3)),
        TypeError,
        "images: got dtype float64; accepted: uint8, uint16 or float32 [N, H, W, C]",
    ),
    "int16": (
        [torch.zeros((4, 4, 3), dtype=torch.int16)],
        TypeError,
        "images[0]: got dtype int16; accepted: uint8, uint16 or float32 [H, W, C]",
    ),
}


@pytest.mark.parametrize(("images", "error", "message"), REFUSED_BATCHES.values(), ids=list(REFUSED_BATCHES))
def test_refused_batches(images: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        vg.Augmenter(T.RandomHorizontalFlip())(images)


@vg.pipeline
def compressed(image: Any) -> Any:
    return F.jpeg(image, 50)


REFUSED_TRANSFORMS = {
    "in a pipeline": compressed,
    "JPEG": T.RandomApply([T.JPEG(50)], p=1e-6),
    "CLAHE": T.OneOf([T.CLAHE(), T.RandomHorizontalFlip()], weights=[1e-6, 1.0]),
    "Overlay": T.RandomFog(),
}


@pytest.mark.parametrize("number", [1, 3], ids=["single", "batch"])
@pytest.mark.parametrize("transform", REFUSED_TRANSFORMS.values(), ids=list(REFUSED_TRANSFORMS))
def test_what_is_defined_on_256_levels_is_refused(transform: Any, number: int) -> None:
    """Whether or not it is drawn, unless it draws in Python."""
    message = "got images of uint16, and is defined on 256 levels; accepted: uint8 images"
    with pytest.raises(ValueError, match=message):
        vg.Augmenter(transform)(images_of(Depth.UINT16)[:number])
