"""Pipelines as Python text: one expression of literals and names, which is read and never run."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

import variegate as vg
from variegate import transforms as T
from variegate.interop.convert.report import ConversionError, ConversionWarning
from variegate_studio.pasted import from_python

TORCHVISION = """
import torch
from torchvision import transforms as tt
from torchvision.transforms import InterpolationMode

size = 224
mean = [0.485, 0.456, 0.406]
train = tt.Compose([
    tt.RandomResizedCrop(size, scale=(0.08, 1.0), interpolation=InterpolationMode.BICUBIC),
    tt.RandomApply([tt.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
    tt.RandomRotation(degrees=(-15, 15)),
    tt.ToTensor(),
    tt.Normalize(mean, [0.229, 0.224, 0.225]),
])
"""
ALBUMENTATIONS = """
import albumentations as A
import cv2

A.Compose([
    A.Resize(64, 32),
    A.HorizontalFlip(p=0.5),
    A.OneOf([A.MotionBlur(p=0.2), A.MedianBlur(blur_limit=(3, 3), p=0.1)], p=0.2),
    A.Rotate(limit=45, border_mode=cv2.BORDER_WRAP),
], bbox_params=A.BboxParams("coco", label_fields=["labels"]))
"""


def test_a_pipeline_of_torchvision() -> None:
    found, report = from_python(TORCHVISION)
    crop = T.RandomResizedCrop(224, scale=(0.08, 1.0), interpolation="bicubic", edges="crop")
    jitter = T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8)
    normal = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert found == T.Compose([crop, jitter, T.RandomRotation(15), normal])
    assert (len(report.converted), report.approximate, report.refused) == (5, {}, {})


def test_a_pipeline_of_albumentations_is_that_of_its_description() -> None:
    blurs = [
        {"__class_fullname__": "MotionBlur", "p": 0.2},
        {"__class_fullname__": "MedianBlur", "blur_limit": (3, 3), "p": 0.1},
    ]
    described = {
        "__class_fullname__": "Compose",
        "transforms": [
            {"__class_fullname__": "Resize", "height": 64, "width": 32},
            {"__class_fullname__": "HorizontalFlip", "p": 0.5},
            {"__class_fullname__": "OneOf", "transforms": blurs, "p": 0.2},
            {"__class_fullname__": "Rotate", "limit": (-45, 45), "border_mode": 3},
        ],
        "bbox_params": {"format": "coco", "label_fields": ["labels"]},
    }
    with pytest.warns(ConversionWarning):
        expected = vg.from_albumentations(described, report=True)
    assert from_python(ALBUMENTATIONS) == expected


def test_a_pipeline_of_timm() -> None:
    text = "timm.data.create_transform(160, is_training=True, auto_augment='rand-m9', re_prob=0.25)"
    found, report = from_python(text)
    assert found == vg.from_timm(160, True, auto_augment="rand-m9", re_prob=0.25)
    assert report.converted == ("create_transform",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[transforms.Resize(64), v2.RandomHorizontalFlip()]", [T.Resize(64), T.RandomHorizontalFlip()]),
        ("    transforms.Resize(64), transforms.RandomInvert(0.5),", [T.Resize(64), T.RandomInvert(0.5)]),
        ("[v2.Resize(64, InterpolationMode.BICUBIC), v2.PILToTensor(), v2.Grayscale()]",
         [T.Resize(64, interpolation="bicubic"), T.Grayscale()]),
        ("n = 64\nT.Compose([T.Resize(n), T.RandomVerticalFlip()])", [T.Resize(64), T.RandomVerticalFlip()]),
        ("from torchvision.transforms import *\nCompose([Resize(64), Grayscale()])", [T.Resize(64), T.Grayscale()]),
        ("nn.Sequential(v2.Resize(64), v2.RandomInvert(0.5))", [T.Resize(64), T.RandomInvert(0.5)]),
        ("v2.Compose([v2.Resize(64), v2.RandomApply(nn.ModuleList([v2.RandomInvert()]), p=0.8)])",
         [T.Resize(64), T.RandomApply([T.RandomInvert()], 0.8)]),
        ("from variegate import transforms as T\nT.Compose([T.RandAugment(2, 5), T.OneOf([T.Invert(), T.Rotate(9)])])",
         [T.RandAugment(2, 5), T.OneOf([T.Invert(), T.Rotate(9)])]),
    ],
)  # fmt: skip
def test_lists_modules_and_own_transforms(text: str, expected: list[T.Transform]) -> None:
    found, report = from_python(text)
    assert (found, report.refused) == (T.Compose(expected), {})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("transforms.Compose([transforms.Lambda(lambda x: x), transforms.Resize(64)])", "transforms[0] Lambda"),
        (
            "v2.Compose([v2.CenterCrop(args.size), v2.Resize(64)])",
            "transforms[0] CenterCrop.size",
        ),
        ("transforms.Compose([Mine(1), transforms.Resize(64)])", "transforms[0] Mine"),
        ("v2.Compose([v2.Pad(4, fill={tv_tensors.Image: 5}), v2.Resize(64)])", "transforms[0] Pad.fill"),
        ("A.Compose([A.Lambda(f), A.Resize(64, 64)])", "transforms[0] Lambda"),
        ("A.Compose([made(0.5), A.Resize(64, 64)])", "transforms[0] made"),
        ("A.Compose([A.HorizontalFlip(p=args.p), A.Resize(64, 64)])", "transforms[0] HorizontalFlip.p"),
        ("A.Compose([A.PixelDropout(dropout_prob=x), A.Resize(64, 64)])", "transforms[0] PixelDropout.dropout_prob"),
        ("A.Compose([A.Downscale(scale_range=0.5), A.Resize(64, 64)])", "transforms[0] Downscale.scale_range"),
        ("A.Compose([A.RandomGamma(gamma_limit=50), A.Resize(64, 64)])", "transforms[0] RandomGamma.gamma_range"),
    ],
)
def test_a_transform_that_cannot_be_read_is_skipped(text: str, place: str) -> None:
    found, report = from_python(text)
    assert found in (T.Resize(64), T.Resize((64, 64)))
    assert list(report.refused) == [place]


ONE = "accepted: one pipeline, of literals and names that are assigned once"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text: got 'no pipeline'|accepted: Python that calls transforms"),
        ("print('hi')", "accepted: Python that calls transforms"),
        ("x = (", r"line 1: got 'x = \('; accepted: Python"),
        ("a = [T.Resize(3)]\nT.Compose(a)", "line 2: .*" + ONE),
        ("t = T.Compose([T.Resize(3)])\nt.transforms.append(T.Invert())", "line 2: got 't.transforms.append.*" + ONE),
        ("t = T.Compose([T.Resize(3)])\nt.transforms += [T.Invert()]", "line 2: .*" + ONE),
        ("t = T.Compose([T.Resize(3)])\nt.transforms = []", "line 2: .*" + ONE),
        ("t = T.Compose([T.Resize(3)])\ndel t.transforms[0]", "line 2: .*" + ONE),
        ("n = 3\nn = 4\nT.Resize(n)", "line 2: got 'n = 4'; " + ONE),
        ("n = 3\nn += 1\nT.Resize(n)", "line 2: .*" + ONE),
        ("if train:\n    n = 3\nT.Resize(n)", "line 1: got 'if train:'; " + ONE),
        ("def get(n=3):\n    return T.Compose([T.Resize(n)])", r"line 1: got 'def get\(n=3\):'; " + ONE),
        ("from .albumentations import Compose\nCompose([Resize(3, 4)])", "line 1: .*" + ONE),
        ("T.Compose([each for each in steps])", r"Compose.transforms: got \[each for each in steps\]"),
        ("T.Compose(*steps, *more)", r"Compose.transforms: got \*steps; accepted: a list of transforms"),
        ("A.Compose([A.Blur(3, 5), A.Resize(64, 64)])", "Blur: got .*; accepted: arguments by their names"),
        ("create_transform(224, no_aug=args.no_aug)", r"create_transform\.no_aug: got args.no_aug"),
        ("timm.data.create_transform(foo=1)", r"create_transform\.foo: got 1"),
        ("from kornia.augmentation import RandomCrop\nRandomCrop(3)", "accepted: Python that calls transforms"),
        ("A.Compose([v2.Resize(3)])", "got 'albumentations and torchvision'; accepted: transforms of one library"),
        ("import variegate as vg\nvg.Compose([vg.Resize(3, interpolation=bicubic)])", "interpolation: got bicubic"),
        ("import variegate as vg\nvg.Compose([vg.Resize(-3)])", "size: got -3"),
        ("import variegate as vg\nvg.Compose([vg.Resize(3, type='Invert')])", "arguments of the class"),
        ("x\0", "null bytes"),
        ("a" * 100_001, "100,001 characters"),
        ("-" * 99_000 + "1", "nested|recursion|too complex"),
        ("A.B" + ".b" * 30_000, "nested|recursion|one pipeline"),
        ("f" + "()" * 30_000, "nested|recursion"),
    ],
)
def test_other_text_is_one_error(text: str, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        from_python(text)


def test_nothing_is_run(tmp_path: Path) -> None:
    target = tmp_path / "ran"
    touch = f"__import__('pathlib').Path({str(target)!r}).touch()"
    found, report = from_python(f"A.Compose([A.HorizontalFlip(p={touch}), A.VerticalFlip(p=1)])")
    assert (found, len(report.refused)) == (T.RandomVerticalFlip(1.0), 1)
    assert not target.exists()


@pytest.mark.parametrize(
    "text",
    [
        "a," * 20_000 + "b=1\n",
        "a = [" + "1," * 20_000 + "]\n",
        "".join(f"x{n} = x{n + 1}\n" for n in range(6000)),
        "a0 = [1]\n" + "".join(f"a{n + 1} = [a{n}, a{n}]\n" for n in range(1000)),
    ],
)
def test_long_texts_take_seconds_at_most(text: str) -> None:
    begin = time.process_time()
    with suppress(ConversionError):
        from_python(text + "t = T.Compose([T.Resize(3)])")
    assert time.process_time() - begin < 5
