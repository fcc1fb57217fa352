"""Bad samples: raised, skipped or replaced; named, counted, and never a reason for ranks to fall out of step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.data.loader.samples import MemorySource, MemoryStream, jpeg
from tests.data.loader.test_loader import CROPPED, load, pixels
from variegate import transforms as T
from variegate.errors import DecodeError

TRUNCATED = jpeg(5)[:400]  # a JPEG: its header is whole, its picture is not
NO_HEADER = jpeg(6)[:20]
UNREADABLE = DecodeError("memory: 7.jpg", "cannot be read (Input/output error)")
BROKEN = {5: TRUNCATED, 6: NO_HEADER, 7: UNREADABLE, 8: b"", 9: b"this is text", 12: jpeg(12)[:300]}
SOURCES = [lambda: MemorySource(20, BROKEN), lambda: MemoryStream(20, broken=BROKEN)]  # type: ignore[arg-type]


@pytest.mark.parametrize("make", SOURCES)
def test_raise_names_the_sample_when_its_turn_comes(make: Any) -> None:
    loader = load(make(), shuffle=False, batch_size=5)
    iterator = iter(loader)
    assert len(next(iterator).labels) == 5
    with pytest.raises(DecodeError, match=r"memory: 5\.jpg: truncated"):
        next(iterator)
    assert loader.state_dict()["done"] == 5
    with pytest.raises(StopIteration):
        next(iterator)


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("transform", [CROPPED, T.Compose([CROPPED, T.Normalize(0.5, 0.5)]), T.Resize((9, 9))])
def test_skip_leaves_them_out_and_changes_no_other_pixel(make: Any, transform: Any) -> None:
    loader = load(make(), transform, on_error="skip")
    expected = pixels(load(MemorySource(20), transform))
    for index in BROKEN:
        del expected[1000 + index]
    assert pixels(loader) == expected
    assert {failure.id - 1000 for failure in loader.errors} == set(BROKEN)


def test_errors_hold_file_member_and_reason() -> None:
    loader = load(MemorySource(20, BROKEN), on_error="skip")  # type: ignore[arg-type]
    for _ in range(2):
        list(loader)
    found = {failure.id - 1000: failure for failure in loader.errors}
    assert len(loader.errors) == len(BROKEN)
    for index, failure in found.items():
        assert (failure.file, failure.member, failure.epoch, failure.times) == ("memory", f"{index}.jpg", 0, 2)
        assert str(failure) == f"memory: {index}.jpg: {failure.reason}"
    assert "truncated" in found[5].reason
    assert "truncated" in found[6].reason
    assert found[7].reason == "cannot be read (Input/output error)"
    assert found[8].reason == "zero bytes: the file is empty"
    assert found[9].reason.startswith("not an image: no known format begins with b'this is text'")


def test_replace_keeps_batches_full_and_marks_the_rows() -> None:
    loader = load(MemorySource(20, BROKEN), on_error="replace", shuffle=False)  # type: ignore[arg-type]
    batches = list(loader)
    assert [len(batch.labels) for batch in batches] == [4] * 5
    marked = [int(i) - 1000 for batch in batches for i in batch.ids[batch.padding]]
    assert marked == sorted(BROKEN)
    assert pixels(loader).keys() == pixels(load(MemorySource(20, BROKEN), on_error="skip")).keys()  # type: ignore[arg-type]


def test_a_substitute_is_a_good_sample_drawn_for_the_bad_one() -> None:
    """Another batch size, another thread count, the same substitute; with the label of its own picture."""

    def substitutes(**options: Any) -> dict[int, tuple[bytes, int]]:
        loader = load(MemorySource(20, BROKEN), T.Resize((16, 16)), on_error="replace", **options)  # type: ignore[arg-type]
        return {
            int(i): (image.numpy().tobytes(), int(label))
            for batch in loader
            for i, image, label, is_padding in zip(batch.ids, batch.images, batch.labels, batch.padding, strict=True)
            if is_padding
        }

    found = substitutes()
    assert found == substitutes(batch_size=7, num_threads=1)
    good = {
        vg.Augmenter(T.Resize((16, 16))).decode_and_run([jpeg(i)])[0].numpy().tobytes(): i % 2
        for i in range(20)
        if i not in BROKEN
    }
    assert len(found) == len(BROKEN)
    for picture, label in found.values():
        assert good[picture] == label


def test_replace_in_a_stream_takes_another_row_of_the_batch() -> None:
    loader = load(MemoryStream(20, broken=BROKEN), T.Resize((16, 16)), on_error="replace", batch_size=10, shuffle=False)  # type: ignore[arg-type]
    batch = next(iter(loader))
    assert batch.padding.tolist() == [False] * 5 + [True] * 5
    assert torch.equal(batch.images[9], batch.images[0])
    assert batch.labels[9] == batch.labels[0]


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_batch_of_nothing_but_bad_samples_holds_a_substitute(on_error: str) -> None:
    """An empty batch would put this rank a step behind the others."""
    broken: dict[int, bytes | DecodeError] = dict.fromkeys(range(4, 8), TRUNCATED)
    loader = load(MemorySource(12, broken), on_error=on_error, shuffle=False)
    sizes = [len(batch.labels) for batch in loader]
    assert sizes == ([4, 1, 4] if on_error == "skip" else [4, 4, 4])


def test_ranks_stay_in_step_with_bad_samples_on_one_of_them() -> None:
    broken: dict[int, bytes | DecodeError] = dict.fromkeys(range(0, 12, 2), TRUNCATED)
    counts = [
        len(list(load(MemorySource(12, broken), on_error="skip", shuffle=False, rank=rank, world_size=2, batch_size=2)))
        for rank in range(2)
    ]
    assert counts == [3, 3]


def test_nothing_but_bad_samples_ends_with_the_first_of_them() -> None:
    broken: dict[int, bytes | DecodeError] = dict.fromkeys(range(8), TRUNCATED)
    with pytest.raises(DecodeError, match=r"memory: 0\.jpg: truncated"):
        list(load(MemorySource(8, broken), on_error="skip", shuffle=False))


@pytest.mark.parametrize(("limit", "allowed"), [(2, 2), (5, 5), (0.1, 2), (0.26, 5), (0, 0)])
def test_more_than_max_errors_end_the_run(limit: int | float, allowed: int) -> None:
    loader = load(MemorySource(20, BROKEN), on_error="skip", max_errors=limit, batch_size=1, shuffle=False)  # type: ignore[arg-type]
    message = rf"{allowed + 1} samples could not be read, max_errors={limit} allows {allowed}; the last: memory: "
    with pytest.raises(vg.TooManyErrors, match=message):
        list(loader)
    assert len(loader.errors) == allowed + 1


def test_max_errors_counts_samples_not_epochs() -> None:
    loader = load(MemorySource(20, BROKEN), on_error="skip", max_errors=len(BROKEN))  # type: ignore[arg-type]
    for _ in range(3):
        assert len(pixels(loader)) == 20 - len(BROKEN)


def test_an_image_that_the_transform_does_not_take_is_a_bad_sample() -> None:
    """One picture smaller than the crop does not kill a run; a transform that takes none of them does."""
    crop = T.RandomCrop(44)
    small = [i for i in range(20) if 40 + i % 7 < 44]
    loader = load(MemorySource(20), crop, on_error="skip", batch_size=20)
    assert sorted(i - 1000 for i in pixels(loader)) == [i for i in range(20) if i not in small]
    assert "not taken by the transform" in loader.errors[0].reason
    with pytest.raises(ValueError, match="500"):
        list(load(MemorySource(20), T.RandomCrop(500), on_error="skip"))
    with pytest.raises(ValueError, match="44"):
        list(load(MemorySource(20), crop))


def test_bombs_are_refused_by_their_header() -> None:
    height_at = jpeg(5).index(b"\xff\xc0") + 5
    bomb = bytearray(jpeg(5))
    bomb[height_at : height_at + 4] = b"\xff\x00\xff\x00"
    loader = load(MemorySource(8, {3: bytes(bomb)}), on_error="skip")
    list(loader)
    assert "more than the limit of 178,956,970 (max_pixels)" in loader.errors[0].reason
    limited = load(MemorySource(8), on_error="skip", max_pixels=45 * 50)
    list(limited)
    assert {f.id - 1000 for f in limited.errors} == {i for i in range(8) if np.prod([40 + i % 7, 48 + i % 5]) > 45 * 50}
    assert all("(max_pixels)" in failure.reason for failure in limited.errors)
