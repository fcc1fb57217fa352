"""Bands of one image on a GPU, in Triton's interpreter: the pixels of the CPU's run of the whole image."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.executors.cpu.bands import in_bands
from tests.executors.poison import poisoned_executor, run_poisoned
from tests.executors.test_deep import WHITE, deepen
from tests.images import Image, gray, photo
from tests.programs import SEMANTIC, program_of, random_step
from variegate import transforms as T
from variegate.executors.cpu import executor as cpu
from variegate.executors.cuda.executor import lower_for_cuda
from variegate.executors.cuda.regions import DeviceBands, refuse_regions
from variegate.jobs.mapping import MapSpec
from variegate.jobs.regions.run import ImageRun, pixel_file
from variegate.program.depth import Depth
from variegate.program.ops import SPECS, Kind, Op

NORMALIZE = T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)
FILL = (200, 10, 90)
# One tile of the kernel's for each of the image's: the interpreter takes as long for small ones.
ON = poisoned_executor("cpu", (32, 64))

PIPELINES: dict[str, list[Any]] = {
    "normalize": [NORMALIZE],
    "nearest chain": [T.Rotate((30, 30)), T.ShearX((0.3, 0.3), fill=FILL), T.TranslateY((9, 9)), T.Invert()],
    "nearest in doubles": [T.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), interpolation="nearest", fill=FILL)],
    "tables of lines": [T.Pad(9, padding_mode="reflect"), T.Resize((50, 61), interpolation="nearest")],
    "jitter, affine and blur": [
        T.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), interpolation="bilinear", fill=FILL),
        T.ColorJitter(0.4, 0.4, 0.4, 0.1),
        T.GaussianBlur(5, (1.0, 1.0)),
        NORMALIZE,
    ],
    "perspective": [T.RandomPerspective(0.5, p=1.0, interpolation="bicubic"), T.Posterize(3)],
    "displaced": [T.Rotate((20, 20), interpolation="bilinear"), T.ElasticTransform(alpha=20.0, sigma=2.0)],
    "statistics": [T.RandomCrop(45, padding=9, fill=FILL), T.Equalize(), T.AutoContrast(), T.Contrast(1.4)],
    "statistics of stages": [T.Equalize(), T.Sharpness(1.7), T.Equalize(), T.Rotate((9, 9)), T.Contrast(2.0)],
    "noise": [T.GaussianNoise(), T.RandomHorizontalFlip(1.0), T.SaltAndPepper(), T.Cutout(16)],
    "erased normalized": [T.MedianBlur(3), NORMALIZE, T.RandomErasing(1.0, value="random")],
    "mixed": [T.AugMix(mixture_width=2, chain_depth=1), NORMALIZE],
    "overlaid": [
        T.RandomSnow(method="texture", p=1.0),
        T.Morphological(scale=(3, 3)),
        T.RandomRain(p=1.0),
    ],
    "resized": [T.RandomResizedCrop((40, 70)), T.RandomHorizontalFlip(1.0), T.Resize((33, 90)), T.Invert()],
}


def check_regions(transform: Any, image: Image, tile: int, **options: Any) -> None:
    augmenter = vg.Augmenter(transform, device="cpu", seed=1, num_threads=1, **options)
    program = augmenter.plan_one(image.shape, 5)[1]
    refuse_regions(program)
    made = in_bands(program, image, tile, DeviceBands(ON))
    expected = augmenter([image], ids=[5])[0].numpy()
    if augmenter.layout == "NCHW":
        expected = expected.transpose(1, 2, 0)
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made, expected)


# Beside these, values before a map and a filter: pixels of uint8 are read through their tables.
DEEP: dict[str, list[Any]] = {
    **{name: steps for name, steps in PIPELINES.items() if name != "overlaid"},  # which is defined on 256 levels
    "percentiles": [T.RandomCrop(45, padding=9, fill=FILL), T.PercentileStretch(5, 90), T.Equalize(), T.Invert()],
    "values before": [T.Invert(), T.Rotate((20, 20), interpolation="bilinear"), T.Solarize(90), T.Sharpness(1.5)],
}


def _deep_cases() -> Iterator[Any]:
    quick = ["statistics", "percentiles", "values before", "displaced", "noise", "mixed", "resized"]
    for name in DEEP:
        for depth in WHITE:
            is_quick = name in quick and quick.index(name) % 2 == (depth is Depth.UINT16)
            yield pytest.param(name, depth, id=f"{name}-{depth}", marks=[] if is_quick else [pytest.mark.slow])


@pytest.mark.parametrize(("name", "depth"), list(_deep_cases()))
def test_deep_images_in_regions(name: str, depth: Depth) -> None:
    """As the engine plans it; the CPU's pixels, to 1 unit of 65,535 or to 1e-5."""
    (image,), _ = deepen([photo(31, 70)], depth, 3)
    work = MapSpec(T.Compose(DEEP[name]), 1, "float32", "NHWC", "composed")
    engine: Any = SimpleNamespace(executor="cuda")
    program = ImageRun(engine, work, pixel_file(image), 5, tile=40).plan.program
    made = in_bands(program, image, 40, DeviceBands(ON))
    expected = work.augmenter("cpu", 1)([image], ids=[5])[0].numpy()
    assert made.dtype == expected.dtype
    # A unit that is normalized is one of 65,535 by the least deviation, 0.224.
    unit = 1e-5 if depth is Depth.FLOAT32 else 1 if made.dtype == np.uint16 else 7e-5
    np.testing.assert_allclose(made, expected, rtol=0, atol=unit)


GRAY = ("nearest chain", "jitter, affine and blur", "statistics", "noise", "erased normalized", "mixed", "resized")


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_in_regions(name: str) -> None:
    check_regions(T.Compose(PIPELINES[name]), photo(31, 70), 40)


@pytest.mark.parametrize("name", GRAY)
def test_gray_images_in_regions(name: str) -> None:
    check_regions(T.Compose(PIPELINES[name]), gray(30, 45), 25, layout="NHWC", dtype="float16")


@pytest.mark.parametrize("op", [op for op in SEMANTIC if SPECS[op].kind is Kind.POSITION], ids=lambda op: op.name)
def test_each_instruction_by_position(op: Op) -> None:
    image = photo(31, 45)
    program = program_of([[random_step(np.random.default_rng(int(op)), op, 31, 45)]], [image])
    made = in_bands(lower_for_cuda(program), image, 12, DeviceBands(ON))
    np.testing.assert_array_equal(made, cpu.run(program, [image], 1)[0])


def test_whole_images_after_regions_are_none() -> None:
    """What kernels learned of regions they keep."""
    transform = T.Compose([T.GaussianNoise(), T.Rotate((20, 20), interpolation="bilinear")])
    check_regions(transform, photo(50, 70), 40)
    augmenter = vg.Augmenter(transform, device="cpu", seed=1, num_threads=1)
    made = run_poisoned(ON, augmenter.program([photo(50, 70)], ids=[5]), [photo(50, 70)])[0]
    np.testing.assert_array_equal(made, augmenter([photo(50, 70)], ids=[5])[0].numpy())


@pytest.mark.parametrize(
    ("transform", "size", "said"),
    [
        (T.JPEG(50), (50, 60), "JPEG: runs on device='cpu'"),
        (T.CLAHE(), (50, 60), "CLAHE of an image in tiles runs on CPUs alone; accepted: devices cpu:0"),
        (T.GlassBlur(), (50, 60), "Scatter of an image in tiles runs on CPUs alone"),
        (T.Rotate((9, 9), padding_mode="wrap"), (50, 60), "padding_mode of an image in tiles runs on CPUs alone"),
        (T.RandomHorizontalFlip(1.0), (50, 60, 5), "many channels of an image in tiles runs on CPUs alone"),
        (T.ElasticTransform(), (3, 40_000), r"interpolated, 40,000 pixels a side, .* accepted: 32,767 at most"),
        (T.Rotate((9, 9), interpolation="bilinear"), (3, 70_000), r"70,000 pixels a side, .* accepted: 65,535 at most"),
    ],
)
def test_what_regions_refuse(transform: Any, size: tuple[int, ...], said: str) -> None:
    program = vg.Augmenter(transform, device="cpu").plan_one((*size, 3)[:3], 0)[1]
    with pytest.raises(ValueError, match=said):
        refuse_regions(program)
