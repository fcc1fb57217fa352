"""Magnitude spaces of one's chosen: as they are written, in files, and the steps around what is drawn."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate import transforms as T
from variegate.errors import PolicyError
from variegate.ops.arguments import ArgumentError
from variegate.ops.magnitude import MagnitudeOp
from variegate.policies import PBA, Schedule, Segment, save_policy
from variegate.policies.base_augment import has_base_augment
from variegate.policies.custom_space import CustomSpace
from variegate.policies.schedule import Tuple3
from variegate.policies.spaces import space

IDS = np.arange(400)
IMAGES = np.random.default_rng(0).integers(0, 256, (len(IDS), 16, 16, 3)).astype(np.uint8)


class Dimmed(T.CustomOp):
    magnitude = T.Magnitude(0, 100, signed=True)

    def lut(self, m: float) -> Any:
        return np.clip(np.arange(256) - m, 0, 255).astype(np.uint8)


def policy(chosen: CustomSpace, *tuples: Tuple3) -> PBA:
    return PBA(Schedule((Segment(1, tuples),), chosen))


def augmented(transform: T.Transform, device: str = "cpu") -> Any:
    return np.asarray(vg.Augmenter(transform, device, seed=1, layout="NHWC")(IMAGES, ids=IDS))


def test_ranges_come_from_declarations_or_the_text() -> None:
    names = ("rotate", "gaussianblur", "Hue", Dimmed, "RandomRotate90", "JPEG", f"{__name__}:Dimmed:0..3")
    chosen = CustomSpace("pba", names[:-1])
    assert chosen.operations == (
        "Rotate",
        T.Augmentation("GaussianBlur", "GaussianBlur", (0.5, 5)),
        T.Augmentation("Hue", "Hue", (0.0, 0.5), signed=True),
        T.Augmentation("Dimmed", Dimmed()),
        T.Augmentation("RandomRotate90", T.RandomRotate90(1.0)),
        T.Augmentation("JPEG", "JPEG", (95, 5)),
    )
    assert chosen.names == ("Rotate", "GaussianBlur", "Hue", "Dimmed", "RandomRotate90", "JPEG")
    # A name of the base alone is exactly what it is there.
    assert chosen.resolved.rules["Rotate"] == space("pba").rules["Rotate"]
    typed = CustomSpace("pba", (names[-1], "Rotate:0..45:signed"))
    assert typed.operations == (
        T.Augmentation("Dimmed", Dimmed(), (0, 3)),
        T.Augmentation("Rotate", "Rotate", (0, 45), signed=True),
    )
    assert CustomSpace("pba", (Dimmed((5, 9)),)).operations[0].magnitude == (5, 9)


def test_levels_go_from_end_to_end() -> None:
    chosen = CustomSpace("pba", ("Rotate:0..45:signed", "Posterize:8..4", "Gamma", "TranslateX:0..4"), crop=0.5)
    rules = chosen.resolved.rules
    assert rules["Rotate"].argument(9.0, True) == -45
    assert [rules["Posterize"].argument(float(level)) for level in range(10)] == [8, 8, 7, 7, 6, 6, 5, 5, 4, 4]
    for name, ends in {"Rotate": [0, 45], "Gamma": [0.4, 2.5], "Crop": [0.0, 0.5]}.items():
        assert [rules[name].argument(level) for level in (0.0, 9.0)] == pytest.approx(ends)


def test_every_operation_of_the_catalogue_is_applied() -> None:
    """Of those that pixels can show: the strongest level changes some of them."""
    names = [
        "ElasticTransform",
        "GridDistortion",
        "RandomRotate90",
        "GaussianNoise",
        "MedianBlur",
        "CLAHE",
        "MotionBlur",
    ]
    names += ["Downscale", "RandomPerspective", "VerticalFlip", "RandomGrayscale"]
    for name in [*names, "Dimmed"]:
        chosen = CustomSpace("pba-relative", (f"{__name__}:Dimmed" if name == "Dimmed" else name,))
        out = augmented(policy(chosen, (name, 1.0, 9)))
        changed = (out != IMAGES).any(axis=(1, 2, 3)).mean()
        assert 0.7 < changed < 0.9, name  # a count of 0 leaves one image in five


def test_a_schedule_is_the_same_from_a_file(tmp_path: Path) -> None:
    operations = ("Rotate:0..45:signed", "Invert", "RandomRotate90", Dimmed)
    chosen = CustomSpace("pba-relative", operations, crop=0.25, flip=True, cutout=0.75)
    made = policy(chosen, ("Rotate", 0.5, 9), ("Dimmed", 0.5, 3), ("Crop", 0.5, 4), ("Flip", 1.0, 0))
    save_policy(made.resolved, tmp_path / "schedule.json")
    described = json.loads((tmp_path / "schedule.json").read_text())
    assert described["space"] == {
        "base": "pba-relative",
        "operations": [
            {"type": "Augmentation", "name": "Rotate", "op": "Rotate", "magnitude": [0.0, 45.0], "signed": True},
            "Invert",
            {"type": "Augmentation", "name": "RandomRotate90", "op": {"type": "RandomRotate90", "p": 1.0}},
            T.Augmentation("Dimmed", Dimmed()).to_dict(),
        ],
        "crop": 0.25,
        "flip": True,
        "cutout": 0.75,
    }
    loaded = vg.load_policy(tmp_path / "schedule.json")
    assert loaded == made
    assert T.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    for one in (loaded, pickle.loads(pickle.dumps(made))):
        assert np.array_equal(augmented(one), augmented(made))


def test_what_a_file_names_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "named_by_file.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    described = {"base": "pba", "operations": ["named_by_file:Evil"]}
    schedule = {"format": "variegate-schedule/1", "space": described, "segments": [{"epochs": 1, "policy": []}]}
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(schedule))
    said = r"schedule\.json: space\.operations\[0\]: got 'named_by_file:Evil'; .*import named_by_file first \(commands:"
    with pytest.raises(PolicyError, match=said):
        vg.load_policy(path)


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ({"base": "pbaa"}, r"space\.space: got 'pbaa'; accepted: one of .*did you mean 'pba'"),
        (
            {"operations": "Rotate"},
            r"space\.operations: got 'Rotate'; accepted: a list of names and Augmentations: Name, ",
        ),
        ({"operations": [1]}, r"space\.operations\[0\]: got 1; accepted: an object"),
        ({"operations": ["Rotate", "Rotate:0..1"]}, r"space\.operations\[1\]: got 'Rotate'; accepted: each name once"),
        ({"operations": ["Rotate:0..x"]}, r"space\.operations\[0\]: got 'Rotate:0..x'; accepted: Name, Name:low"),
        ({"operations": ["Rotate:0..inf"]}, r"space\.operations\[0\]: got 'Rotate:0..inf'; accepted: Name, Name:low"),
        ({"operations": ["Rotat"]}, r"space\.operations\[0\]: got 'Rotat'; .*did you mean 'Rotate'"),
        ({"operations": ["Equalize:0..1"]}, r"accepted: Equalize without a range, as it has no magnitude"),
        ({"operations": ["GaussianBlur:-1..1"]}, r"space\.operations\[0\]: got 'GaussianBlur:-1..1'; accepted: Gaus"),
        ({"operations": ["Cutout"], "cutout": 0.5}, r"space\.operations\[0\]: got 'Cutout'; accepted: each name once"),
        ({"crop": 2}, r"space\.crop: got 2; accepted: a number from 0 to 1"),
        ({"flip": 1}, r"space\.flip: got 1; accepted: one of True, False"),
        ({"ranges": {}}, r"space\.ranges: got \['ranges'\]; accepted: base, operations, crop, flip, cutout"),
    ],
)
def test_bad_files_are_named(described: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        CustomSpace.from_dict(described)


def test_a_policy_has_each_step_around_once_and_known_operations() -> None:
    chosen = CustomSpace("pba-relative", ("Rotate",), crop=0.25)
    for tuples, said in (
        ([["Crop", 1, 1]] * 2, "got 'Crop twice'; accepted: crop, flip and cutout once"),
        ([["Flip", 1, 1]], "got 'Flip'; accepted: an operation of the space pba-relative: Rotate, Crop"),
        ([["Rotate", 1, 10]], "got 10; accepted: an integer from 0 to 9"),
    ):
        described = {"format": "variegate-schedule/1", "space": chosen.to_dict()}
        with pytest.raises(PolicyError, match=said):
            vg.load_policy({**described, "segments": [{"epochs": 1, "policy": tuples}]})


def test_steps_around_come_in_their_order_and_as_often_as_said() -> None:
    chosen = CustomSpace("pba-relative", ("Invert",), crop=0.25, flip=True, cutout=0.75)
    every = policy(chosen, ("Invert", 1.0, 0), ("Crop", 1.0, 9), ("Flip", 1.0, 0), ("Cutout", 1.0, 6))
    assert has_base_augment(every)
    assert has_base_augment(T.Compose([T.Resize(8), every]))
    augmenter = vg.Augmenter(every, "cpu", seed=1)
    orders = {
        tuple(line.split()[0] for line in augmenter.explain(id=i, size=(16, 16)).splitlines()[2:6]) for i in range(40)
    }
    assert ("Crop", "HorizontalFlip", "Invert", "Cutout") in orders
    assert all(order.index("Crop") == 0 for order in orders if "Crop" in order)
    flipped = augmented(policy(chosen, ("Flip", 1.0, 0)))
    mirrored = (flipped == IMAGES[:, :, ::-1]).all(axis=(1, 2, 3))
    assert 0.4 < mirrored.mean() < 0.6
    assert np.array_equal(flipped[~mirrored], IMAGES[~mirrored])
    cropped = augmented(policy(chosen, ("Crop", 1.0, 9)))
    shifts = {
        (dy, dx)
        for image, out in zip(IMAGES, cropped, strict=True)
        for dy in range(-4, 5)
        for dx in range(-4, 5)
        if np.array_equal(out[4:12, 4:12], image[4 + dy : 12 + dy, 4 + dx : 12 + dx])
    }
    assert len(shifts) > 75  # of 81: a quarter of the side to every side
    assert np.array_equal(augmented(every), augmented(every, "oracle"))
    for name in ("Crop", "Cutout"):
        assert np.array_equal(augmented(policy(chosen, (name, 1.0, 0))), IMAGES)
        changed = (augmented(policy(chosen, (name, 0.3, 9))) != IMAGES).any(axis=(1, 2, 3)).mean()
        assert 0.2 < changed < 0.4


def test_steps_around_change_no_other_draw() -> None:
    drawn = (("Rotate", 0.7, 6), ("Equalize", 0.7, 0))
    alone = policy(CustomSpace("pba-relative", ("Rotate", "Equalize")), *drawn)
    around = policy(CustomSpace("pba-relative", ("Rotate", "Equalize"), crop=0.25, flip=True), *drawn, ("Crop", 0.0, 9))
    named = PBA(Schedule((Segment(1, drawn),), "pba-relative"))
    assert np.array_equal(augmented(alone), augmented(around))
    assert np.array_equal(augmented(alone), augmented(named))
    assert not has_base_augment(named)


def test_what_a_whole_schedule_cannot_be() -> None:
    whole = policy(CustomSpace("pba", ("Rotate",), flip=True), ("Rotate", 1.0, 1)).resolved
    with pytest.raises(ArgumentError, match="space='pba'; accepted: None, as the schedule has operations of its own"):
        PBA(whole, space="pba")


def _has_one_number(cls: type[T.Transform]) -> bool:
    """Of the package, and this module's own."""
    if not cls.__module__.startswith("variegate."):
        return cls is Dimmed
    return issubclass(cls, MagnitudeOp) or (cls._typical_range is not None and cls._typical_range.build is not None)


ONE_NUMBER = sorted(name for name, cls in T.Transform.registry.items() if _has_one_number(cls))
# Ends of a range, of classes that do not take 0.25 to 0.5.
RANGES = {
    "CLAHE": (1.5, 4),
    "ColorTemperature": (3000, 9000),
    "Cutout": (4, 8),
    "Defocus": (2, 4),
    "GlassBlur": (1, 3),
    "JPEG": (20, 50),
    "MedianBlur": (3, 5),
    "Morphological": (3, 5),
    "MotionBlur": (3, 9),
    "Posterize": (2, 4),
    "RandomGravel": (1, 5),
    "RandomRain": (3, 20),
    "SolarizeAdd": (40, 90),
    "ZoomBlur": (1.1, 1.2),
}


@pytest.mark.parametrize("name", ONE_NUMBER)
def test_every_class_of_one_number_is_named(name: str) -> None:
    """By its name, with a range, and by its module, as classes of users are: all of them are drawn, and go to files."""
    low, high = RANGES.get(name, (0.25, 0.5))
    cls = T.Transform.registry[name]
    texts = (
        f"{name}:{low}..{high}",
        f"{cls.__module__}:{name}:{low}..{high}",
        f"{cls.__module__}:{name}",
        name.lower(),
    )
    if name == "Overlay":  # has to be an instance, with its pictures
        with pytest.raises(PolicyError, match="Overlay needs arguments"):
            CustomSpace("pba-relative", texts[:1])
        return
    assert CustomSpace("pba-relative", texts[:1]) == CustomSpace("pba-relative", texts[1:2])
    for text in texts:
        chosen = CustomSpace("pba-relative", (text,))
        program = vg.Augmenter(policy(chosen, (chosen.names[0], 1.0, 9))).program([(32, 32)] * 20, ids=np.arange(20))
        assert (program.length > 0).any(), text
        assert CustomSpace.from_dict(json.loads(json.dumps(chosen.to_dict()))) == chosen


def test_ranges_may_be_signed() -> None:
    for text in ("Rotate:0..45:signed", f"{__name__}:Dimmed:0..40:signed", "dimmed:0..40:signed"):
        (operation,) = CustomSpace("pba", (text,)).operations
        assert operation.signed
