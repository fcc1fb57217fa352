"""Fingerprints: what they are equal for, what flips do to them, and that they stay what they are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import variegate as vg
from variegate.apps.check.fingerprint import LUMA_BYTES, SIGNATURE_BYTES, fingerprint, frequencies

Image_HWC = npt.NDArray[np.uint8]
images = st.tuples(st.integers(1, 70), st.integers(1, 70), st.just(3)).flatmap(lambda shape: arrays(np.uint8, shape))


def plain_areas(image: Image_HWC) -> npt.NDArray[np.float64]:
    """Means over 32 x 32 areas: every pixel made 32 x 32 smaller ones."""
    height, width = image.shape[:2]
    fine = np.repeat(np.repeat(image.astype(np.float64), 32, 0), 32, 1)
    return fine.reshape(32, height, 32, width, 3).mean((1, 3))


def plain_hash(image: Image_HWC) -> tuple[int, npt.NDArray[np.bool_]]:
    """-> (hash, which bits are far enough from where they change)."""
    luma = plain_areas(image) @ [0.299, 0.587, 0.114]
    at = (np.arange(32) + 0.5) * np.pi / 32
    heights = [4 * (np.cos(v * at)[:, None] * np.cos(u * at) * luma).mean() for v, u in frequencies()]
    bits = sum(1 << bit for bit, height in enumerate(heights) if height > 0.125)
    return bits, np.abs(np.array(heights) - 0.125) > 0.05


@settings(max_examples=40)
@given(images)
def test_a_hash_has_the_signs_of_low_frequencies(image: Image_HWC) -> None:
    bits, is_sure = plain_hash(image)
    different = fingerprint(image).look_hash ^ bits
    assert not any(different >> bit & 1 for bit in range(64) if is_sure[bit])


@settings(max_examples=40)
@given(images)
def test_a_mirrored_image_has_the_mirror_hash(image: Image_HWC) -> None:
    mine, mirrored = fingerprint(image), fingerprint(image[:, ::-1])
    assert (mine.look_hash, mine.mirror_hash) == (mirrored.mirror_hash, mirrored.look_hash)
    luma = np.frombuffer(mine.signature, np.uint8)[:LUMA_BYTES].reshape(16, 16)
    assert np.array_equal(luma[:, ::-1].ravel(), np.frombuffer(mirrored.signature, np.uint8)[:LUMA_BYTES])


def test_pixel_hashes_are_equal_for_equal_pixels_and_sizes_alone() -> None:
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (6, 10, 3), np.uint8)
    changed = image.copy()
    changed[-1, -1, -1] ^= 1
    same = fingerprint(np.asfortranarray(image)).pixel_hash
    assert same == fingerprint(image).pixel_hash
    assert len(same) == 16
    assert len({fingerprint(each).pixel_hash for each in (image, changed, image.reshape(10, 6, 3))}) == 3


@pytest.mark.parametrize("noise", [0, 2])
def test_blank_images_have_no_frequencies_and_keep_their_colour(noise: int) -> None:
    rng = np.random.default_rng(0)
    image = np.full((90, 120, 3), (200, 50, 10), np.uint8) + rng.integers(0, noise + 1, (90, 120, 3), np.uint8)
    found = fingerprint(image)
    assert (found.look_hash, found.mirror_hash) == (0, 0)
    signature = np.frombuffer(found.signature, np.uint8).astype(int)
    assert len(signature) == SIGNATURE_BYTES
    assert np.abs(signature - np.repeat([90, 82, 206], [256, 16, 16])).max() <= 1 + noise


def test_fingerprints_stay_what_they_are() -> None:
    """Tables of an earlier version can be compared with those of today."""
    found = fingerprint(np.asarray(vg.sample_images(1)[0]))
    assert found.pixel_hash.hex() == "a80d97a5a28e47680f94ba8a5f59996a"
    assert (hex(found.look_hash), hex(found.mirror_hash)) == ("0x7a9217db8ad3ad2c", "0x856d17db752cad2c")
    assert found.signature[::24].hex() == "ae5babbb334b857a857f635c"
