"""``vg.from_torchvision`` reads torchvision's objects: by class name, module and attributes, as 0.28 has them."""

from __future__ import annotations

import warnings
from enum import Enum
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from variegate import transforms as T
from variegate.interop.convert import ConversionError, ConversionWarning
from variegate.interop.convert.torchvision import CONVERTED, REFUSED

V1 = "torchvision.transforms.transforms"
V2 = "torchvision.transforms.v2._geometry"
MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)


class InterpolationMode(Enum):
    BILINEAR = "bilinear"


class Policy(Enum):
    CIFAR10 = "cifar10"


def stand_in(name: str, module: str = V2, **attributes: Any) -> Any:
    """An object with the class name, module and attributes of one of torchvision."""
    made = type(name, (), {"__module__": module, "__repr__": lambda self: f"{name}()"})()
    vars(made).update(attributes, training=True, _modules={})
    return made


def compose(*transforms: Any) -> Any:
    return stand_in("Compose", transforms=list(transforms))


def to_dtype(dtype: Any = torch.float32, scale: bool = True) -> Any:
    return stand_in("ToDtype", dtype=dtype, scale=scale)


def erasing(value: Any) -> Any:
    return stand_in("RandomErasing", p=1.0, scale=(0.1, 0.2), ratio=(0.5, 2.0), value=value, inplace=False)


def erased(value: Any) -> T.RandomErasing:
    return T.RandomErasing(1.0, (0.1, 0.2), (0.5, 2.0), value)


def rotation(**arguments: Any) -> Any:
    defaults = {"degrees": [-10.0, 10.0], "interpolation": "nearest", "expand": False, "center": None, "fill": 0}
    return stand_in("RandomRotation", **{**defaults, **arguments})


def random_crop(module: str, padding: Any) -> Any:
    arguments = {"size": (9, 9), "pad_if_needed": False, "fill": 0, "padding_mode": "constant"}
    return stand_in("RandomCrop", module, padding=padding, **arguments)


FLIP = stand_in("RandomHorizontalFlip", p=0.5)
JITTER = stand_in("ColorJitter", brightness=(0.6, 1.4), contrast=None, saturation=None, hue=(-0.1, 0.1))
NORMALIZE = stand_in("Normalize", mean=list(MEAN), std=list(STD), inplace=False)
TO_IMAGE, TO_TENSOR = stand_in("ToImage"), stand_in("ToTensor", V1)
APPLY = stand_in(
    "RandomApply", transforms=[JITTER, stand_in("GaussianBlur", kernel_size=(5, 5), sigma=[0.1, 2.0])], p=0.8
)
POLICY = stand_in("RandAugment", interpolation="nearest", fill=None, num_ops=2, magnitude=9, num_magnitude_bins=31)
RESIZE = stand_in("Resize", size=[40], interpolation=2, max_size=None, antialias=True)
SOLARIZE = stand_in("RandomSolarize", p=1.0, threshold=0.5)
MIXUP, CUTMIX = (stand_in(name, alpha=0.4, num_classes=3, _dist=None) for name in ("MixUp", "CutMix"))
AFFINE = stand_in(
    "RandomAffine", V1, degrees=[-10.0, 10.0], translate=(0.1, 0.1), scale=(0.9, 1.1), shear=[1.0, 2.0, 3.0, 4.0],
    interpolation=InterpolationMode.BILINEAR, fill=(1, 2, 3), center=None,
)  # fmt: skip
AUTO = stand_in("AutoAugment", V1, policy=Policy.CIFAR10, policies=[()], interpolation="nearest", fill=None)
IOU = {"min_scale": 0.3, "max_scale": 1.0, "min_aspect_ratio": 0.5, "max_aspect_ratio": 2.0, "trials": 40}
IOU_CROP = stand_in("RandomIoUCrop", **IOU, options=[0.0, 0.5])
SANITIZE = stand_in("SanitizeBoundingBoxes", min_size=2, min_area=5, labels_getter="default", _labels_getter=None)
CLAMP = stand_in("ClampBoundingBoxes", clamping_mode="auto")
BOXED = [T.RandomIoUCrop(sampler_options=[0.0, 0.5]), T.SanitizeBoundingBoxes(2, 5), T.ClampBoundingBoxes()]

FLIPPED = T.RandomHorizontalFlip()
OURS = T.Normalize(MEAN, STD)
APPLIED = T.RandomApply([T.ColorJitter((0.6, 1.4), hue=(-0.1, 0.1)), T.GaussianBlur(5)], p=0.8)
CHOICE = stand_in("RandomChoice", V1, transforms=[AFFINE, compose(FLIP, AUTO)], p=[1, 3])
ORDER = stand_in("RandomOrder", V1, transforms=[FLIP, stand_in("Identity", "torch.nn.modules.linear")])
NESTED = [
    T.RandomChoice(
        [
            T.RandomAffine((-10.0, 10.0), (0.1, 0.1), (0.9, 1.1), (1.0, 2.0, 3.0, 4.0), "bilinear", (1, 2, 3)),
            T.Compose([FLIPPED, T.AutoAugment("cifar10")]),
        ],
        p=[1, 3],
    ),
    T.RandomOrder([FLIPPED, T.Identity()]),
    OURS,
]
HALF = to_dtype({torch.Tensor: torch.float16, "others": None}, scale=False)


@pytest.mark.filterwarnings("ignore::variegate.interop.convert.ConversionWarning")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (FLIP, FLIPPED),
        (compose(TO_IMAGE), T.Identity()),
        (stand_in("JPEG", quality=75), T.JPEG(75)),
        (stand_in("JPEG", quality=[5, 95]), T.JPEG((5, 95))),
        (random_crop(V1, (1, 3, 2, 4)), T.RandomCrop(9, padding=(1, 3, 2, 4))),
        (random_crop(V2, [1, 2, 3, 4]), T.RandomCrop(9, padding=(1, 3, 2, 4))),  # left, right, top, bottom
        ([FLIP, T.GridMask()], [FLIPPED, T.GridMask()]),
        (compose(RESIZE, FLIP, APPLY, POLICY, TO_IMAGE, to_dtype(), NORMALIZE),
         [T.Resize(40), FLIPPED, APPLIED, T.RandAugment(), OURS]),
        (compose(CHOICE, compose(ORDER, TO_TENSOR), NORMALIZE), NESTED),
        # Floats.
        (compose(FLIP, TO_TENSOR), [FLIPPED, T.ToDtype("float32", scale=True)]),
        (compose(FLIP, TO_IMAGE, HALF, NORMALIZE), [FLIPPED, T.ToDtype("float16", scale=False), OURS]),
        (compose(TO_IMAGE, to_dtype(torch.uint8), FLIP), FLIPPED),
        # Values of pixels are levels here; flips may follow Normalize, because they change no value.
        (compose(TO_TENSOR, SOLARIZE, rotation(fill={torch.Tensor: 0.2, "others": 0}), NORMALIZE, FLIP),
         [T.RandomSolarize(127.5, 1.0), T.RandomRotation(10.0, fill=51), FLIPPED, OURS]),
        (compose(TO_TENSOR, NORMALIZE, erasing(None)), [OURS, erased("random")]),
        (compose(TO_IMAGE, erasing([7.0]), FLIP), [erased((7.0,)), FLIPPED]),
        (compose(FLIP, TO_TENSOR, NORMALIZE, MIXUP), [FLIPPED, T.MixUp(0.4, num_classes=3), OURS]),
        (stand_in("RandomChoice", transforms=[MIXUP, CUTMIX], p=[0.5, 0.5]),
         T.RandomChoice([T.MixUp(0.4, num_classes=3), T.CutMix(0.4, num_classes=3)], p=[0.5, 0.5])),
        (compose(IOU_CROP, SANITIZE, CLAMP), BOXED),
        (compose(IOU_CROP, TO_TENSOR, NORMALIZE, SANITIZE, CLAMP), [*BOXED, OURS]),
    ],
)  # fmt: skip
def test_the_transform_of_a_pipeline(source: Any, expected: Any) -> None:
    assert vg.from_torchvision(source) == (T.Compose(expected) if isinstance(expected, list) else expected)


def test_an_erasing_before_normalize_is_done_behind_it() -> None:
    """To the bit what torchvision does: the value is normalized with the image."""
    converted = vg.from_torchvision(compose(TO_TENSOR, erasing([0.5, 0.2, 1.0]), NORMALIZE))
    output = vg.Augmenter(converted, seed=0)([np.full((32, 32, 3), 80, np.uint8)])[0].numpy()
    values = (np.array([[80 / 255] * 3, [0.5, 0.2, 1.0]]) - MEAN) / STD
    for channel in range(3):
        np.testing.assert_allclose(np.unique(output[channel]), sorted(values[:, channel]), rtol=1e-5)


BILINEAR = rotation(interpolation=InterpolationMode.BILINEAR)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (compose(TO_TENSOR, JITTER, NORMALIZE), r"transforms\[1\] ColorJitter: close: .*works on floats there"),
        (compose(TO_IMAGE, BILINEAR), r"transforms\[1\] RandomRotation: close: .*blended with the fill"),
        (compose(TO_IMAGE, JITTER), r"transforms\[1\] ColorJitter: close: .*hues have 8 bits"),
        (compose(TO_IMAGE, erasing(None)), "noise is uniform over 0..255 here"),
        (compose(MIXUP), r"transforms\[0\] MixUp: close: every image has a share and a partner"),
        (stand_in("Resize", size=[40], antialias=False), "Resize: close: antialias=False makes no difference to PIL"),
    ],
)
def test_what_is_close_is_said(source: Any, message: str) -> None:
    with pytest.warns(ConversionWarning, match=message) as caught:
        vg.from_torchvision(source)
    assert caught[0].filename == __file__


def test_on_pil_images_the_same_classes_are_equal() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vg.from_torchvision(compose(BILINEAR, JITTER, TO_IMAGE, rotation()))


def test_every_class_of_torchvision_is_converted_or_refused() -> None:
    """What ``torchvision.transforms.v2`` 0.28 exports."""
    names = (
        "AugMix AutoAugment CenterCrop ClampBoundingBoxes ClampKeyPoints ColorJitter Compose ConvertBoundingBoxFormat "
        "ConvertImageDtype CutMix ElasticTransform FiveCrop GaussianBlur GaussianNoise Grayscale Identity JPEG Lambda "
        "LinearTransformation MixUp Normalize PILToTensor Pad RGB RandAugment RandomAdjustSharpness RandomAffine "
        "RandomApply RandomAutocontrast RandomChannelPermutation RandomChoice RandomCrop RandomEqualize RandomErasing "
        "RandomGrayscale RandomHorizontalFlip RandomInvert RandomIoUCrop RandomOrder RandomPerspective "
        "RandomPhotometricDistort RandomPosterize RandomResize RandomResizedCrop RandomRotation RandomShortestSize "
        "RandomSolarize RandomVerticalFlip RandomZoomOut Resize SanitizeBoundingBoxes SanitizeKeyPoints ScaleJitter "
        "SetClampingMode TenCrop ToDtype ToImage ToPILImage ToPureTensor ToTensor TrivialAugmentWide "
        "UniformTemporalSubsample"
    )
    assert sorted(names.split()) == sorted({*CONVERTED, *REFUSED})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (compose(FLIP, stand_in("FiveCrop", size=(9, 9))), r"transforms\[1\] FiveCrop: got FiveCrop\(\); accepted: "),
        *((compose(TO_IMAGE, to_dtype(scale=False), operation), rf"transforms\[2\] {name}: .*one with scale=True")
          for name, operation in (("ColorJitter", JITTER), ("RandomInvert", stand_in("RandomInvert", p=1.0)))),
        (compose(NORMALIZE), r"transforms\[0\] Normalize: .*behind ToTensor or ToDtype"),
        (compose(TO_TENSOR, erasing("random"), NORMALIZE), r"transforms\[1\] RandomErasing.value: got 'random'"),
        (compose(TO_TENSOR, NORMALIZE, rotation()), r"transforms\[2\] RandomRotation: .*before Normalize"),
        (compose(stand_in("RandomApply", transforms=[to_dtype()], p=0.5)),
         r"transforms\[0\].transforms\[0\] ToDtype: .*main line"),
        (compose(rotation(interpolation="sinc")), r"transforms\[0\] RandomRotation.interpolation: got 'sinc'"),
        (compose(rotation(method="fast")), r"transforms\[0\] RandomRotation.method: got 'fast'; .*degrees"),
        (compose(to_dtype(torch.int32)), r"transforms\[0\] ToDtype.dtype: got 'int32'; accepted: one of float32"),
        (compose(stand_in("Cut", "my.module")), r"transforms\[0\] Cut: got Cut\(\); accepted: .*vg.from_timm"),
        (compose(abs), r"transforms\[0\] builtin_function_or_method: got <built-in function abs>"),
        (compose(stand_in("NewCrop")), r"transforms\[0\] NewCrop: .*one of AugMix, AutoAugment"),
        (stand_in("SanitizeBoundingBoxes", min_size=1, min_area=1, labels_getter=None),
         r"SanitizeBoundingBoxes.labels_getter: got None; accepted: 'default'"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_named(source: Any, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        vg.from_torchvision(source)
