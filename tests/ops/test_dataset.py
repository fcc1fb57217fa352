"""``Normalize("dataset")``: a word in descriptions, numbers where there is a data set, refused elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import variegate as vg
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.ops.description import wants_statistics, with_statistics

MEAN, STD = (0.5, 0.25, 0.125), (0.2, 0.3, 0.4)
WORD, NUMBERS = T.Normalize("dataset"), T.Normalize(MEAN, STD)


def test_it_is_a_word_until_there_are_numbers() -> None:
    assert WORD.to_dict() == {"type": "Normalize", "mean": "dataset"}
    assert T.from_dict(WORD.to_dict()) == WORD
    assert repr(WORD) == "Normalize('dataset')"
    assert repr(NUMBERS) == f"Normalize({MEAN}, {STD})"
    assert T.from_dict(NUMBERS.to_dict()) == NUMBERS
    assert with_statistics(WORD, MEAN, STD) == NUMBERS


def test_numbers_are_put_wherever_the_word_is() -> None:
    flip = T.RandomHorizontalFlip()
    crop = T.RandomResizedCrop(8)
    inner = T.Compose([flip, crop])
    chain = T.Compose([inner, WORD, T.RandomErasing()])
    views = T.MultiView([chain, T.Compose([crop, WORD])], counts=[1, 2])
    assert wants_statistics(views)
    made = with_statistics(views, MEAN, STD)
    assert made == T.MultiView(
        [T.Compose([inner, NUMBERS, T.RandomErasing()]), T.Compose([crop, NUMBERS])], counts=[1, 2]
    )
    assert not wants_statistics(made)
    assert with_statistics(chain, MEAN, STD).transforms[0] is inner  # type: ignore[attr-defined]
    assert not wants_statistics(inner)
    assert with_statistics(inner, MEAN, STD) is inner


def test_elsewhere_it_is_refused() -> None:
    image = np.zeros((8, 8, 3), np.uint8)
    for run in (lambda: vg.Augmenter(WORD)([image], ids=[0]), lambda: WORD(image)):
        with pytest.raises(ValueError, match=r"Normalize\('dataset'\): there is no data set here; accepted: a Loader"):
            run()
    with pytest.raises(SourceError, match=r"has no statistics\.json next to it, which Normalize\('dataset'\) asks for"):
        vg.Loader(([image], [0]), WORD, device="cpu")
