"""Errors of a pipeline's function name it, its line and the sample; what has no meaning is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.pipelines.oracle import assert_fails_here
from variegate import transforms as T
from variegate.transforms import functional as F

Function = Callable[..., Any]
kept: list[Any] = []


def by_pixels(image: Any) -> Any:
    if image.mean() > 10:  # here
        image = F.invert(image)
    return image


def by_a_library(image: Any) -> Any:
    return F.rotate(image, np.mean(image))  # here


def by_an_element(image: Any) -> Any:
    return F.rotate(image, image[0, 0])  # here


def by_its_truth(image: Any) -> Any:
    return image or None  # here


def raising(image: Any, label: Any) -> Any:
    if label < 0:
        raise LookupError("a label")  # here
    return image


def inner(image: Any) -> Any:
    return F.posterize(image, 3.5)  # type: ignore[arg-type]  # here


def in_a_helper(image: Any) -> Any:
    return inner(image)


def out_of_range(image: Any, label: Any) -> Any:
    return F.adjust_hue(image, vg.uniform(0, 0.4) + label)  # here


def unassigned(image: Any, label: Any) -> Any:
    if label > 0:
        amount = 3
    return F.rotate(image, amount)  # here


def too_few(image: Any) -> Any:
    return vg.select(vg.randint(4) + 2, [F.invert, F.equalize], image)  # here


def bad_coin(image: Any) -> Any:
    return F.invert(image) if vg.coin(1.5) else image  # here


def bad_integers(image: Any) -> Any:
    return F.rotate(image, vg.randint(3, 3))  # here


def bad_weights(image: Any) -> Any:
    return F.rotate(image, vg.choice([1, 2], p=[1, -1]))  # here


def bad_deviation(image: Any) -> Any:
    return F.rotate(image, vg.normal(0, -1))  # here


def without_an_end(image: Any) -> Any:
    while True:
        vg.coin()  # here


def operations_without_an_end(image: Any) -> Any:
    while True:
        image = F.invert(image)  # here


def recursive(image: Any) -> Any:
    return recursive(image)  # here


def nothing(image: Any) -> Any:  # here
    F.invert(image)


def number(image: Any) -> Any:  # here
    return vg.uniform()


def of_another_sample(image: Any) -> Any:  # here
    kept.append(image)
    return vg.pipeline(nothing)(image) if not kept else kept[0]


def mixed(image: Any) -> Any:
    return T.MixUp()(image)  # here


def views(image: Any) -> Any:
    return T.MultiView([T.Identity()])(image)  # here


def by_objects(image: Any) -> Any:
    return T.Cond("objects", any_of=[1], then=T.Invert())(image)  # here


def two_images(image: Any) -> Any:
    return T.Invert()(image, image)  # here


CASES: list[tuple[Function, str, dict[str, Any]]] = [
    (by_pixels, "image.mean depends on pixels, which do not exist .*; accepted: values that are drawn", {}),
    (by_a_library, "depends on pixels", {}),
    (by_an_element, r"image\[...\] depends on pixels", {}),
    (by_its_truth, r"bool\(image\) depends on pixels", {}),
    (raising, "LookupError: a label", {"label": -1}),
    (in_a_helper, "bits=3.5; accepted: an integer from 1 to 8", {}),
    (out_of_range, r"hue_factor=5.\d+; accepted: a number from -0.5 to 0.5", {"label": 5}),
    (unassigned, "UnboundLocalError: .*amount", {"label": 0}),
    (too_few, r"vg.select: index=\d; accepted: integers from 0 to 1", {}),
    (bad_coin, "vg.coin: p=1.5; accepted: a number from 0 to 1", {}),
    (bad_integers, "vg.randint: low=3, high=3; accepted: whole numbers low < high", {}),
    (bad_weights, r"vg.choice: p=\[1, -1\]; accepted: 2 numbers of 0 or more", {}),
    (bad_deviation, "vg.normal: mean=0, std=-1; accepted: finite numbers, std of 0 or more", {}),
    (without_an_end, "more than 10,000 draws of one call; accepted: loops that end", {}),
    (operations_without_an_end, "more than 10,000 operations on one image; accepted: loops that end", {}),
    (recursive, "RecursionError: maximum recursion depth", {}),
    (nothing, "nothing returns nothing; accepted: the image", {}),
    (number, r"number returns 0.\d+; accepted: the image", {}),
    (mixed, "MixUp within a function of a pipeline; accepted: T.Compose with the pipeline and MixUp", {}),
    (views, "MultiView within a function of a pipeline", {}),
    (by_objects, "Cond within a function of a pipeline", {}),
    (two_images, "Invert: got 1 arguments besides the image; accepted: one image of a pipeline", {}),
]


@pytest.mark.parametrize(("function", "message", "given"), CASES, ids=[function.__name__ for function, *_ in CASES])
def test_it_names_function_sample_and_line(function: Function, message: str, given: dict[str, Any]) -> None:
    assert_fails_here(function, message, __file__, **given)


def test_an_image_of_another_sample() -> None:
    augmenter = vg.Augmenter(vg.pipeline(of_another_sample))
    kept.clear()
    augmenter.program([(9, 9)], ids=[0])
    with pytest.raises(vg.PipelineError, match=r"of_another_sample, sample 1: .* returns an image of another sample"):
        augmenter.program([(9, 9)], ids=[1])
    kept.clear()
    with pytest.raises(vg.PipelineError, match=r"sample 3: .* returns an image of another sample"):
        augmenter.program([(9, 9)] * 2, ids=[2, 3])
    kept.clear()


def test_an_error_about_pixels_stands_also_if_it_is_caught() -> None:
    def swallowing(image: Any) -> Any:
        try:
            return F.rotate(image, 3) if image.mean() > 3 else image
        except ValueError:
            return image

    with pytest.raises(vg.PipelineError, match=r"image.mean depends on pixels"):
        vg.Augmenter(vg.pipeline(swallowing)).program([(9, 9)], ids=[0])


def test_its_cause_is_the_function_s_own_error() -> None:
    with pytest.raises(vg.PipelineError) as failure:
        vg.Augmenter(vg.pipeline(raising)).program([(9, 9)], ids=[0], conditions={"label": [-1]})
    assert isinstance(failure.value.__cause__, LookupError)


def test_one_format_for_all_images_of_a_batch() -> None:
    def some(image: Any, label: Any) -> Any:
        return T.Normalize(0.5, 0.5)(image) if label else image

    augmenter = vg.Augmenter(vg.pipeline(some))
    assert augmenter.program([(9, 9)] * 2, ids=[0, 1], conditions={"label": [1, 1]}).output.is_float
    with pytest.raises(vg.PipelineError, match="some normalizes or converts some images of a batch and not others"):
        augmenter.program([(9, 9)] * 2, ids=[0, 1], conditions={"label": [1, 0]})
    either = vg.Augmenter(T.OneOf([vg.pipeline(lambda image: T.Normalize(0.5, 0.5)(image)), T.Identity()]))
    with pytest.raises(vg.PipelineError, match="accepted: one format for all of them"):
        either.program([(9, 9)] * 8, ids=range(8))


def test_draws_outside_of_a_pipeline() -> None:
    with pytest.raises(vg.PipelineError, match=r"vg.uniform outside of a pipeline; accepted: it in a function under"):
        vg.uniform()


def test_parameters() -> None:
    with pytest.raises(vg.PipelineError, match=r"the parameters of .*; accepted: an image first"):
        vg.pipeline(lambda *images: images[0])
    accepted = "accepted: parameters of by_pixels with a default: none"
    with pytest.raises(T.ArgumentError, match=rf"constants\['strength'\]=3; {accepted}"):
        vg.pipeline(by_pixels, strength=3)
    with pytest.raises(TypeError, match="function: got 3; accepted: a Python function of an image"):
        vg.pipeline(3)  # type: ignore[call-overload]


def test_a_value_that_was_not_given() -> None:
    augment = vg.pipeline(lambda image, label: F.rotate(image, label))
    with pytest.raises(
        ValueError, match=r"label=None; accepted: conditions=\{\"label\": values\}, one value per image"
    ):
        vg.Augmenter(augment).program([(9, 9)], ids=[0])


def test_images_beside_an_image() -> None:
    augment = vg.pipeline(lambda image, label: F.rotate(image, label))
    with pytest.raises(TypeError, match=r"got 1 arguments besides the image; accepted: one image. vg.as_transform"):
        augment(np.zeros((3, 3, 3), np.uint8), 3)
