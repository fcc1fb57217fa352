"""Literal outputs. A change of any of them is a BREAKING CHANGE: recorded augmentations could no longer be replayed.

Never update them to make a test pass; a new stream of random numbers needs a new major version and a word in the
changelog.
"""

from __future__ import annotations

import hashlib

import numpy as np

import variegate as vg
from variegate import transforms as T
from variegate.program import rng
from variegate.program.describe import captions, operations_of


def hexes(words: np.ndarray) -> str:
    return " ".join(f"{int(word):08x}" for word in words.reshape(-1))


def test_stream_keys() -> None:
    assert hexes(rng.stream_key(0, 0)) == "f6ffa5e7 567d2ffa"
    assert hexes(rng.stream_key(1, 2, 3)) == "df95f12c d9dca408"
    assert hexes(rng.stream_key(0, 0, domain=rng.SHUFFLE_DOMAIN)) == "c42f8d0f 9912c4c5"


def test_words_of_samples() -> None:
    words = rng.sample_words(np.array([0, 12345678901234], np.uint64), rng.stream_key(0, 0), 3)
    assert hexes(words[0, 0]) == "51693d71 68928662 2966cfb6 55a2994a"
    assert hexes(words[0, 2]) == "cefe5ea8 02ad6d7c 9b67c40c 7288066f"
    assert hexes(words[1, 1]) == "69c8796e 52356bd6 d2de0eac b5219665"


def test_rand_augment() -> None:
    program = vg.Augmenter(T.RandAugment(2, 9)).program([(224, 224)] * 6, ids=range(6))
    assert [captions(operations_of(program, i)) for i in range(6)] == [
        ["TranslateY 30", "ShearY 0.09"],
        ["Rotate -9", "ShearX 0.09"],
        ["Posterize 7", "ShearY -0.09"],
        ["Solarize 178.5", "Contrast 1.27"],
        ["ShearY 0.09"],
        ["Contrast 1.27", "TranslateX 30"],
    ]


def test_random_resized_crop_and_flip() -> None:
    transform = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip()])
    program = vg.Augmenter(transform, seed=1).program([(300, 400)] * 6, ids=range(6), epoch=2)
    assert [captions(operations_of(program, i)) for i in range(6)] == [
        ["ResizedCrop 229x214 at 120,6", "HorizontalFlip"],
        ["ResizedCrop 287x264 at 81,28"],
        ["ResizedCrop 291x232 at 12,32"],
        ["ResizedCrop 126x125 at 117,4"],
        ["ResizedCrop 279x280 at 66,7", "HorizontalFlip"],
        ["ResizedCrop 219x252 at 152,19", "HorizontalFlip"],
    ]


def test_pixels() -> None:
    """Integer operations only, so that the bits are the same on every machine."""
    transform = T.Compose(
        [T.RandomHorizontalFlip(), T.RandAugment(2, 9), T.SaltAndPepper(0.1), T.RandomErasing(1.0, value="random")]
    )
    ramp = (np.arange(32 * 40 * 3) * 7919 % 256).astype(np.uint8).reshape(32, 40, 3)
    outputs = vg.Augmenter(transform)([ramp] * 5, ids=range(5))
    assert [hashlib.sha256(out.numpy().tobytes()).hexdigest()[:16] for out in outputs] == [
        "2531d49c1500ab9f",
        "a030bb7d016ef093",
        "6c573028faf73429",
        "76080329b5ee4ab1",
        "e0cb27a08d093364",
    ]
