"""Images in bands: to the bit what the whole image's run makes, whatever the program, the sizes and the bands."""

from __future__ import annotations

import random

import numpy as np
import pytest

import variegate as vg
from tests import oracle
from tests.executors.cpu.bands import check_bands, in_bands
from tests.images import gray, noise, photo
from tests.programs import OUTPUTS, SEMANTIC, program_of, random_step
from variegate import transforms as T
from variegate.executors.cpu import executor as cpu
from variegate.program.lowering import lower
from variegate.program.ops import Op
from variegate.transforms import Transform

NORMALIZE = T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)
FILL = (200, 10, 90)


def one_of(r: random.Random) -> Transform:
    """Any operation or policy of the catalogue."""
    how, fill = r.choice(["nearest", "bilinear", "bicubic"]), r.choice([0, FILL])
    real = r.choice(["nearest", "bilinear"])
    made: list[Transform] = [
        T.RandomHorizontalFlip(1.0), T.RandomVerticalFlip(1.0), T.CenterCrop(r.randint(5, 80)),
        T.Rotate((-180, 180), interpolation=how, fill=fill), T.ShearX((-0.5, 0.5), interpolation=how, fill=fill),
        T.ShearY((-0.5, 0.5), interpolation=how), T.TranslateX((-30, 30), interpolation=how, fill=fill),
        T.TranslateY((-30, 30)), T.RandomAffine(90, (0.2, 0.2), (0.5, 2), 20, interpolation=real, fill=fill),
        T.RandomPerspective(0.5, p=1.0, interpolation=how, fill=fill), T.GridDistortion(interpolation=how),
        T.ElasticTransform(alpha=r.choice([10.0, 80.0]), sigma=r.choice([2.0, 30.0]), interpolation=how, fill=fill),
        T.OpticalDistortion(interpolation=how), T.ThinPlateSpline(interpolation=how),
        T.OpticalFlowWarp(interpolation=how), T.Pad(r.randint(1, 9), fill=fill),
        T.Pad(r.randint(1, 70), padding_mode=r.choice(["edge", "reflect", "symmetric"])),
        T.Resize((r.randint(1, 90), r.randint(1, 130)), interpolation=r.choice([how, "box", "hamming", "lanczos"])),
        T.RandomResizedCrop(r.choice([17, (33, 64)]), interpolation=how),
        T.RandomCrop((r.randint(1, 50), r.randint(1, 50)), pad_if_needed=True, fill=fill),
        T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomGrayscale(1.0), T.Brightness(1.3), T.Contrast(1.7), T.Color(0.3),
        T.Posterize(3), T.Solarize(100), T.Invert(), T.AutoContrast(), T.Equalize(), T.Contrast(0.4),
        T.ChannelPermutation(), T.RGBShift(), T.Sharpness(1.8), T.GaussianBlur(r.choice([3, 23]), (0.1, 5.0)),
        T.MotionBlur(9), T.MedianBlur(r.choice([3, 5, 7])), T.CLAHE(), T.UnsharpMask(), T.Edges(), T.Emboss(),
        T.GaussianNoise(), T.SaltAndPepper(), T.ShotNoise(), T.RandomErasing(1.0),
        T.RandomErasing(1.0, value="random"), T.Cutout(16), T.CoarseDropout(), T.GridMask(), T.OcclusionDiffusion(),
        T.JPEG((10, 95)), T.RandAugment(2, 9), T.TrivialAugmentWide(), T.AutoAugment(),
    ]  # fmt: skip
    return r.choice(made)


NAMED: dict[str, list[Transform]] = {
    "nothing": [],
    "normalize": [NORMALIZE],
    "exact geometry": [T.Rotate((30, 30), interpolation="bicubic"), T.ShearX((0.3, 0.3), interpolation="bicubic")],
    "nearest chain": [T.Rotate((30, 30)), T.ShearX((0.3, 0.3), fill=FILL), T.TranslateY((9, 9)), T.Invert()],
    "statistics in a row": [T.RandomCrop(45, padding=9, fill=FILL), T.Equalize(), T.AutoContrast(), T.Contrast(1.4)],
    "statistics of stages": [T.Equalize(), T.GaussianBlur(9), T.Equalize(), T.Rotate((9, 9)), T.Contrast(2.0)],
    "jitter and affine": [
        T.ColorJitter(0.4, 0.4, 0.4, 0.1),
        T.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), interpolation="bilinear"),
        NORMALIZE,
    ],
    "filters in a row": [T.Equalize(), T.MedianBlur(5), T.Sharpness(2.0), T.GaussianBlur(23, (5.0, 5.0)), T.CLAHE()],
    "far filters": [T.RandomHorizontalFlip(1.0), T.ChromaticAberration(0.2, 0.2, "red_blue"), T.GlassBlur(0.0, 3, 3)],
    "zoomed": [T.ZoomBlur(1.4, 0.05), T.Morphological((7, 4)), T.Invert()],
    "noise moved": [T.GaussianNoise(), T.RandomHorizontalFlip(1.0), T.ShotNoise(), T.SaltAndPepper()],
    "erased normalized": [T.RandAugment(2, 9), NORMALIZE, T.RandomErasing(1.0, value="random")],
    "mixed of chains": [T.AugMix(), NORMALIZE],
    "mixed as bytes": [T.RandomResizedCrop(50), T.AugMix()],
    "coded last": [T.Rotate((20, 20)), T.JPEG((30, 30)), T.JPEG((40, 40))],
    "coded twice": [T.JPEG((30, 30)), T.Rotate((20, 20), interpolation="bilinear"), T.JPEG((80, 80)), NORMALIZE],
    "resized in both orders": [T.Resize((40, 150)), T.Invert(), T.Resize((120, 30), interpolation="lanczos")],
    "overlaid": [
        *(T.RandomRain(p=1.0), T.RandomHorizontalFlip(1.0), T.Spatter(p=1.0), T.RandomGravel(p=1.0)),
        *(T.RandomSnow(p=1.0), T.Illumination(p=1.0), NORMALIZE),
    ],
    "displaced": [
        T.Rotate((20, 20), interpolation="bilinear"),
        T.ElasticTransform(),
        T.RandomPerspective(0.5, p=1.0, interpolation="bilinear"),
    ],
}


@pytest.mark.parametrize("geometry", ["composed", "exact"])
@pytest.mark.parametrize("name", NAMED)
def test_a_pipeline_in_bands(name: str, geometry: str) -> None:
    transform = T.Compose(NAMED[name]) if NAMED[name] else T.Compose([T.Identity()])
    for image, tile in ((photo(83, 121), 32), (gray(70, 61), 17), (photo(40, 50), 64)):
        check_bands(transform, image, tile, id=5, geometry=geometry)


DEEP: dict[str, list[Transform]] = {
    **{name: NAMED[name] for name in ("nothing", "normalize", "exact geometry", "nearest chain", "jitter and affine")},
    **{name: NAMED[name] for name in ("far filters", "zoomed", "noise moved", "erased normalized", "displaced")},
    **{
        name: NAMED[name]
        for name in ("statistics in a row", "mixed of chains", "mixed as bytes", "resized in both orders")
    },
    "filters": [T.Equalize(), T.MedianBlur(5), T.Sharpness(2.0), T.GaussianBlur(23, (5.0, 5.0)), T.AutoContrast()],
}


@pytest.mark.parametrize("kind", [np.uint16, np.float32])
@pytest.mark.parametrize("name", DEEP)
def test_a_deep_image_in_bands(name: str, kind: type[np.generic]) -> None:
    rng = np.random.default_rng(6)
    transform = T.Compose(DEEP[name] or [T.Identity()])
    for shape, tile in (((83, 121, 3), 32), ((70, 61, 1), 17)):
        image = (rng.random(shape) * (65_535 if kind is np.uint16 else 1.5)).astype(kind)
        check_bands(transform, image, tile, id=5)


@pytest.mark.parametrize("op", SEMANTIC, ids=lambda op: op.name)
def test_each_instruction_in_bands(op: Op) -> None:
    rng = np.random.default_rng(int(op))
    for image, tile in ((photo(41, 53), 16), (gray(20, 31), 7)):
        program = program_of([[random_step(rng, op, *image.shape[:2])]], [image], OUTPUTS[int(op) % len(OUTPUTS)])
        expected = cpu.run(program, [image], 1)[0].copy()
        made = in_bands(lower(program, "composed"), image, tile)
        if program.output.layout == "NCHW":
            expected = expected.transpose(1, 2, 0)
        np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize("seed", range(50))
def test_any_pipeline_in_any_bands(seed: int) -> None:
    r = random.Random(seed)
    sizes = [(1, 1), (1, 50), (50, 1), (3, 3), (2, 77), (64, 64), (90, 131), (100, 37)]
    height, width = r.choice(sizes)
    image = noise(height, width, r.choice([1, 3, 3]), seed)
    if r.random() < 0.5:
        image = (image // 4 + 30).astype(np.uint8)
    tile = r.choice([1, 3, 16, 33, 200] if height * width < 1000 else [13, 33, 50, 200])
    chain = [one_of(r) for _ in range(r.randint(1, 6))]
    chain += [T.AugMix()] * (r.random() < 0.1) + [NORMALIZE] * (r.random() < 0.5)
    check_bands(T.Compose(chain), image, tile, r.randint(0, 99), geometry=r.choice(["composed", "exact"]))


WIDE: list[Transform] = [
    T.Compose([T.RandomHorizontalFlip(1.0), T.Equalize(), T.GaussianNoise()]),
    T.Compose([T.Contrast(1.5), T.GaussianBlur(9), NORMALIZE]),
    T.Compose([T.TranslateX((2000, 2000)), T.RandomErasing(1.0, value="random")]),
    T.Resize((2, 80_000), interpolation="nearest"),
    T.Resize((2, 333)),
    T.Compose([T.RandomCrop((3, 40_000)), T.CLAHE(), T.Sharpness(1.7)]),
    T.Pad(9, padding_mode="reflect"),
]


@pytest.mark.parametrize("transform", WIDE, ids=str)
def test_sides_beyond_the_ordinary_limit(transform: Transform) -> None:
    image = noise(3, 70_000)
    augmenter = vg.Augmenter(transform, device="cpu", seed=1, layout="NHWC", num_threads=1)
    with pytest.raises(ValueError, match="32,767"):
        augmenter([image])
    sampled, fused = augmenter.plan_one(image.shape, 2)
    expected = oracle.run(sampled, [image])[0]
    np.testing.assert_array_equal(in_bands(fused, image, 1000), expected)


def test_what_bands_refuse() -> None:
    for transform in (
        T.RandomPerspective(p=1.0, interpolation="bilinear"),
        T.Rotate((9, 9)),
        T.RandomRotation((90, 90), expand=True),
        T.ElasticTransform(),
    ):
        fused = vg.Augmenter(transform, device="cpu").plan_one((3, 70_000, 3), 0)[1]
        with pytest.raises(ValueError, match=r"tiles: got 3 x 70,000 pixels, .*; accepted: sides of at most 32,767"):
            in_bands(fused, noise(3, 70_000), 1000)
    for other, said in (
        (T.MixUp(), "MixUp for one image"),
        (T.FiveCrop(20), "5 crops of 20x20 is done to a finished tensor"),
        (T.MultiView([T.Invert(), T.Invert()]), "MultiView"),
    ):
        with pytest.raises(ValueError, match=said):
            vg.Augmenter(other, device="cpu").plan_one((50, 50, 3), 0)
