"""Cond: chosen by a value that is given, known or drawn."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate import transforms as T
from variegate.program.ops import Op

A, B, C = T.Brightness(1.1), T.Contrast(1.2), T.Color(1.3)
NAMES = {int(Op.BRIGHTNESS): "A", int(Op.CONTRAST): "B", int(Op.SATURATION): "C", 0: "-"}


def chosen(draw: Any, transform: T.Transform, sizes: Any = 4, **kwargs: Any) -> str:
    through_json = T.from_dict(json.loads(json.dumps(transform.to_dict())))
    programs = [draw(t, sizes, **kwargs) for t in (transform, through_json)]
    first, again = ("".join(NAMES[int(op)] for op in program.opcode[:, 0]) for program in programs)
    assert first == again
    return first


@pytest.mark.parametrize(
    ("cases", "values", "expected"),
    [
        ({0: A, 1: B}, [0, 1, 2, 0], "ABCA"),
        ({0: A, 1: B}, np.array([0, 1, 2, 1], np.uint8), "ABCB"),
        ({"0": A, "1": B}, [1, 1, 0, 3], "BBAC"),
        ({"cat": A, "dog": B}, ["dog", "cat", "fish", "cat"], "BACA"),
        ({True: A, False: B}, [True, False, True, True], "ABAA"),
        ({0.5: A, 1: B}, [0.5, 1.0, 2.0, 0.25], "ABCC"),
        ({"cat": A, 1: B}, [0, 1, 2, 1], "CBCB"),
    ],
)
def test_given_discrete_values(draw: Any, cases: Any, values: Any, expected: str) -> None:
    assert chosen(draw, T.Cond("label", cases, default=C), given={"label": values}) == expected


def test_without_a_default_nothing_is_done(draw: Any) -> None:
    assert chosen(draw, T.Cond("label", {7: A}), given={"label": [7, 8, 7, 9]}) == "A-A-"


def test_ranges_are_half_open_and_the_first_wins(draw: Any) -> None:
    cond = T.Cond("score", [(0, 1, A), (0.5, 2, B), (None, 0, C)])
    assert chosen(draw, cond, 6, given={"score": [0, 0.5, 1, 1.999, 2, -5]}) == "AABB-C"


def test_values_known_from_the_image(draw: Any) -> None:
    sizes = [(10, 20, 3), (20, 10, 3), (10, 10, 1)]
    assert chosen(draw, T.Cond("height", {10: A, 20: B}), sizes) == "ABA"
    assert chosen(draw, T.Cond("width", [(None, 15, A), (15, None, B)]), sizes) == "BAA"
    assert chosen(draw, T.Cond("channels", {1: A}, default=B), sizes) == "BBA"
    assert chosen(draw, T.Cond("area", [(0, 150, A), (150, None, B)]), sizes) == "BBA"
    assert chosen(draw, T.Cond("aspect", [(None, 1, A), (1, 1.5, B), (1.5, None, C)]), sizes) == "CAB"


def test_sizes_are_those_of_the_stage(draw: Any) -> None:
    program = draw(T.Compose([T.CenterCrop(8), T.Cond("height", {8: A}, default=B)]), [(10, 20), (8, 8)])
    assert (program.opcode == Op.BRIGHTNESS).any(axis=1).all()


def test_epoch(draw: Any) -> None:
    cond = T.Cond("epoch", [(0, 5, A), (5, None, B)])
    assert [chosen(draw, cond, 2, epoch=e) for e in (0, 4, 5, 99)] == ["AA", "AA", "BB", "BB"]


def test_a_missing_value_is_one_clear_error(draw: Any) -> None:
    with pytest.raises(
        T.ArgumentError, match=r"Cond: by='label'; accepted: uniform, epoch, .*, 'score'; no value 'label' was given"
    ):
        draw(T.Cond("label", {0: A}), 2, given={"score": [1, 2]})
    with pytest.raises(T.ArgumentError, match=r"by='label'; accepted: one value per sample \(3\), but its shape is"):
        draw(T.Cond("label", {0: A}), 3, given={"label": [1, 2]})


@pytest.mark.parametrize("label", [9, [9], np.array([9])])
def test_one_sample_is_explained_by_its_value(label: Any) -> None:
    augmenter = vg.Augmenter(T.Cond("label", {9: A}, default=B), device="oracle")
    assert "Brightness 1.1" in augmenter.explain(0, conditions={"label": label})
    assert "Contrast 1.2" in augmenter.explain(0, conditions={"label": 8})


def test_by_the_objects_of_an_image(draw: Any) -> None:
    objects = [{"text", "car"}, {"car"}, {"dog"}, set()]
    for condition, expected in [
        ({"any_of": ["text", "dog"]}, "ACAC"),
        ({"all_of": ["text", "car"]}, "ACCC"),
        ({"none_of": ["text"]}, "CAAA"),
        ({"any_of": ["car"], "none_of": ["text"]}, "CACC"),
    ]:
        t = T.Cond(by="objects", **condition, then=A, default=C)
        assert chosen(draw, t, given={"objects": objects}) == expected
    numbers = T.Cond("objects", any_of=[3], then=A)
    assert chosen(draw, numbers, given={"objects": [{3}, {4}, {3, 4}, {5}]}) == "A-A-"


def test_objects_of_samples() -> None:
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    t = T.Compose([T.Cond(by="objects", none_of=["text"], then=T.RandomHorizontalFlip(1.0))])
    samples = [{"image": image, "boxes": [[0, 0, 1, 2]], "labels": [label]} for label in ("text", "car")]
    for device in ("oracle", "cpu"):
        augmenter = vg.Augmenter(t, device, layout="NHWC")
        kept, mirrored = augmenter(samples)
        assert (kept["image"].numpy() == image).all()
        assert kept["boxes"].tolist() == [[0, 0, 1, 2]]
        assert (mirrored["image"].numpy() == image[:, ::-1]).all()
        assert mirrored["boxes"].tolist() == [[3, 0, 4, 2]]
        assert (augmenter(samples[0])["image"].numpy() == image).all()  # one alone
    with pytest.raises(TypeError, match="Cond: got images without objects, by which it chooses; accepted: samples"):
        vg.Augmenter(t)([image])
    with pytest.raises(TypeError, match="Cond: got objects without classes"):
        vg.Augmenter(t)([{"image": image, "boxes": [[0, 0, 1, 2]]}])
    with pytest.raises(ValueError, match="got the class 'text' for labels that are numbers; accepted: numbers"):
        vg.Augmenter(t)([{"image": image, "labels": [3]}])
