"""Pipelines as Python text: read as they would run, and never run."""

from __future__ import annotations

import time
from contextlib import suppress
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
        ("    transforms.Resize(64),\n    transforms.RandomInvert(0.5),", [T.Resize(64), T.RandomInvert(0.5)]),
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


CROP, GRAY = "T.RandomCrop(32)", "T.Grayscale(3)"
TWO = "t = T.Compose([T.Resize(size), T.Grayscale(3)])"
NOT_CHANGED, NO_LIST = (
    "a pipeline that the text does not change afterwards",
    "a list of transforms that the text writes",
)


@pytest.mark.parametrize(
    "text",
    [
        f"self.t = T.Compose([{CROP}])\nself.t.transforms.append({GRAY})",
        f"if train:\n    t = T.Compose([{CROP}])\nt.transforms.insert(0, {GRAY})",
        f"if train:\n    t = T.Compose([{CROP}])\nelse:\n    t = T.Compose([])\nt.transforms.insert(0, {GRAY})",
        f"d = {{'train': T.Compose([{CROP}])}}\nd['train'].transforms.append({GRAY})",
        f"d = {{'train': T.Compose([{CROP}])}}\nfor k, t in d.items():\n    t.transforms.append({GRAY})",
        f"def get():\n    return T.Compose([{CROP}])\nt = get()\nt.transforms.append({GRAY})",
        f"get = lambda: T.Compose([{CROP}])\nt = get()\nt.transforms.append({GRAY})",
        f"def more(t):\n    t.transforms.append({GRAY})\nt = T.Compose([{CROP}])\nmore(t)",
        f"class D:\n    def __init__(self, t):\n        self.t = t\n        self.t.transforms.append({GRAY})\n"
        f"D(T.Compose([{CROP}]))",
        f"t = T.Compose([{CROP}])\nd = Data(transform=t)\nd.transform.transforms.append({GRAY})",
        f"def f(t=T.Compose([{CROP}])):\n    t.transforms.append({GRAY})",
        f"t = T.Compose([{CROP}])\nfor each in t.transforms:\n    each.size = 3",
        f"a = [{CROP}]\nt = T.Compose(a)\na.append({GRAY})",
        f"a = [{CROP}]\nt = T.Compose(a)\na += [{GRAY}]",
        f"a = [{CROP}]\nt = T.Compose(a)\nfor x in y:\n    a += [{GRAY}]",
        f"a = [{CROP}]\nb = a\nb.append({GRAY})\nt = T.Compose(a)",
        f"a = [{CROP}]\nadd = a.append\nadd({GRAY})\nt = T.Compose(a)",
        f"a = [{CROP}]\nb, c = a, 1\nb[0] = {GRAY}\nt = T.Compose([*a])",
        f"inner = T.Compose([{CROP}])\nt = T.Compose([inner, {GRAY}])\ninner.transforms.append({GRAY})",
        "flip = A.HorizontalFlip(p=0.5)\nt = A.Compose([flip])\nflip.p = 1.0",
        "flip = A.HorizontalFlip(p=0.5)\nt = A.Compose([flip])\nsetattr(flip, 'p', 1.0)",
        f"inner = [{CROP}]\nt = T.Compose([T.RandomApply(inner)])\ninner.append({GRAY})",
        f"a = [{CROP}, {GRAY}]\ndel a[1]\nt = T.Compose(a)",
        f"t = T.Compose([{CROP}, {GRAY}])\ndel t.transforms[1]",
        f"def f(l):\n    l.append({GRAY})\na = [{CROP}]\nf(a)\nt = T.Compose(a)",
        f"a = [{CROP}, {GRAY}]\nrandom.shuffle(a)\nt = T.Compose(a)",
        f"self.t = T.Compose([{CROP}])\nself.t.transforms = self.t.transforms[1:]",
        f"self.t = T.Compose([{CROP}])\nself.t.transforms += [{GRAY}]",
        f"t: object = T.Compose([{CROP}])\nt.transforms = []",
        f"a = t = T.Compose([{CROP}])\nt.transforms = []",
    ],
)
def test_a_pipeline_that_may_change_is_refused(text: str) -> None:
    with pytest.raises(ConversionError, match=NOT_CHANGED):
        from_python(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"a = [{CROP}, {GRAY}]\nt = T.Compose(a[:1])", NO_LIST),
        (f"a = [{CROP}] + ([{GRAY}] if train else [])\nt = T.Compose(a)", NO_LIST),
        (f"a = []\nif train:\n    a += [{CROP}]\na += [{GRAY}]\nt = T.Compose(a)", NOT_CHANGED),
        (f"a = [{CROP}]\na += [{GRAY}]\nt = T.Compose(a)", NOT_CHANGED),
        (f"c = {{'a': [{CROP}]}}\nc['a'].append({GRAY})\nt = T.Compose(c['a'])", NO_LIST),
        (f"a = [{CROP}]\nt = T.Compose(*a, *b)", NO_LIST),
        (f"a = [{CROP}, {GRAY}]\nt = mylib.Compose(a)", "accepted: Python that calls"),
        ("from torchvision.transforms import *\nfrom mylib import *\nt = Compose([Resize(3)])", "accepted: Python"),
        ("from mylib import *\nfrom torchvision.transforms import *\nt = Compose([Resize(3)])", "accepted: Python"),
        (
            "from torchvision import transforms as T\nimport variegate as vg\nt = vg.Compose([T.Grayscale()])",
            "as the others",
        ),
        ("import variegate as vg\nt = vg.Compose([vg.Resize(3, interpolation=bicubic)])", "that the text writes down"),
        (f"t = T.Compose(transforms=[{CROP}], **more)", NO_LIST),
        (f"t = [{CROP}, {GRAY}][:1]", "accepted: Python"),
        (f"t = A.Compose([{CROP}]) + A.VerticalFlip()", "accepted: Python"),
        (f"t = Mine([{CROP}, {GRAY}])", "accepted: Python"),
        ("from .albumentations import Compose, Resize\nt = Compose([Resize(3, 4)])", "accepted: Python"),
        ("import variegate as vg\nt = vg.Compose([vg.Resize(-3)])", "size: got -3"),
        ("import variegate as vg\nt = vg.Compose([vg.Resize(3, type='Invert')])", "arguments of the class"),
    ],
)
def test_a_pipeline_that_is_not_written_down_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConversionError, match=message):
        from_python(text)


@pytest.mark.parametrize(
    "text",
    [
        f"class C:\n    size = 9\nsetattr(C, 'size', 3)\n{TWO.replace('(size', '(C.size')}",
        f"class C:\n    size = 9\nc = C\nc.size = 3\n{TWO.replace('(size', '(C.size')}",
        f"class C:\n    size = 9\nmylib.change(C)\n{TWO.replace('(size', '(C.size')}",
        f"class C:\n    size = 9\n    if big:\n        size = 3\n{TWO.replace('(size', '(C.size')}",
        f"def get(size=9):\n    {TWO}\n    return t\nget(size=3)",
        f"def get(size=9):\n    {TWO}\n    return t\nget(3)",
        f"def get(size=9):\n    {TWO}\n    return t\nmap(get, sizes)",
        "size = 9\nget = lambda size: T.Compose([T.Resize(size), T.Grayscale(3)])\nget(3)",
        "size = 9\nd = {size: T.Compose([T.Resize(size), T.Grayscale(3)]) for size in (3, 4)}",
        f"size = 9\ndef get():\n    {TWO}\nsize = 3\nget()",
        f"size = 9\ndef change():\n    global size\n    size = 3\nchange()\n{TWO}",
        f"def f():\n    size = 9\n    def g():\n        nonlocal size\n        size = 3\n    g()\n    {TWO}",
        f"size = 9\nprint(size := 3)\n{TWO}",
        f"size = 9\n[size := 3 for _ in range(2)]\n{TWO}",
        f"size = 9\nwith nullcontext(3) as size:\n    {TWO}",
        f"size = 9\nmatch 3:\n    case size:\n        pass\n{TWO}",
        f"size = 9\ntry:\n    pass\nexcept E as size:\n    pass\n{TWO}",
        f"size = 9\nfor _ in range(2):\n    {TWO}\n    size = 3",
        f"size = 9\nwhile size := size - 1:\n    {TWO}",
        f"size = 9\ndel size\n{TWO}",
        f"size = np.array([9]) + np.array([3])\n{TWO}",
        f"size = 9\nsize += 1\n{TWO}",
        f"size = 9\nglobals()['size'] = 4\n{TWO}",
        f"class C(Base):\n    size = 9\n{TWO.replace('(size', '(C.size')}",
        f"class C:\n    size = 9\nC.update(size=4)\n{TWO.replace('(size', '(C.size')}",
        f"class C:\n    if big:\n        size = 9\n{TWO.replace('(size', '(C.size')}",
        f"@given\ndef test(size=9):\n    {TWO}",
        f"def array(x):\n    return x\nsize = array([3, 4])\n{TWO}",
    ],
)  # fmt: skip
def test_a_name_of_more_than_one_value_is_not_known(text: str) -> None:
    found, report = from_python(text)
    assert (found, list(report.refused)) == (T.Grayscale(3), ["transforms[0] Resize.size"])


@pytest.mark.parametrize(
    ("step", "place"),
    [
        ("T.ToDtype(torch.float32, scale=not True)", "transforms[0] ToDtype"),
        ("T.ToDtype(torch.float32, scale=(1 > 2))", "transforms[0] ToDtype"),
        ("T.Resize(9, bicubic)", "transforms[0] Resize.interpolation"),
        ("A.Blur(3)", "transforms[0] A.Blur(3)"),
    ],
)
def test_what_torchvision_does_not_say_is_skipped(step: str, place: str) -> None:
    text = (
        f"import albumentations as A\nfrom torchvision.transforms import v2 as T\nT.Compose([{step}, T.Grayscale(3)])"
    )
    found, report = from_python(text)
    assert (found, list(report.refused)) == (T.Grayscale(3), [place])


@pytest.mark.parametrize(
    ("step", "got"),
    [
        ("HorizontalFlip(always_apply=not True, p=0.2)", "HorizontalFlip.always_apply = not True"),
        ("CropAndPad(px=10, keep_size=bool(0))", "CropAndPad.keep_size = bool(0)"),
        ("Affine(scale=(0.5, 1.5), keep_ratio=not True)", "Affine.keep_ratio = not True"),
        ("RandomBrightnessContrast(brightness_by_max=bool(0))", "RandomBrightnessContrast.brightness_by_max = bool(0)"),
        ("PadIfNeeded(9, 9, position=''.join(['rand', 'om']))", "PadIfNeeded.position = ''.join(['rand', 'om'])"),
        ("PadIfNeeded(9, 9, position='middle')", "'middle'"),
        ("Normalize(mean=[m, m, m])", "Normalize.mean = [m, m, m]"),
        ("OneOf([A.Blur(p=1)], p=p)", "OneOf.p = p"),
        ("Sequential([A.Blur(p=1)], p=p)", "Sequential.p = p"),
    ],
)
def test_arguments_of_albumentations_that_are_not_written_down_are_named(step: str, got: str) -> None:
    found, report = from_python(f"A.Compose([A.{step}, A.Resize(64, 64)])")
    assert (found, len(report.refused)) == (T.Resize((64, 64)), 1)
    assert next(iter(report.refused.values())).endswith(f"got {got}")


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        ("T.Invert(),\nT.Rotate(9),\nT.Resize(3)  # last", T.Compose([T.Invert(), T.Rotate(9), T.Resize(3)]), ""),
        ("T.Resize(3)\nT.Resize(4)", T.Resize(3), "the first of 2 pipelines, that of line 1"),
        ("a = T.Resize(3)\nb = T.Resize(4)", T.Resize(3), "the first of 2 pipelines, that of line 1"),
        (
            "a, b = T.Compose([T.Resize(3)]), T.Compose([T.Resize(4)])\nc = T.Compose([T.Resize(5)])",
            T.Resize(3),
            "of 3",
        ),
        ("f(T.Compose([T.Resize(3)]), x=T.Compose([T.Resize(4)]))", T.Resize(3), "the first of 2 pipelines"),
        ("[T.Compose([T.Resize(3)]), T.Compose([T.Resize(4)])]", T.Resize(3), "the first of 2 pipelines"),
        ("a = [T.Resize(3), T.Resize(4)]\nt = T.Compose([T.Resize(5)])", T.Resize(5), ""),
        (
            "import torchvision.transforms as T\nfrom mylib import *\nT.Compose([T.Resize(3)])",
            T.Resize(3),
            "what mylib has",
        ),
        (
            "from torchvision.transforms import Compose, Resize\nfrom mylib import *\nt = Compose([Resize(3)])",
            T.Resize(3),
            "what mylib has",
        ),
        ("[T.Resize(3)] if train else [T.RandomInvert()]", T.Resize(3), "the first of 2 pipelines"),
    ],
)
def test_one_pipeline_of_several_is_taken_with_a_note(text: str, expected: T.Transform, note: str) -> None:
    used = text.replace("T.Invert()", "T.RandomInvert()").replace("T.Rotate", "T.RandomRotation")
    found, report = from_python(used)
    notes = "".join(report.approximate.get("text", ()))
    assert repr(found).count("Resize") == 1
    assert note in notes if note else not notes
    assert isinstance(expected, T.Compose) or found == expected


@pytest.mark.parametrize(
    "text",
    [
        "mean = [0.5]\nC = {'n': 9}\nt = T.Compose([T.Resize(C['n']), T.Grayscale(3)])\nshow(denormalize(t, mean, C))",
        "class C:\n    n = (9, 4)\nclass D:\n    def __init__(self, n):\n        self.n = n\nprint(C)\n"
        "t = T.Compose([T.Resize(C.n[0]), T.Grayscale(3)])",
        "!pip install torch\n%matplotlib inline\n>>> t = T.Compose([T.Resize(9),\n...   T.Grayscale(3)])\n```",
        "views = []\nviews.append(T.Compose([T.Resize(9), T.Grayscale(3)]))",
        "t = [T.Resize(9), T.Compose([T.Grayscale(3)])]",
        f"size = 9\nclass D:\n    size = 3\n    def get(self):\n        {TWO}",
        f"def get(size=9):\n    {TWO}\n    return t\nget()",
        f"size = 4\nsize = size + 5\n{TWO}\nsize = 3",
        f"def val(size=3):\n    return size\nval(4)\ndef get(size=9):\n    {TWO}\n",
        "a = [T.Resize(9)]\na = a + [T.Grayscale(3)]\nt = T.Compose(a)\ndata = Data(t)\ndata.reset()",
        "a = [T.Resize(9)]\nt = T.Compose(list(a) + [T.Grayscale(3)])\nprint(a)",
        "try:\n    from torchvision.transforms import v2 as T\nexcept ImportError:\n"
        "    from torchvision import transforms as T\ndef get():\n    return T.Compose([T.Resize(9), T.Grayscale(3)])",
        "from torchvision.transforms import *\nt = Compose([Resize(9), Grayscale(3)])",
        "import torchvision\nt = torchvision.transforms.Compose([T.Resize(9), T.Grayscale(3)])\nData(t)",
        "def train(t=T.Compose([T.Resize(9), T.Grayscale(3)])):\n    return Data(t)",
        "class D(Dataset):\n    def __init__(self, data, transform=None):\n"
        "        self.data, self.transform = data, transform\n    def __getitem__(self, i):\n"
        "        x = self.data[i]\n        x = self.transform(x)\n        return x.float()\n"
        "t = T.Compose([T.Resize(9), T.Grayscale(3)])\nd = D(data, t)\nd = D(data, transform=t)\nx = t(x).float()",
    ],
)  # fmt: skip
def test_ordinary_scripts_are_read(text: str) -> None:
    found, report = from_python(text)
    assert (found, report.refused, report.approximate) == (T.Compose([T.Resize(9), T.Grayscale(3)]), {}, {})


@pytest.mark.parametrize(
    "text",
    [
        "def f(t):t.x;f(t)\n" * 5000,
        "a," * 20000 + "b=1\n",
        "a = a\n" * 16000,
        "a = []\n" + "a = a + [1]\n" * 8000,
        "class C: s = 1\n" + "C.s\n" * 24000,
        "a = [" + "T.Invert()," * 2000 + "]\n" + "b = T.Compose(a)\n" * 4000,
        "".join(f"x{n} = x{n + 1}\n" for n in range(6000)),
    ],
)  # fmt: skip
def test_long_texts_take_seconds_at_most(text: str) -> None:
    begin = time.process_time()
    with suppress(ConversionError):
        from_python(text + "t = T.Compose([T.Resize(3)])")
    assert time.process_time() - begin < 5  # about one; a machine may be busy
