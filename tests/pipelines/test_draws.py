"""Draws belong to their call: which one it is in its function, how that was called, and how often it was passed."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.pipelines.oracle import amounts_of
from variegate import transforms as T
from variegate.transforms import functional as F

HEAD = "import variegate as vg\nfrom variegate.transforms import functional as F\n"


def function_of(source: str, folder: Path, name: str = "function") -> Any:
    path = folder / f"source{len(list(folder.iterdir()))}.py"
    path.write_text(HEAD + source)
    space: dict[str, Any] = {"__name__": "written"}
    exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), space)
    return space[name]


def amounts(function: Any, number: int = 5) -> list[tuple[float, ...]]:
    return amounts_of(vg.pipeline(function), list(range(number)))


# A call in another begins on a line of its own: calls on one line have another order in Python 3.10.
@vg.pipeline
def pinned(image: Any) -> Any:
    drawn = [
        vg.uniform(),
        vg.uniform(-5, 5),
        vg.randint(1000),
        vg.normal(1, 2),
        int(
            vg.coin(0.3),
        ),
        vg.choice([1, 2, 3]),
    ]
    drawn += [vg.uniform() for _ in range(2)]
    drawn.append(
        helper(),
    )
    drawn.append(
        helper(),
    )
    for amount in drawn:
        image = F.translate_x(image, amount)
    return T.GaussianNoise()(
        T.RandomRotation(30)(image),
    )


def helper() -> float:
    return vg.choice([10, 20, 30, 40], p=[1, 2, 3, 4]) + vg.uniform()


def test_pinned() -> None:
    """The same numbers forever: a change of one raises ``vg.PIXEL_VERSION``."""
    program = vg.Augmenter(pinned, seed=5).program([(20, 30)] * 2, ids=[7, 2**40], epoch=3, copy=1)
    wanted = [
        [0.2450545527972281, -3.617055816575885, 543, 2.461691455217429, 0, 2, 0.7632510680705309, 0.3522342371288687],
        [0.48013195279054344, -4.635817003436387, 871, -1.83173891988, 0, 2, 0.48536536702886224, 0.8655916475690901],
    ]
    wanted[0] += [30.59673104993999, 40.543749949662015, 27.45757228229195]
    wanted[1] += [10.579551235539839, 20.2480728328228, -28.115182905457914]
    np.testing.assert_allclose(program.args[:, :11, 0], wanted, rtol=1e-11)
    assert program.args[:, 11, 2].tolist() == [3226924365, 3226924365]  # the slot of the noise


def test_a_call_draws_again_each_time_and_elsewhere() -> None:
    def function(image: Any, x: Any) -> Any:
        drawn = [vg.uniform() for _ in range(5)] + [vg.uniform(), vg.uniform(), helper() % 1, helper() % 1]
        drawn += [sum(vg.uniform() for _ in range(2)), functools.reduce(lambda a, _: a + vg.uniform(), [0.0, 1, 2])]
        drawn += [draw() for draw in (lambda: vg.uniform(), lambda: vg.uniform())]
        for amount in drawn:
            image = F.translate_x(image, amount)
        return image

    for row in amounts(function):
        assert len(set(row)) == len(row) == 13


def test_draws_of_functions_that_are_called_in_turn_do_not_move_one_another() -> None:
    """Of two at one call, each counts for itself."""

    def make(skips: bool) -> Any:
        def function(image: Any, x: Any) -> Any:
            def first() -> float:
                return 0 if skips else vg.uniform()

            def second() -> float:
                return vg.uniform()

            return F.translate_x(image, [draw() for draw in (first, second)][1])

        return function

    assert amounts(make(True)) == amounts(make(False))


def test_what_stands_elsewhere_in_a_file_moves_nothing(tmp_path: Path) -> None:
    plain = """
def function(image, x):
    a = vg.uniform()
    image = F.translate_x(image, a)
    for _ in range(2):
        image = F.translate_x(image, within() + vg.normal())
    return F.translate_x(image, [vg.uniform() for _ in range(2)][1])

def within():
    return vg.uniform()
"""
    formatted = """
# A comment, and another function.
def within():

    # A comment.
    return vg.uniform(
    )

def function(
    image,
    x,
):
    '''A docstring.'''
    a = vg.uniform()  # a comment

    b = 3 if x else 4
    image = F.translate_x(
        image,
        a,
    )
    for _ in range(
        2
    ):
        image = F.translate_x(image, within() + vg.normal())
    return F.translate_x(image, [vg.uniform()
                                 for _ in range(2)][1])
"""
    assert amounts(function_of(plain, tmp_path)) == amounts(function_of(formatted, tmp_path))


def test_a_call_more_moves_only_what_follows_in_its_function(tmp_path: Path) -> None:
    plain = """
def function(image, x):
    a, b = vg.uniform(), within()
    return F.translate_x(F.translate_x(image, a), b)
"""
    within = "\ndef within():\n    return vg.uniform()\n"
    more = plain.replace("return", "c = vg.uniform()\n    return")
    longer = "\ndef within():\n    a = vg.uniform()\n    vg.uniform()\n    return a\n"
    wanted = amounts(function_of(plain + within, tmp_path))
    assert amounts(function_of(more + within, tmp_path)) == wanted
    assert amounts(function_of(plain + longer, tmp_path)) == wanted


def test_neither_batch_nor_place_nor_how_often_it_ran_changes_a_draw() -> None:
    """Python adapts the bytecode of what runs often."""

    def function(image: Any, x: Any) -> Any:
        for _ in range(3):
            image = F.translate_x(image, helper() + vg.uniform())
        return T.RandomRotation(30)(image)

    pipeline = vg.pipeline(function)
    augmenter = vg.Augmenter(pipeline)
    together = augmenter.program([(20, 30)] * 300, ids=range(300), conditions={"x": range(300)})
    for row in (299, 0, 7):
        alone = vg.Augmenter(vg.pipeline(function)).program([(20, 30)], ids=[row], conditions={"x": [row]})
        np.testing.assert_array_equal(alone.args[0], together.args[row])
    small = augmenter.program([(9, 9)], ids=[0], conditions={"x": [0]})
    np.testing.assert_array_equal(small.args[0], together.args[0])
    again = augmenter.program([(20, 30)], ids=[0], epoch=1, conditions={"x": [0]})
    assert (again.args[0, :3, 0] != together.args[0, :3, 0]).all()


def test_loops_of_many_turns() -> None:
    def function(image: Any, x: Any) -> Any:
        drawn = [vg.uniform() + vg.normal() for _ in range(x)]
        image = T.RandomRotation(30)(image) if drawn else image
        return F.translate_x(F.translate_x(image, sum(drawn)), len(set(drawn)))

    pipeline = vg.pipeline(function)
    turns = [0, 3, 200, 64, 65, 500]
    together = vg.Augmenter(pipeline).program([(20, 30)] * 6, ids=range(6), conditions={"x": turns})
    for row, number in enumerate(turns):
        alone = vg.Augmenter(pipeline).program([(20, 30)], ids=[row], conditions={"x": [number]})
        last = together.length[row] - 1
        assert together.args[row, last, 0] == number
        np.testing.assert_array_equal(alone.args[0, : last + 1], together.args[row, : last + 1])


def test_two_of_a_pipeline_draw_for_themselves() -> None:
    inner = vg.pipeline(lambda image: F.translate_x(image, vg.uniform()))
    outer = vg.pipeline(lambda image: inner(inner(T.Compose([inner, inner])(image))))
    program = vg.Augmenter(T.Compose([inner, inner, outer, outer])).program([(20, 30)], ids=[0])
    assert len(set(program.args[0, :, 0].tolist())) == 10


def test_noise_is_drawn_for_each_call() -> None:
    def function(image: Any) -> Any:
        for _ in range(2):
            image = F.gaussian_noise(image, sigma=0.1)
        return T.GaussianNoise()(T.GaussianNoise()(image))

    program = vg.Augmenter(vg.pipeline(function)).program([(20, 30)], ids=[0])
    assert len(set(program.args[0, :4, 2].tolist())) == 4


@pytest.mark.parametrize("transform", [T.AugMix(), T.RandomErasing(p=1.0), T.ElasticTransform(), T.RandAugment()])
def test_operations_on_an_older_image_leave_the_newer_ones_alone(transform: T.Transform) -> None:
    def aliased(image: Any, label: Any) -> Any:
        first = transform(F.hflip(image))
        F.vflip(first)
        second = F.hflip(first)
        transform(image)
        F.vflip(F.vflip(first))
        return second if label else first

    def plain(image: Any, label: Any) -> Any:
        first = transform(F.hflip(image))
        return F.hflip(first) if label else first

    images, labels = [vg.sample_images(1)[0][:40, :50]] * 3, {"label": [0, 1, 0]}
    made, wanted = (
        vg.Augmenter(T.Compose([T.Posterize(4), vg.pipeline(function), T.RandomHorizontalFlip()]))(
            images, ids=[1, 2, 3], conditions=labels
        )
        for function in (aliased, plain)
    )
    assert (made == wanted).all()
    one = vg.as_transform(T.Compose([T.Posterize(4), vg.pipeline(aliased), T.RandomHorizontalFlip()]))
    assert (one(images[1], id=2, conditions={"label": 1}) == wanted[1]).all()


def test_boxes_follow_the_image_that_is_returned() -> None:
    crop = T.RandomAtLeastOneBoxCrop(16)

    def function(image: Any, label: Any) -> Any:
        image = F.hflip(image)
        crop(image)
        T.SanitizeBoundingBoxes(1000)(image)
        return crop(F.vflip(image)) if label else image

    samples = [{"image": vg.sample_images(1)[0], "boxes": [[10, 20, 60, 70], [100, 5, 150, 90]], "labels": [1, 2]}] * 2
    augmenter = vg.Augmenter(vg.pipeline(function))
    whole, cut = augmenter(samples, ids=[1, 2], conditions={"label": [0, 1]})
    assert np.asarray(whole["boxes"]).tolist() == [[260, 20, 310, 70], [170, 5, 220, 90]]
    assert tuple(cut["image"].shape[1:]) == (16, 16)
    assert len(cut["boxes"]) >= 1
    alone = augmenter(samples[:1], ids=[2], conditions={"label": [1]})[0]
    assert (alone["boxes"] == cut["boxes"]).all()
    assert (alone["image"] == cut["image"]).all()
