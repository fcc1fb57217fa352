"""What holds for every transform: it round-trips, fits every size, and draws for an image alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import yaml

from variegate import transforms as T
from variegate.errors import PolicyError
from variegate.executors import reference
from variegate.program.ops import SPECS, Op
from variegate.program.program import Program
from variegate.program.validate import validate

FLIP, GRAY = T.RandomHorizontalFlip(), T.RandomGrayscale(p=0.5)

EXAMPLES: dict[str, list[T.Transform]] = {
    "AutoContrast": [T.AutoContrast()],
    "Brightness": [T.Brightness(1.5), T.Brightness((0.5, 1.5))],
    "CenterCrop": [T.CenterCrop(16), T.CenterCrop((3, 300))],
    "ChannelPermutation": [T.ChannelPermutation((1, 2, 0))],
    "CoarseDropout": [T.CoarseDropout(), T.CoarseDropout(3, (0.1, 0.3), fill="random"), T.CoarseDropout(0, 4, 9)],
    "Color": [T.Color(0.0), T.Color((0.1, 1.9))],
    "ColorJitter": [T.ColorJitter(0.4, (0.5, 1.5), 0.4, 0.1), T.ColorJitter(hue=0.5), T.ColorJitter()],
    "Compose": [T.Compose([T.RandomResizedCrop(24), FLIP, T.Normalize(0.5, 0.5)])],
    "Cond": [
        T.Cond("uniform", [(0, 0.5, FLIP), (0.5, None, T.Invert())]),
        T.Cond("channels", {1: T.Identity(), 3: GRAY}, default=FLIP),
        T.Cond("height", {7: [FLIP, GRAY]}),
    ],
    "Contrast": [T.Contrast(0.5)],
    "ConvertImageDtype": [T.ConvertImageDtype("float16")],
    "Cutout": [T.Cutout(8), T.Cutout((4, 12), num_holes=3, fill=(1, 2, 3))],
    "Equalize": [T.Equalize()],
    "Gamma": [T.Gamma((0.5, 2.0), gain=0.9)],
    "GaussianBlur": [T.GaussianBlur(5), T.GaussianBlur((3, 7), 1.0)],
    "GaussianNoise": [T.GaussianNoise(0.0, (0.05, 0.2))],
    "Grayscale": [T.Grayscale(), T.Grayscale(3)],
    "GridMask": [T.GridMask(), T.GridMask((4, 9), (0.3, 0.6), fill=128)],
    "Hue": [T.Hue((-0.5, 0.5))],
    "Identity": [T.Identity()],
    "Invert": [T.Invert()],
    "MotionBlur": [T.MotionBlur((3, 9)), T.MotionBlur(5, 45.0, 0.5)],
    "Normalize": [T.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))],
    "OneOf": [T.OneOf([FLIP, T.Invert()], p=0.7, weights=[1, 3])],
    "Pad": [T.Pad(3), T.Pad((1, 2), 9, "reflect"), T.Pad([1, 2, 3, 4], padding_mode="edge")],
    "Posterize": [T.Posterize(4), T.Posterize((0, 8))],
    "RGBShift": [T.RGBShift(), T.RGBShift(5, (-3, 3), 0)],
    "RandomAdjustSharpness": [T.RandomAdjustSharpness(2.0)],
    "RandomAffine": [
        T.RandomAffine(30, (0.1, 0.2), (0.5, 2.0), 10),
        T.RandomAffine((0, 90), shear=(0, 5, -5, 5), center=(3, 4), interpolation="bilinear"),
    ],
    "RandomApply": [T.RandomApply([FLIP, T.Invert()], p=0.3)],
    "RandomAutocontrast": [T.RandomAutocontrast()],
    "RandomChannelPermutation": [T.RandomChannelPermutation()],
    "RandomChoice": [T.RandomChoice([FLIP, T.Invert()], p=[0.2, 0.8])],
    "RandomCrop": [
        T.RandomCrop(16, pad_if_needed=True),
        T.RandomCrop((24, 20), padding=(3, 5), pad_if_needed=True, padding_mode="symmetric"),
        T.RandomCrop(1, padding=[1, 2, 3, 4], fill=(9, 8, 7)),
    ],
    "RandomEqualize": [T.RandomEqualize(p=1.0)],
    "RandomErasing": [T.RandomErasing(), T.RandomErasing(1.0, value=(1, 2, 3)), T.RandomErasing(value="random")],
    "RandomGrayscale": [T.RandomGrayscale()],
    "RandomHorizontalFlip": [T.RandomHorizontalFlip(p=0.25)],
    "RandomInvert": [T.RandomInvert()],
    "RandomOrder": [T.RandomOrder([FLIP, T.Invert(), GRAY, T.Rotate(3), T.Posterize(4)])],
    "RandomPerspective": [T.RandomPerspective(), T.RandomPerspective(1.0, p=1.0, fill=7)],
    "RandomPhotometricDistort": [T.RandomPhotometricDistort()],
    "RandomPosterize": [T.RandomPosterize(3)],
    "RandomResizedCrop": [T.RandomResizedCrop(24), T.RandomResizedCrop((9, 31), (0.5, 1.0), interpolation="bicubic")],
    "RandomRotate90": [T.RandomRotate90()],
    "RandomRotation": [
        T.RandomRotation(45),
        T.RandomRotation((0, 360), expand=True, interpolation="bilinear"),
        T.RandomRotation(10, center=(0, 3), fill=(9, 8, 7)),
    ],
    "RandomSolarize": [T.RandomSolarize(128.0)],
    "RandomVerticalFlip": [T.RandomVerticalFlip()],
    "Resize": [T.Resize(24), T.Resize((9, 31), "bicubic"), T.Resize(None, max_size=40), T.Resize(24, max_size=30)],
    "Rotate": [T.Rotate(30), T.Rotate((-10, 10), "bilinear", fill=(1, 2, 3))],
    "SaltAndPepper": [T.SaltAndPepper(), T.SaltAndPepper((0.0, 0.3), salt=1.0)],
    "Sharpness": [T.Sharpness((0.1, 1.9))],
    "ShearX": [T.ShearX((-0.3, 0.3))],
    "ShearY": [T.ShearY(0.3, "bilinear")],
    "ShotNoise": [T.ShotNoise(), T.ShotNoise(3.0)],
    "Solarize": [T.Solarize((0, 256))],
    "SolarizeAdd": [T.SolarizeAdd((0, 110)), T.SolarizeAdd(-5, 200)],
    "SomeOf": [T.SomeOf([FLIP, T.Invert(), GRAY], 2), T.SomeOf([FLIP, T.Invert(), GRAY], (0, 3))],
    "Stretch": [T.Stretch(), T.Stretch(1.5, (0.5, 1.0))],
    "ToDtype": [T.ToDtype("float32"), T.ToDtype("float16", scale=True)],
    "ToImage": [T.ToImage()],
    "TranslateX": [T.TranslateX((-8, 8)), T.TranslateX(0.1, relative=True)],
    "TranslateY": [T.TranslateY(5), T.TranslateY((-0.3, 0.3), relative=True)],
}
CASES = [
    pytest.param(example, id=f"{name}-{i}") for name, examples in EXAMPLES.items() for i, example in enumerate(examples)
]
ODD_SIZES = [(1, 1, 3), (1, 7, 3), (7, 1, 1), (37, 53, 3), (223, 225, 3), (225, 223, 1), (2, 2, 3), (64, 64, 3)]


def own_classes() -> set[str]:
    package = "variegate.transforms."
    return {name for name, cls in T.Transform.registry.items() if cls.__module__.startswith(package)}


def test_every_class_has_an_example_of_itself() -> None:
    assert own_classes() == set(EXAMPLES)
    for name, examples in EXAMPLES.items():
        assert {type(example).__name__ for example in examples} == {name}


def test_every_class_is_exported() -> None:
    assert own_classes() <= set(T.__all__)


@pytest.mark.parametrize("transform", CASES)
def test_round_trip(transform: T.Transform) -> None:
    described = transform.to_dict()
    assert described["type"] == type(transform).__name__
    for again in (described, json.loads(json.dumps(described)), yaml.safe_load(yaml.safe_dump(described))):
        revived = T.from_dict(again)
        assert revived == transform
        assert revived.to_dict() == described
        assert revived.num_slots == transform.num_slots


def test_defaults_are_left_out() -> None:
    assert T.RandomAffine(10).to_dict() == {"type": "RandomAffine", "degrees": [-10, 10]}
    assert T.Rotate(10).to_dict() == {"type": "Rotate", "degrees": 10}
    assert T.RandomErasing().to_dict() == {"type": "RandomErasing"}


def rows_of(program: Program, row: int) -> tuple[Any, ...]:
    """Everything a row says, with rectangles in the place of their index in the batch's table."""
    n = int(program.length[row])
    args = program.args[row, :n].copy()
    rectangles = []
    for k in np.flatnonzero(program.opcode[row, :n] == Op.ERASE):
        first, count = int(args[k, 0]), int(args[k, 1])
        rectangles.append(program.tables.rectangles[first : first + count].tolist())
        args[k, 0] = 0
    return (
        program.opcode[row, :n].tolist(),
        np.nan_to_num(args, nan=-1.0).tolist(),
        program.flags[row, :n].tolist(),
        program.fill[row, :n].tolist(),
        program.out_size[row, :n].tolist(),
        rectangles,
    )


@pytest.mark.parametrize("transform", CASES)
def test_a_row_depends_on_its_own_image_alone(draw: Any, transform: T.Transform) -> None:
    sizes = ODD_SIZES * 4
    ids = [int(i) for i in np.random.default_rng(5).permutation(1 << 20)[: len(sizes)]]
    together = draw(transform, sizes, ids=ids, epoch=3)
    order = np.random.default_rng(6).permutation(len(sizes))
    shuffled = draw(transform, [sizes[i] for i in order], ids=[ids[i] for i in order], epoch=3)
    for position, row in enumerate(order):
        assert rows_of(shuffled, position) == rows_of(together, int(row))
    for row in range(8):
        assert rows_of(draw(transform, [sizes[row]], ids=[ids[row]], epoch=3), 0) == rows_of(together, row)


@pytest.mark.parametrize("transform", CASES)
def test_programs_are_well_formed(draw: Any, transform: T.Transform) -> None:
    program = draw(transform, ODD_SIZES * 8)
    for row in range(program.num_rows):
        n = int(program.length[row])
        assert (program.opcode[row, :n] > 0).all()
        assert (program.opcode[row, n:] == 0).all()
        assert (program.out_size[row, :n] >= 1).all()
        for op, args in program.operations(row):
            used = len(SPECS[op].args)
            assert np.isfinite(args).all() or op is Op.ROTATE
            if op is not Op.ERASE and op is not Op.RESIZED_CROP:
                assert (args[used:] == 0).all()
            if op is Op.ERASE:
                boxes = program.tables.rectangles[int(args[0]) : int(args[0] + args[1])]
                assert len(boxes) == args[1] > 0
                height, width = program.in_shape[row, :2]
                assert (boxes >= [0, 0, 1, 1]).all()
                assert (boxes[:, 0] + boxes[:, 2] <= height).all()
                assert (boxes[:, 1] + boxes[:, 3] <= width).all()


@pytest.mark.parametrize("transform", CASES)
def test_programs_run_and_give_the_sizes_they_state(draw: Any, transform: T.Transform) -> None:
    program = validate(draw(transform, ODD_SIZES, seed=7))
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, size, np.uint8) for size in ODD_SIZES]
    # The reference executor compares each stage's size with the program's.
    outputs = reference.run(program, images)
    assert len(outputs) == len(ODD_SIZES)
    for output, (_, _, channels) in zip(outputs, ODD_SIZES, strict=True):
        assert np.isfinite(output).all()
        assert channels in (output.shape[0], output.shape[-1])


@pytest.mark.parametrize("transform", CASES)
def test_a_batch_may_be_empty(draw: Any, transform: T.Transform) -> None:
    assert draw(transform, []).num_rows == 0


@pytest.mark.parametrize("transform", CASES)
def test_sampling_twice_is_the_same(draw: Any, transform: T.Transform) -> None:
    first, again = (draw(transform, ODD_SIZES * 8, seed=4, epoch=2) for _ in range(2))
    np.testing.assert_array_equal(first.args, again.args)
    np.testing.assert_array_equal(first.opcode, again.opcode)


def test_unknown_names_and_arguments_are_named() -> None:
    with pytest.raises(PolicyError, match=r"transform\.type: got 'Flip'; accepted: one of .*RandomHorizontalFlip"):
        T.from_dict({"type": "Flip"})
    with pytest.raises(PolicyError, match=r"transform\.transforms\[1\]\.degrees: got 'x'; accepted: a number"):
        T.from_dict({"type": "Compose", "transforms": [{"type": "Invert"}, {"type": "Rotate", "degrees": "x"}]})
    with pytest.raises(PolicyError, match=r"transform\.angle: got 3; accepted: arguments of Rotate: degrees, "):
        T.from_dict({"type": "Rotate", "angle": 3})
    with pytest.raises(PolicyError, match=r"transform\.degrees: got None; accepted: a value: Rotate requires it"):
        T.from_dict({"type": "Rotate"})
