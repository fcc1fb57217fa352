"""Searches and evaluations made of options and images: what an option leaves open, the images decide."""

from __future__ import annotations

import numpy as np
import pytest

from variegate.apps.search.prepare import known_operations, prepare_evaluation, prepare_search
from variegate.apps.train.images import LabelledImages, load_images
from variegate.options.search import EvaluationOptions, SearchOptions


def images(count: int = 96, side: int = 16) -> LabelledImages:
    pixels = np.random.default_rng(0).integers(0, 256, (count, side, side, 3)).astype(np.uint8)
    return load_images((pixels, (np.arange(count) % 3).tolist()), device="cpu")


def test_what_is_open_follows_from_the_images() -> None:
    run, sizes = prepare_search(images(), SearchOptions())
    assert (sizes.train, sizes.score, sizes.batch_size, sizes.epochs, sizes.model) == (48, 48, 8, 200, "wrn-16-1")
    assert (run.baseline.padding, run.baseline.flip, run.baseline.cutout) == (2, True, 8)
    assert (run.settings.size, run.settings.interval, run.settings.space.space) == (16, 3, "pba-relative")
    assert (run.recipe.epochs, run.recipe.batch_size, run.recipe.lr) == (200, 8, 0.1)
    assert prepare_search(images(side=32), SearchOptions())[0].settings.space.space == "pba"


def test_what_is_said_stays() -> None:
    options = SearchOptions(
        train=30, batch_size=10, epochs=4, population=2, interval=2, padding=0, cutout=3, flip=False, lr=0.5, seed=7,
        operations="rotate,invert", model="wrn-10-1",
    )  # fmt: skip
    run, sizes = prepare_search(images(), options, "photos", "print")
    assert (sizes.train, sizes.score, sizes.model) == (30, 66, "wrn-10-1")
    assert (run.baseline.padding, run.baseline.flip, run.baseline.cutout) == (0, False, 3)
    assert (run.settings.size, run.settings.epochs, run.settings.seed) == (2, 4, 7)
    assert run.settings.space.operations == ("Rotate", "Invert")
    assert (run.recipe.lr, run.recipe.batch_size) == (0.5, 10)
    assert (run.place, run.fingerprint) == ("photos", "print")


def test_an_evaluation_has_other_images_to_score_it() -> None:
    options = EvaluationOptions(policies="None, flip-crop", repeats=2, epochs=1)
    made, sizes = prepare_evaluation(images(), images(40), options, ["cpu"])
    assert (sizes.train, sizes.score) == (76, 40)
    assert (made.policies, made.repeats, made.recipe.epochs) == (("none", "flip-crop"), 2, 1)
    assert prepare_evaluation(images(), None, options, ["cpu"])[1].score == 20


def test_options_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match="lr_schedule: got 'linear'; accepted: 'cosine', 'step'"):
        prepare_search(images(), SearchOptions(lr_schedule="linear"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batch_size: got 60, with 48 images to train; accepted: 1 to 48"):
        prepare_search(images(), SearchOptions(batch_size=60))


def test_names_of_operations_ignore_case() -> None:
    assert known_operations("rotate, TRANSLATEx,Spin", None) == ("Rotate", "TranslateX", "Spin")
