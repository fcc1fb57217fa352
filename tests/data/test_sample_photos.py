"""The photos that come along."""

from __future__ import annotations

import numpy as np
import pytest

import variegate as vg
from variegate.data.sample_photos import NAMES, sample_photo

PHOTOS = sample_photo("cat").parent


def test_photos_of_several_shapes() -> None:
    photos = vg.sample_images()
    assert len(photos) == len(NAMES) == 8
    for photo in photos:
        assert photo.dtype == np.uint8
        assert photo.ndim == 3
        assert photo.shape[2] == 3
        assert 256 <= min(photo.shape[:2]) <= 320
    assert len({photo.shape for photo in photos}) >= 4
    assert len({photo.shape for photo in vg.sample_images(4)}) == 4


def test_more_than_there_are_begin_again_as_arrays_of_their_own() -> None:
    photos = vg.sample_images(17)
    np.testing.assert_array_equal(photos[16], photos[0])
    photos[0][:] = 0
    assert photos[8].any()
    assert vg.sample_images(1)[0].any()


@pytest.mark.parametrize("n", [0, -1, 1.5, "8", True, None])
def test_other_numbers_are_refused(n: object) -> None:
    with pytest.raises(ValueError, match=rf"n: got {n!r}; accepted: a whole number from 1 on"):
        vg.sample_images(n)  # type: ignore[arg-type]


def test_each_photo_has_its_origin_and_licence_beside_it() -> None:
    said = (PHOTOS / "README.md").read_text(encoding="utf-8")
    assert sorted(path.stem for path in PHOTOS.glob("*.jpg")) == sorted(NAMES)
    for name in NAMES:
        row = next(line for line in said.splitlines() if line.startswith(f"| `{name}.jpg`"))
        assert row.endswith(("| public domain |", "| CC0 1.0 |"))
    assert sum(path.stat().st_size for path in PHOTOS.iterdir()) < 250_000
