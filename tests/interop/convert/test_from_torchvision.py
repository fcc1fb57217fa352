"""``vg.from_torchvision`` reads torchvision's objects: by class name, module and attributes, as 0.28 has them."""

from __future__ import annotations

import warnings
from enum import Enum
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.interop.convert.stand_in import stand_in
from variegate import transforms as T
from variegate.interop.convert import ConversionError, ConversionWarning
from variegate.interop.convert.torchvision import REFUSED, SAME, known

V1 = "torchvision.transforms.transforms"
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


class InterpolationMode(Enum):
    BILINEAR = "bilinear"
    LANCZOS = "lanczos"


def compose(*transforms: Any) -> Any:
    return stand_in("Compose", transforms=list(transforms))


def parts(given: Any) -> Any:
    """What a composition converts to, one by one."""
    converted: Any = vg.from_torchvision(given)
    return converted.transforms


def apply(*transforms: Any, p: float = 0.5) -> Any:
    return stand_in("RandomApply", transforms=list(transforms), p=p)


def to_dtype(dtype: Any = torch.float32, scale: bool = True) -> Any:
    return stand_in("ToDtype", dtype=dtype, scale=scale)


def normalize() -> Any:
    return stand_in("Normalize", mean=list(MEAN), std=list(STD), inplace=False)


def erasing(value: Any) -> Any:
    return stand_in("RandomErasing", p=1.0, scale=(0.1, 0.2), ratio=(0.5, 2.0), value=value, inplace=False)


def flip() -> Any:
    return stand_in("RandomHorizontalFlip", p=0.5)


def rotation(**arguments: Any) -> Any:
    defaults = {"degrees": [-10.0, 10.0], "interpolation": "nearest", "expand": False, "center": None, "fill": 0}
    return stand_in("RandomRotation", **{**defaults, **arguments})


def jitter() -> Any:
    return stand_in("ColorJitter", brightness=(0.6, 1.4), contrast=None, saturation=None, hue=(-0.1, 0.1))


TO_IMAGE, TO_TENSOR = stand_in("ToImage"), stand_in("ToTensor", V1)


def test_a_v2_training_pipeline() -> None:
    policy = stand_in("RandAugment", interpolation="nearest", fill=None, num_ops=2, magnitude=9, num_magnitude_bins=31)
    blur = stand_in("GaussianBlur", kernel_size=(5, 5), sigma=[0.1, 2.0])
    resize = stand_in("Resize", size=[40], interpolation=2, max_size=None, antialias=True)
    source = compose(resize, flip(), apply(jitter(), blur, p=0.8), policy, TO_IMAGE, to_dtype(), normalize())
    applied = T.RandomApply([T.ColorJitter((0.6, 1.4), hue=(-0.1, 0.1)), T.GaussianBlur(5)], p=0.8)
    expected = [T.Resize(40), T.RandomHorizontalFlip(), applied, T.RandAugment(), T.Normalize(MEAN, STD)]
    assert vg.from_torchvision(source) == T.Compose(expected)


def test_a_v1_pipeline_with_compositions_within_one_another() -> None:
    auto = stand_in("AutoAugment", V1, policy=Policy.CIFAR10, policies=[()], interpolation="nearest", fill=None)
    affine = stand_in(
        "RandomAffine", V1, degrees=[-10.0, 10.0], translate=(0.1, 0.1), scale=(0.9, 1.1), shear=[1.0, 2.0, 3.0, 4.0],
        interpolation=InterpolationMode.BILINEAR, fill=(1, 2, 3), center=None,
    )  # fmt: skip
    choice = stand_in("RandomChoice", V1, transforms=[affine, compose(flip(), auto)], p=[1, 3])
    order = stand_in("RandomOrder", V1, transforms=[flip(), stand_in("Identity", "torch.nn.modules.linear")])
    source = compose(choice, compose(order, TO_TENSOR), normalize())
    converted = T.RandomAffine((-10.0, 10.0), (0.1, 0.1), (0.9, 1.1), (1.0, 2.0, 3.0, 4.0), "bilinear", (1, 2, 3))
    flipped = T.RandomHorizontalFlip()
    expected = [
        T.RandomChoice([converted, T.Compose([flipped, T.AutoAugment("cifar10")])], p=[1, 3]),
        T.RandomOrder([flipped, T.Identity()]),
        T.Normalize(MEAN, STD),
    ]
    assert vg.from_torchvision(source) == T.Compose(expected)


class Policy(Enum):
    CIFAR10 = "cifar10"


def test_a_list_a_single_transform_and_ours() -> None:
    assert vg.from_torchvision(flip()) == T.RandomHorizontalFlip()
    assert vg.from_torchvision([flip(), T.GridMask()]) == T.Compose([T.RandomHorizontalFlip(), T.GridMask()])
    assert vg.from_torchvision(compose(TO_IMAGE)) == T.Identity()


def test_a_jpeg() -> None:
    for quality, ours in ((75, T.JPEG(75)), ([5, 95], T.JPEG((5, 95)))):
        assert vg.from_torchvision(stand_in("JPEG", quality=quality)) == ours


def test_paddings_of_crops_are_kept_otherwise_by_v2() -> None:
    crop = {"size": (9, 9), "pad_if_needed": False, "fill": 0, "padding_mode": "constant"}
    for module, padding in ((V1, (1, 3, 2, 4)), ("torchvision.transforms.v2._geometry", [1, 2, 3, 4])):
        found = vg.from_torchvision(stand_in("RandomCrop", module, padding=padding, **crop))
        assert found == T.RandomCrop(9, padding=(1, 3, 2, 4)), module


def test_floats_that_are_not_normalised() -> None:
    assert parts(compose(flip(), TO_TENSOR))[-1] == T.ToDtype("float32", scale=True)
    half = compose(flip(), TO_IMAGE, to_dtype({torch.Tensor: torch.float16, "others": None}, scale=False), normalize())
    assert parts(half)[1:] == (T.ToDtype("float16", scale=False), T.Normalize(MEAN, STD))
    assert vg.from_torchvision(compose(TO_IMAGE, to_dtype(torch.uint8), flip())) == T.RandomHorizontalFlip()


def test_operations_on_floats_come_before_the_conversion() -> None:
    """Values of pixels are levels here; flips may follow Normalize, as they change no value."""
    solarize = stand_in("RandomSolarize", p=1.0, threshold=0.5)
    source = compose(TO_TENSOR, solarize, rotation(fill={torch.Tensor: 0.2, "others": 0}), normalize(), flip())
    expected = [T.RandomSolarize(127.5, 1.0), T.RandomRotation(10.0, fill=51), T.RandomHorizontalFlip()]
    assert vg.from_torchvision(source) == T.Compose([*expected, T.Normalize(MEAN, STD)])
    with pytest.warns(ConversionWarning, match=r"transforms\[1\] ColorJitter: works on floats there") as caught:
        vg.from_torchvision(compose(TO_TENSOR, jitter(), normalize()))
    assert caught[0].filename == __file__


def test_an_erasing_before_normalize_is_done_behind_it() -> None:
    """To the bit what torchvision does: the value is normalised with the image."""
    converted = vg.from_torchvision(compose(TO_TENSOR, erasing([0.5, 0.2, 1.0]), normalize()))
    image = np.full((32, 32, 3), 80, np.uint8)
    output = vg.Augmenter(converted, seed=0)([image])[0].numpy()
    expected = (np.array([0.5, 0.2, 1.0]) - MEAN) / STD
    for channel in range(3):
        kept, erased = (80 / 255 - MEAN[channel]) / STD[channel], expected[channel]
        np.testing.assert_allclose(np.unique(output[channel]), sorted((kept, erased)), rtol=1e-5)


def test_erasings_by_stage() -> None:
    assert parts(compose(TO_TENSOR, normalize(), erasing(None)))[-1] == T.RandomErasing(
        1.0, (0.1, 0.2), (0.5, 2.0), "random"
    )
    assert parts(compose(TO_IMAGE, erasing([7.0]), flip()))[0] == T.RandomErasing(1.0, (0.1, 0.2), (0.5, 2.0), (7.0,))
    with pytest.warns(ConversionWarning, match="noise is uniform over 0..255 here"):
        vg.from_torchvision(compose(TO_IMAGE, erasing(None)))


def test_what_torchvision_does_to_tensors_in_another_way_is_said() -> None:
    bilinear = rotation(interpolation=InterpolationMode.BILINEAR)
    with pytest.warns(ConversionWarning, match=r"transforms\[1\] RandomRotation: .*blended with the fill"):
        vg.from_torchvision(compose(TO_IMAGE, bilinear))
    with pytest.warns(ConversionWarning, match=r"transforms\[1\] ColorJitter: hues have 8 bits"):
        vg.from_torchvision(compose(TO_IMAGE, jitter()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vg.from_torchvision(compose(bilinear, jitter(), TO_IMAGE, rotation()))


def test_every_class_of_torchvision_is_converted_or_refused() -> None:
    """What ``torchvision.transforms.v2`` 0.28 exports."""
    names = {
        *("AugMix", "AutoAugment", "CenterCrop", "ClampBoundingBoxes", "ClampKeyPoints", "ColorJitter"),
        *("Compose", "ConvertBoundingBoxFormat", "ConvertImageDtype", "CutMix", "ElasticTransform"),
        *("FiveCrop", "GaussianBlur", "GaussianNoise", "Grayscale", "Identity", "JPEG", "Lambda"),
        *("LinearTransformation", "MixUp", "Normalize", "PILToTensor", "Pad", "RGB", "RandAugment"),
        *("RandomAdjustSharpness", "RandomAffine", "RandomApply", "RandomAutocontrast"),
        *("RandomChannelPermutation", "RandomChoice", "RandomCrop", "RandomEqualize", "RandomErasing"),
        *("RandomGrayscale", "RandomHorizontalFlip", "RandomInvert", "RandomIoUCrop", "RandomOrder"),
        *("RandomPerspective", "RandomPhotometricDistort", "RandomPosterize", "RandomResize"),
        *("RandomResizedCrop", "RandomRotation", "RandomShortestSize", "RandomSolarize"),
        *("RandomVerticalFlip", "RandomZoomOut", "Resize", "SanitizeBoundingBoxes", "SanitizeKeyPoints"),
        *("ScaleJitter", "SetClampingMode", "TenCrop", "ToDtype", "ToImage", "ToPILImage", "ToPureTensor"),
        *("ToTensor", "TrivialAugmentWide", "UniformTemporalSubsample"),
    }
    assert sorted(names - known() - SAME - set(REFUSED)) == []
    assert sorted((known() | SAME | set(REFUSED)) - names) == []


def test_transforms_that_choose_by_boxes() -> None:
    crop = stand_in(
        "RandomIoUCrop",
        **{"min_scale": 0.3, "max_scale": 1.0, "min_aspect_ratio": 0.5, "max_aspect_ratio": 2.0, "trials": 40},
        options=[0.0, 0.5],
    )
    sanitize = stand_in("SanitizeBoundingBoxes", min_size=2, min_area=5, labels_getter="default", _labels_getter=None)
    clamp = stand_in("ClampBoundingBoxes", clamping_mode="auto")
    wanted = T.RandomIoUCrop(sampler_options=[0.0, 0.5]), T.SanitizeBoundingBoxes(2, 5), T.ClampBoundingBoxes()
    assert parts(compose(crop, sanitize, clamp)) == wanted
    *before, normalized = parts(compose(crop, TO_TENSOR, normalize(), sanitize, clamp))
    assert (tuple(before), type(normalized)) == (wanted, T.Normalize)
    with pytest.raises(ConversionError, match=r"SanitizeBoundingBoxes.labels_getter: got None; accepted: 'default'"):
        vg.from_torchvision(stand_in("SanitizeBoundingBoxes", min_size=1, min_area=1, labels_getter=None))


def test_mixes_are_converted_with_a_word_on_their_draws() -> None:
    mixes = [stand_in(name, alpha=0.4, num_classes=3, _dist=None) for name in ("MixUp", "CutMix")]
    with pytest.warns(ConversionWarning, match=r"transforms\[0\] MixUp: every image has a share and a partner"):
        converted = vg.from_torchvision(stand_in("RandomChoice", transforms=mixes, p=[0.5, 0.5]))
    assert converted == T.RandomChoice([T.MixUp(0.4, num_classes=3), T.CutMix(0.4, num_classes=3)], p=[0.5, 0.5])
    with pytest.warns(ConversionWarning, match="every image"):
        behind = parts(compose(flip(), TO_TENSOR, normalize(), mixes[0]))
    assert [type(step).__name__ for step in behind] == ["RandomHorizontalFlip", "MixUp", "Normalize"]


def test_antialias_makes_a_difference_to_tensors_alone() -> None:
    resize = stand_in("Resize", size=[40], interpolation="bilinear", max_size=None, antialias=False)
    with pytest.warns(ConversionWarning, match=r"Resize.antialias=False: makes no difference to PIL images"):
        assert vg.from_torchvision(resize) == T.Resize(40)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (compose(flip(), stand_in("FiveCrop", size=(9, 9))), r"transforms\[1\] FiveCrop: got FiveCrop\(\); accepted: "),
        *((compose(TO_IMAGE, to_dtype(scale=False), operation), rf"transforms\[2\] {name}: .*one with scale=True")
          for name, operation in (("ColorJitter", jitter()), ("RandomInvert", stand_in("RandomInvert", p=1.0)))),
        (compose(normalize()), r"transforms\[0\] Normalize: .*behind ToTensor or ToDtype"),
        (compose(TO_TENSOR, erasing("random"), normalize()), r"transforms\[1\] RandomErasing.value: got 'random'"),
        (compose(TO_TENSOR, normalize(), rotation()), r"transforms\[2\] RandomRotation: .*before Normalize"),
        (compose(apply(to_dtype())), r"transforms\[0\].transforms\[0\] ToDtype: .*main line"),
        (compose(rotation(interpolation="sinc")), r"transforms\[0\] RandomRotation.interpolation: got 'sinc'"),
        (compose(rotation(method="fast")), r"transforms\[0\] RandomRotation.method: got 'fast'; .*degrees"),
        (compose(to_dtype(torch.int32)), r"transforms\[0\] ToDtype.dtype: got 'int32'; accepted: one of float32"),
        (compose(stand_in("Cut", "my.module")), r"transforms\[0\] Cut: got Cut\(\); accepted: .*vg.from_timm"),
        (compose(abs), r"transforms\[0\] builtin_function_or_method: got <built-in function abs>"),
        (compose(stand_in("NewCrop")), r"transforms\[0\] NewCrop: .*one of AugMix, AutoAugment"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_named(source: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        vg.from_torchvision(source)
