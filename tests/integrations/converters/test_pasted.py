"""Pipelines as Python text: read as they would run, and never run."""

from __future__ import annotations

from pathlib import Path

import pytest

import variegate as vg
from variegate import transforms as T
from variegate.integrations.converters.pasted import from_python
from variegate.integrations.converters.report import ConversionError, ConversionWarning

TRAIN = """
import torch
from torchvision import transforms as tt
from torchvision.transforms import InterpolationMode, v2

size, mean = 224, [0.485, 0.456, 0.406]
size = 256 - 32
loaders = {
    "train": tt.Compose([
        tt.RandomResizedCrop(size, scale=(0.08, 1.0), interpolation=InterpolationMode.BICUBIC),
        tt.RandomApply([tt.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
        tt.RandomRotation(degrees=-30 + 45),
        tt.ToTensor(),
        tt.Normalize(mean, [0.229, 0.224, 0.225]),
    ]),
    "val": tt.Compose([tt.Resize(256)]),
}
"""
ALBUMENTATIONS = """
import albumentations as A
import cv2

def transforms_of(train):
    blurs = A.OneOf([A.MotionBlur(p=0.2), A.MedianBlur(blur_limit=3, p=0.1)], p=0.2)
    return A.Compose([
        A.Resize(64, 32), A.HorizontalFlip(p=0.5), blurs, A.Rotate(limit=45, border_mode=cv2.BORDER_WRAP)
    ])
"""


def test_the_first_pipeline_of_torchvision_is_read() -> None:
    found, report = from_python(TRAIN)
    crop = T.RandomResizedCrop(224, scale=(0.08, 1.0), interpolation="bicubic", edges="crop")
    jitter = T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8)
    normal = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert found == T.Compose([crop, jitter, T.RandomRotation(15), normal])
    assert (len(report.converted), report.refused) == (5, {})
    assert report.approximate == {"text": (": the first of 2 pipelines, that of line 9",)}


def test_pipelines_of_albumentations_are_those_of_their_objects() -> None:
    found, report = from_python(ALBUMENTATIONS)
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
    }
    with pytest.warns(ConversionWarning):
        expected = vg.from_albumentations(described, report=True)
    assert (found, report) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[transforms.Resize(64), v2.RandomHorizontalFlip()]", [T.Resize(64), T.RandomHorizontalFlip()]),
        ("[v2.Resize(64, InterpolationMode.BICUBIC), v2.PILToTensor(), v2.Grayscale()]",
         [T.Resize(64, interpolation="bicubic"), T.Grayscale()]),
        ("transforms.Resize(64),\ntransforms.RandomHorizontalFlip(),", [T.Resize(64), T.RandomHorizontalFlip()]),
        ("class CFG:\n    n = 64\nT.Compose([T.Resize(CFG.n), T.RandomVerticalFlip()])",
         [T.Resize(64), T.RandomVerticalFlip()]),
        ("nn.Sequential(v2.Resize(64), v2.RandomInvert(0.5))", [T.Resize(64), T.RandomInvert(0.5)]),
        ("from variegate import transforms as T\nT.Compose([T.RandAugment(2, 5), T.OneOf([T.Invert(), T.Rotate(9)])])",
         [T.RandAugment(2, 5), T.OneOf([T.Invert(), T.Rotate(9)])]),
    ],
)  # fmt: skip
def test_lists_modules_and_own_transforms_are_read(text: str, expected: list[T.Transform]) -> None:
    assert from_python(text)[0] == T.Compose(expected)


def test_a_list_that_is_part_of_a_pipeline_is_none_of_its_own() -> None:
    expected = T.Compose([T.Resize(64), T.RandomApply([T.RandomInvert()], 0.8), T.RandomVerticalFlip()])
    for text in (
        "base = [T.Resize(64), T.RandomApply([T.RandomInvert()], 0.8)]\nt = T.Compose(base + [T.RandomVerticalFlip()])",
        "base = [T.Resize(64), T.RandomApply([T.RandomInvert()], 0.8)]\nt = T.Compose([*base, T.RandomVerticalFlip()])",
        "a = [T.RandomInvert()]\nd = Data(T.Compose([T.Resize(64), T.RandomApply(a, 0.8), T.RandomVerticalFlip()]))",
        "print(T.RandomInvert())\nclass D:\n    def __init__(self, n=64):\n        self.t = T.Compose([T.Resize(n), "
        "T.RandomApply(torch.nn.ModuleList([T.RandomInvert()]), p=0.8), T.RandomVerticalFlip()])",
    ):
        assert from_python(text)[0] == expected, text


def test_numbers_of_albumentations_are_the_ends_of_its_ranges() -> None:
    for text, ends in (
        ("A.Affine(rotate=30, p=1)", "RandomAffine((-30.0, -30.0)"),
        ("A.RandomGamma(gamma_limit=50, p=1)", "Gamma((0.01, 0.5))"),
        ("A.Morphological(scale=3, p=1)", "Morphological"),
    ):
        assert repr(from_python(text)[0]).startswith(ends)
    told = from_python("A.Compose([A.Rotate(limit=30, always_apply=False, p=1)])")[1].approximate["text"]
    assert told == (": what the text leaves out of Rotate has the defaults of Albumentations 2, not those of 1",)
    assert "text" not in from_python("A.Compose([A.Rotate(limit=30, border_mode=0)])")[1].approximate


def test_timm_is_read() -> None:
    text = "timm.data.create_transform(160, is_training=True, auto_augment='rand-m9', re_prob=0.25)"
    found, report = from_python(text)
    assert found == vg.from_timm(160, True, auto_augment="rand-m9", re_prob=0.25)
    assert report.converted == ("create_transform",)


def test_nothing_is_run(tmp_path: Path) -> None:
    target = tmp_path / "ran"
    touch = f"__import__('pathlib').Path({str(target)!r}).touch()"
    found, report = from_python(f"{touch}\nA.Compose([A.HorizontalFlip(p={touch}), A.VerticalFlip(p=1)])")
    assert (found, len(report.refused)) == (T.RandomVerticalFlip(1.0), 1)
    assert not target.exists()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("transforms.Compose([transforms.Lambda(lambda x: x), transforms.Resize(64)])", "transforms[0] Lambda"),
        ("transforms.Compose([transforms.Resize(img_size), transforms.Resize(64)])", "transforms[0] Resize.size"),
        ("transforms.Compose([Mine(1), transforms.Resize(64)])", "transforms[0] Mine(1)"),
        (
            "size = 9\ndef made(size):\n    return T.Compose([T.CenterCrop(size), T.Resize(64)])",
            "transforms[0] CenterCrop.size",
        ),
        (
            "size = 9\nif big:\n    size = 99\nt = T.Compose([T.CenterCrop(size), T.Resize(64)])",
            "transforms[0] CenterCrop.size",
        ),
        (
            "class C:\n    n = 9\nC.n = big\nt = T.Compose([T.CenterCrop(C.n), T.Resize(64)])",
            "transforms[0] CenterCrop.size",
        ),
        ("class Invert:\n    pass\nt = T.Compose([Invert(), T.Resize(64)])", "transforms[0] Invert()"),
        ("v2.Compose([v2.Pad(4, fill={tv_tensors.Image: 5}), v2.Resize(64)])", "transforms[0] Pad.fill"),
        ("A.Compose([A.Blur(3, 5), A.Resize(64, 64)])", "transforms[0] Blur"),
        ("A.Compose([made(0.5), A.Resize(64, 64)])", "transforms[0] made(0.5)"),
        ("A.Compose([A.Normalize(mean=cfg.mean), A.Resize(64, 64)])", "transforms[0] Normalize"),
        ("A.Compose([A.PixelDropout(dropout_prob='x'), A.Resize(64, 64)])", "transforms[0] PixelDropout.dropout_prob"),
        ("A.Compose([A.Downscale(scale_range=0.5), A.Resize(64, 64)])", "transforms[0] Downscale.scale_range"),
    ],
)
def test_what_cannot_be_converted_is_skipped(text: str, place: str) -> None:
    found, report = from_python(text)
    assert found in (T.Resize(64), T.Resize((64, 64)))
    assert list(report.refused) == [place]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "accepted: Python that calls transforms"),
        ("print('hi')", "accepted: Python that calls transforms"),
        ("x = (", r"line 1: got 'x = \('; accepted: Python"),
        ("A.Resize(1, 2, 3)", "line 1: Resize: got 3; accepted: arguments by their names"),
        ("transforms.Resize(*sizes)", "accepted: Python that calls transforms"),
        ("ts = [T.Resize(3)]\nts.append(T.Invert())\nt = T.Compose(ts)", "a pipeline that the text does not change"),
        ("t = T.Compose([T.Resize(3)])\nt.transforms.insert(0, T.RandAugment())", "does not change afterwards"),
        ("T.Compose([each for each in steps])", r"line 1: Compose.transforms: got \[each for each in steps\]"),
        ("create_transform(224, no_aug=args.no_aug)", r"create_transform\.no_aug: got args.no_aug"),
        ("a = T.ToTensor()\n" + "a = [a, a]\n" * 40, "values in 13 levels'; accepted: at most"),
        ("a = T.Resize(3)\n" + "a = T.Compose([a])\n" * 400, "values in 41 levels'; accepted: at most"),
        ("from kornia.augmentation import RandomCrop\nRandomCrop(3)", "accepted: Python that calls transforms"),
        ("timm.data.create_transform(foo=1)", r"create_transform\.foo: got 1"),
        ("x\0", "null bytes"),
        ("a" * 100_001, "100,001 characters"),
        *((text, "nested|recursion") for text in ("-" * 99_000 + "1", "A.B" + ".b" * 30_000, "f" + "()" * 30_000)),
    ],
)
def test_other_text_is_one_error(text: str, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        from_python(text)
