"""What cannot be traced is refused with the line of the user's source."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.pipelines.oracle import assert_refused_here
from variegate.transforms import functional as F

Function = Callable[..., Any]
count = 0


def by_pixels(image: Any) -> Any:
    if image.mean() > 10:  # here
        image = F.invert(image)
    return image


def by_a_library(image: Any) -> Any:
    return F.rotate(image, np.mean(image))  # here


def swallowing(image: Any) -> Any:
    try:
        return F.rotate(image, 3) if image.mean() > 3 else image  # here
    except ValueError:
        return image


def counting(image: Any) -> Any:
    global count
    if vg.coin():  # here
        count = 3
    return F.rotate(image, count)


def loop(image: Any) -> Any:
    while vg.coin(0.5):  # here
        image = F.invert(image)
    return image


def loop_that_breaks(image: Any) -> Any:
    while True:
        image = F.invert(image)  # here
        if vg.coin():
            break
    return image


def times(image: Any) -> Any:
    for _ in range(vg.randint(3)):  # here
        image = F.invert(image)
    return image


def raising(image: Any, label: Any) -> Any:
    if label < 0:
        raise ValueError("a label")  # here
    return image


def undecided(image: Any, label: Any) -> Any:
    return F.rotate(image, sorted([label, 3])[0])  # here


def one_branch(image: Any) -> Any:
    if vg.coin():
        amount = 3
    return F.rotate(image, amount)  # here


def two_kinds(image: Any) -> Any:
    mode = "nearest"
    if vg.coin():
        mode = None  # type: ignore[assignment]
    return F.rotate(image, 3, mode)  # type: ignore[arg-type]  # here


def nothing(image: Any) -> Any:
    if vg.coin():  # here
        return F.invert(image)


def other_size(image: Any) -> Any:
    other = F.rotate(image, 45, expand=True)
    return F.translate_x(image, other.width)  # here


def too_few(image: Any) -> Any:
    return vg.select(vg.randint(4), [F.invert, F.equalize], image)  # here


def bad_coin(image: Any) -> Any:
    return F.invert(image) if vg.coin(1.5) else image  # here


def device(image: Any) -> Any:
    return F.invert(image, device="oracle")  # here


def returned_number(image: Any) -> Any:  # here
    return vg.uniform()


def in_a_sort(image: Any) -> Any:
    order = functools.reduce(lambda a, b: a if a > b else b, [vg.uniform(), vg.uniform()])
    return F.rotate(image, order)


def by_its_letters(image: Any) -> Any:
    angle = f"{vg.uniform(0, 9):.1f}"
    return F.rotate(image, float(angle))  # here


def inner_names(image: Any, label: Any) -> Any:
    while label * 2 + 1 > vg.uniform(0, 9) and image.height != 3:  # here
        image = F.invert(image)
    return image


def of_many_words(image: Any, label: Any) -> Any:
    for _ in range(6):
        label = label + vg.choice([1, 2], p=[0.5, 0.5])
    return F.rotate(image, [1, 2][int(label)]) if label else label  # here


CASES: list[tuple[Function, str]] = [
    (by_pixels, "image.mean depends on pixels"),
    (by_a_library, "depends on pixels"),
    (swallowing, "image.mean depends on pixels"),
    (counting, "a branch assigns a global, by a condition that differs"),
    (
        loop,
        r"`while` by <vg.coin\(0.5\)>, which differs from sample to sample; accepted: loops whose end is a constant",
    ),
    (loop_that_breaks, "more than 10,000 values; accepted: loops whose end is a constant"),
    (times, r"a plain integer is needed here, and not the value <vg.randint\(0, 3\)>, which"),
    (raising, "`raise` by a condition that differs from sample to sample"),
    (undecided, "Python has to decide here by the value"),
    (one_branch, "amount has a value in one branch only; accepted: a value in both branches"),
    (two_kinds, "mode is nothing in one branch and 'nearest' in the other"),
    (nothing, "the function returns an image in one branch and nothing in the other"),
    (other_size, "the size of an image that is not on the way"),
    (too_few, r"<vg.randint\(0, 4\)> is below 4, and there are only 2 to choose from; accepted: vg.randint\(2\)"),
    (bad_coin, "vg.coin: p=1.5; accepted: a number from 0 to 1"),
    (device, "F.invert: device='reference'; accepted: nothing: the Augmenter has a device"),
    (
        by_its_letters,
        r"float\(\) of a text that tells a value of each sample; accepted: the value itself, or the text for",
    ),
    (inner_names, r"`while` by <\(\(\(label \* 2\) \+ 1\) > vg.uniform\(0, 9\)\) and \(height != 3\)>"),
    (of_many_words, r"the value is an image in one branch and <.* in the other; accepted: numbers, texts or images"),
    (returned_number, r"returned_number returns <vg.uniform\(0.0, 1.0\)>; accepted: the image"),
]


@pytest.mark.parametrize(("function", "message"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_it_names_the_line(function: Function, message: str) -> None:
    assert_refused_here(function, message, __file__)


def test_a_global_is_left_as_it_was() -> None:
    assert count == 0


def test_a_lambda_of_a_library_call_is_traced_or_refused() -> None:
    """Python's own functions call back without our knowing, and the lambda is rewritten with the function around it."""
    assert vg.pipeline(in_a_sort).num_slots == 2


def test_draws_outside_of_a_pipeline() -> None:
    with pytest.raises(vg.PipelineError, match=r"vg.uniform outside of a pipeline; accepted: it in a function under"):
        vg.uniform()


def test_without_source_decisions_are_refused() -> None:
    space: dict[str, Any] = {"vg": vg, "F": F}
    exec("def augment(image):\n    return F.invert(image) if vg.coin() else image", space)
    with pytest.raises(vg.PipelineError, match=r"the source of augment is not there, .* that a file or a noteb"):
        vg.pipeline(space["augment"])


def test_parameters() -> None:
    with pytest.raises(vg.PipelineError, match=r"the parameters of .*; accepted: an image first"):
        vg.pipeline(lambda *images: images[0])
    with pytest.raises(
        vg.PipelineError, match="the constant 'strength'; accepted: parameters of by_pixels with a defaul"
    ):
        vg.pipeline(by_pixels, strength=3)
    with pytest.raises(TypeError, match="function: got 3; accepted: a Python function of an image"):
        vg.pipeline(3)  # type: ignore[call-overload]


def test_a_value_that_was_not_given() -> None:
    augment = vg.pipeline(lambda image, label: F.rotate(image, label))
    with pytest.raises(
        ValueError, match=r"label=None; accepted: conditions=\{\"label\": values\}, one value per image"
    ):
        vg.Augmenter(augment).program([(9, 9)], ids=[0])


def test_a_number_out_of_range_names_the_line_that_used_it() -> None:
    @vg.pipeline
    def augment(image: Any, label: Any) -> Any:
        if label > 0:
            image = F.adjust_hue(image, vg.uniform(0, 0.4) + label)
        return image

    augmenter = vg.Augmenter(augment)
    augmenter.program([(9, 9)], ids=[0], conditions={"label": [0]})
    with pytest.raises(ValueError, match=r"test_refusals.py:\d+: `image = F.adjust_hue.*: hue_factor=\d.*; accepted"):
        augmenter.program([(9, 9)], ids=[0], conditions={"label": [5]})


def test_images_beside_an_image() -> None:
    augment = vg.pipeline(lambda image, label: F.rotate(image, label))
    with pytest.raises(TypeError, match=r"got 1 arguments besides the image; accepted: one image. vg.as_transform"):
        augment(np.zeros((3, 3, 3), np.uint8), 3)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda image, label: F.invert(image) if label < 3 else image, r"`label < 3`; accepted: numbers there \(texts"),
        (lambda image, label: F.rotate(image, label * 2), r"`label \* 2`; accepted: numbers there \(could not convert"),
    ],
)
def test_a_text_where_numbers_are_meant_is_told_in_the_words_of_the_function(function: Function, said: str) -> None:
    augmenter = vg.Augmenter(vg.pipeline(function))
    with pytest.raises(ValueError, match=f"values={said}"):
        augmenter.program([(9, 9)], ids=[0], conditions={"label": ["a"]})
