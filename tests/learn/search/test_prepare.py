"""Searches and evaluations made of options and images: what an option leaves open, the images decide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from variegate import transforms as T
from variegate.errors import PolicyError
from variegate.learn.images import LabelledImages, load_images
from variegate.learn.policy import SearchSpace
from variegate.learn.prepare import known_operations, prepare_evaluation, prepare_search
from variegate.options.search import EvaluationOptions, SearchOptions


def images(count: int = 96, side: int = 16) -> LabelledImages:
    pixels = np.random.default_rng(0).integers(0, 256, (count, side, side, 3)).astype(np.uint8)
    return load_images((pixels, (np.arange(count) % 3).tolist()), device="cpu")


def test_what_is_open_follows_from_the_images() -> None:
    run = prepare_search(images(), SearchOptions(repeats=0))
    sizes = run.started(["cpu"])
    assert (sizes.train, sizes.score, sizes.batch_size, sizes.epochs, sizes.model) == (48, 48, 8, 200, "wrn-16-1")
    assert (sizes.test, run.test) == (0, None)
    assert (run.baseline.padding, run.baseline.flip, run.baseline.cutout) == (2, True, 8)
    assert (run.settings.size, run.settings.interval, run.settings.space.space) == (16, 3, "pba-relative")
    assert (run.recipe.epochs, run.recipe.batch_size, run.recipe.lr) == (200, 8, 0.1)
    assert prepare_search(images(side=32), SearchOptions()).settings.space.space == "pba"


def test_a_fifth_is_held_out_to_compare() -> None:
    run = prepare_search(images(), SearchOptions())
    sizes = run.started(["cpu"])
    assert (sizes.images, sizes.train, sizes.score, sizes.test) == (96, 38, 39, 19)
    assert str(sizes).startswith("38 of 96 images train, 39 score, 19 compare; ")
    assert run.test is not None
    parts = [part.ids.tolist() for part in (run.train, run.validation, run.test)]
    assert sorted(number for part in parts for number in part) == list(range(96))
    assert sorted(run.test.labels.bincount().tolist()) == [6, 6, 7]
    others = images(12)
    run = prepare_search(images(), SearchOptions(), test=others)
    sizes = run.started(["cpu"])
    assert (sizes.train, sizes.score, sizes.test, run.test) == (48, 48, 12, others)
    assert prepare_search(images(30), SearchOptions()).test is None  # too few for three parts
    with pytest.raises(
        ValueError, match=r"train: got 90, of 77 images in 3 classes, with 19 more held out \(--repeats"
    ):
        prepare_search(images(), SearchOptions(train=90))


def test_crop_flip_and_cutout_are_searched() -> None:
    space = prepare_search(images(), SearchOptions()).settings.space
    assert (space.crop, space.flip, space.cutout) == (0.25, True, 0.75)
    assert space.tuples[-3:] == ("Crop", "Flip", "Cutout")
    assert (len(space.operations), "Cutout" in space.operations) == (14, False)
    space = prepare_search(images(), SearchOptions(padding=2, flip=False, cutout=0)).settings.space
    assert (space.crop, space.flip, space.cutout) == (0.125, False, 0.0)
    assert "Cutout" in space.operations
    options = SearchOptions(operations="Rotate:0..45:signed,GaussianNoise", cutout=4)
    space = prepare_search(images(), options).settings.space
    assert space.operations == (
        T.Augmentation("Rotate", "Rotate", (0, 45), signed=True),
        T.Augmentation("GaussianNoise", "GaussianNoise", (0, 0.4)),
    )
    assert (space.crop, space.flip, space.cutout) == (0.25, True, 0.25)
    fixed = prepare_search(images(), SearchOptions(around="fixed", operations="Rotate,Cutout")).settings.space
    assert (fixed.operations, fixed.magnitudes) == (("Rotate", "Cutout"), "pba-relative")
    assert (fixed.crop, fixed.flip, fixed.cutout) == (0.0, False, 0.0)
    with pytest.raises(
        PolicyError, match=r"operations\[1\]: got 'Cutout'; accepted: each name once; crop, flip and cut"
    ):
        prepare_search(images(), SearchOptions(operations="Rotate,Cutout"))
    with pytest.raises(ValueError, match="around: got 'on'; accepted: 'searched', 'fixed'"):
        prepare_search(images(), SearchOptions(around="on"))  # type: ignore[arg-type]


def test_what_is_said_stays() -> None:
    options = SearchOptions(
        train=30, batch_size=10, epochs=4, population=2, interval=2, padding=0, cutout=3, flip=False, lr=0.5, seed=7,
        operations="rotate,invert", model="wrn-10-1", repeats=0,
    )  # fmt: skip
    run = prepare_search(images(), options, "photos", "print")
    sizes = run.started(["cpu"])
    assert (sizes.train, sizes.score, sizes.model) == (30, 66, "wrn-10-1")
    assert (run.baseline.padding, run.baseline.flip, run.baseline.cutout) == (0, False, 3)
    assert (run.settings.size, run.settings.epochs, run.settings.seed) == (2, 4, 7)
    assert run.settings.space.operations == ("Rotate", "Invert")
    assert (run.recipe.lr, run.recipe.batch_size) == (0.5, 10)
    assert (run.place, run.fingerprint) == ("photos", "print")


def test_an_evaluation_has_other_images_to_score_it() -> None:
    options = EvaluationOptions(policies="None, flip+crop+cutout", repeats=2, epochs=1)
    made = prepare_evaluation(images(), images(40), options, ["cpu"])
    subsets = made.plan.subsets
    assert (subsets.train, subsets.scored) == (76, 40)
    assert (list(made.rows), made.rules.rounds, made.plan.recipe.epochs) == (["none", "flip+crop+cutout"], 2, 1)
    assert prepare_evaluation(images(), None, options, ["cpu"]).plan.subsets.scored == 20


def test_operations_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert known_operations("rotate, TRANSLATEx:0..0.3:signed") == ("rotate", "TRANSLATEx:0..0.3:signed")
    assert known_operations(None) == ()
    (tmp_path / "typed_operations.py").write_text(
        "import numpy as np\nfrom variegate import transforms as T\n\n\nclass TypedDark(T.CustomOp):\n"
        "    magnitude = T.Magnitude(0, 1)\n\n    def lut(self, m):\n"
        "        return (np.arange(256) * (1 - m)).astype(np.uint8)\n\n\nhalf = TypedDark((0, 0.5))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    typed = "typed_operations:TypedDark,Rotate,typed_operations:half"
    dark, _, half = known_operations(typed)
    assert SearchSpace((dark,)).operations == (T.Augmentation("TypedDark", dark()),)
    assert SearchSpace((half,)).operations == (T.Augmentation("TypedDark", half),)
    found = SearchSpace(known_operations("typed_operations:TypedDark:0.1..0.3:signed,Rotate"))
    assert found.operations == (T.Augmentation("TypedDark", dark(), (0.1, 0.3), signed=True), "Rotate")
    with pytest.raises(ValueError, match=r"operations: got 'no_such' \(ModuleNotFoundError: .*accepted: a module that"):
        known_operations("no_such:Dark")
    with pytest.raises(PolicyError, match="got 'typed_operations:np'; accepted: transforms of one number that typed"):
        SearchSpace(("typed_operations:np",))
    with pytest.raises(PolicyError, match=r"accepted: a number, or a pair .* from 0 to 1"):
        SearchSpace(("typed_operations:TypedDark:0..2",))
