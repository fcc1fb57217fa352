"""A JPEG is as good for one part of it as for another: what ``read_image`` accepts, every path accepts, with the same
pixels; what it refuses is refused as a DecodeError, if not passed over where the part does not show it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.decode import jpegs
from tests.decode.jpegs import KINDS, MUTATIONS, Mutation, jpeg, mutate
from variegate import transforms as T
from variegate.data.objects.dataset import open_dataset
from variegate.decode import decode_jpeg, decode_jpeg_box, decode_jpeg_scaled, is_jpeg, jpeg_size, read_image
from variegate.errors import DecodeError
from variegate.executors.runners.encoded_batch import EncodedBatch

CROP = T.RandomResizedCrop(96, scale=(0.02, 0.9))
ODD = {
    "a stray byte before the frame": [jpegs.stray_before_frame],
    "stray bytes between segments": [jpegs.stray_between],
    "JFIF of an unknown version": [jpegs.version],
    "padding": [jpegs.fill_bytes],
    "a comment": [jpegs.comment],
    "tables twice": [jpegs.tables_twice],
    "bytes after the end": [jpegs.after_the_end],
}


def outcome(decode: Callable[[], Any]) -> Any:
    try:
        return decode()
    except DecodeError:
        return None


def check_all_paths(data: bytes, rng: np.random.Generator) -> bool:
    """Whether the file is accepted."""
    whole = outcome(lambda: read_image(data))
    same = outcome(lambda: decode_jpeg(data))
    assert (same is None) == (whole is None)
    if whole is None:
        try:
            height, width = jpeg_size(data)
        except ValueError:
            height = width = 0
        height, width = height or 61, width or 61
    else:
        np.testing.assert_array_equal(same, whole)
        height, width = whole.shape[:2]
        assert jpeg_size(data) == (height, width)
    for _ in range(3):
        top, left = (int(rng.integers(0, side)) for side in (height, width))
        bottom, right = int(rng.integers(top + 1, height + 1)), int(rng.integers(left + 1, width + 1))
        found = outcome(lambda: decode_jpeg_box(data, top, left, bottom - top, right - left))  # noqa: B023
        if whole is not None:
            assert found is not None
            part, part_top, part_left = found
            shown = part[top - part_top : bottom - part_top, left - part_left : right - part_left]
            np.testing.assert_array_equal(shown, whole[top:bottom, left:right])
    for divisor in (2, 4, 8):
        sides = -(-height // divisor), -(-width // divisor)
        scaled = outcome(lambda: decode_jpeg_scaled(data, *sides))  # noqa: B023
        assert (scaled is None) == (whole is None)
        assert scaled is None or scaled.shape == (*sides, 3)
    ids = rng.integers(1 << 40, size=2)
    aug = vg.Augmenter(CROP, num_threads=1)
    run = outcome(lambda: aug.decode_and_run([data, data], ids=ids))
    if whole is not None:
        assert run is not None
        assert torch.equal(run, aug([whole, whole], ids=ids))
    return whole is not None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_all_paths_agree(kind: str, mutation: Mutation) -> None:
    rng = np.random.default_rng(zlib.crc32(f"{kind} {mutation.__name__}".encode()))
    data = jpeg(**KINDS[kind])
    for _ in range(2):
        mutated = mutate(data, [mutation], rng)
        if is_jpeg(mutated):
            check_all_paths(mutated, rng)


@pytest.mark.filterwarnings("ignore")
def test_all_paths_agree_after_several_mutations() -> None:
    rng = np.random.default_rng(7)
    kinds = [jpeg(**options) for options in KINDS.values()]
    accepted = 0
    for _ in range(150):
        chosen = [MUTATIONS[i] for i in rng.integers(0, len(MUTATIONS) - 2, 2)]
        accepted += check_all_paths(mutate(kinds[rng.integers(len(kinds))], chosen, rng), rng)
    assert 30 < accepted < 140  # both outcomes are met


@pytest.mark.parametrize("mutations", ODD.values(), ids=ODD)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("cmyk", "rgb")])  # JFIF changes the colours
def test_harmless_oddities_change_no_pixel(kind: str, mutations: list[Mutation]) -> None:
    rng = np.random.default_rng(3)
    data = jpeg(**KINDS[kind])
    mutated = mutate(data, mutations, rng)
    assert mutated != data
    assert check_all_paths(mutated, rng)
    np.testing.assert_array_equal(read_image(mutated), read_image(data))
    for sides in ((31, 38), (9, 9), (1, 1)):
        np.testing.assert_array_equal(decode_jpeg_scaled(mutated, *sides), decode_jpeg_scaled(data, *sides))
    # A resized crop of more than twice the output's size, decoded at a scale.
    aug = vg.Augmenter(T.RandomResizedCrop(12, scale=(0.7, 1.0)), fast_decode=True)
    ids = range(8)
    assert torch.equal(aug.decode_and_run([mutated] * 8, ids=ids), aug.decode_and_run([data] * 8, ids=ids))


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (3, 2), (7, 15), (8, 5)])
def test_scales_of_narrow_pictures_are_the_same_by_either_decoder(size: tuple[int, int]) -> None:
    data = jpeg(*size)
    odd = mutate(data, [jpegs.stray_before_frame], np.random.default_rng(0))
    for divisor in (2, 4, 8):
        sides = -(-size[0] // divisor), -(-size[1] // divisor)
        scaled = decode_jpeg_scaled(odd, *sides)
        assert scaled.shape == decode_jpeg_scaled(data, *sides).shape


@pytest.mark.parametrize("mutations", ODD.values(), ids=ODD)
def test_a_loader_takes_the_same_files_in_every_epoch(mutations: list[Mutation]) -> None:
    rng = np.random.default_rng(5)
    files = [(mutate(jpeg(**options), mutations, rng), 0) for options in KINDS.values() for _ in range(2)]
    loader = vg.Loader(open_dataset(files), CROP, batch_size=16, device="cpu", on_error="skip", num_threads=2)
    for _ in range(3):
        assert sum(len(labels) for _, labels in loader) == len(files)
    assert loader.errors == []


def test_a_gpu_is_given_well_formed_files_only() -> None:
    rng = np.random.default_rng(1)
    data = jpeg()
    assert EncodedBatch([data]).is_upright_jpeg(0)
    for mutation in (jpegs.stray_before_frame, jpegs.stray_between, jpegs.escaped_bytes, jpegs.no_end):
        assert not EncodedBatch([mutate(data, [mutation], rng)]).is_upright_jpeg(0)
    assert not EncodedBatch([data.replace(b"JFIF\0\1", b"JFIF\0\0")]).is_upright_jpeg(0)
    assert EncodedBatch([mutate(data, [jpegs.fill_bytes, jpegs.comment], rng)]).is_upright_jpeg(0)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_bytes_is_upright(kind: Callable[[bytes], Any]) -> None:
    data = jpeg(orientation=6)
    aug = vg.Augmenter(CROP)
    expected = aug([read_image(data)], ids=[4])
    assert torch.equal(aug.decode_and_run([kind(data)], ids=[4]), expected)
    assert decode_jpeg(kind(data)).shape == (75, 61, 3)
