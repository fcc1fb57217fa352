"""Writing image files: whole or not at all, under names that never meet."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from variegate.sinks.atomic import write_atomically
from variegate.sinks.encode import FORMATS, encode_image
from variegate.sinks.naming import output_path, output_stems

PHOTO = np.random.default_rng(0).integers(0, 256, (4, 5, 3)).astype(np.uint8).repeat(8, 0).repeat(8, 1)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", [(32, 40, 3), (32, 40, 1), (32, 40)])
def test_every_format_reads_back(name: str, shape: tuple[int, ...]) -> None:
    img_HWC = PHOTO.reshape(32, 40, 3) if shape[-1] == 3 else PHOTO[..., 0].reshape(shape)
    data = encode_image(img_HWC, name)
    assert data == encode_image(img_HWC, name)
    image = Image.open(io.BytesIO(data))
    assert (image.height, image.width) == shape[:2]
    if name == "png":
        np.testing.assert_array_equal(np.asarray(image), img_HWC.squeeze())
    elif name == "jpg":
        assert image.mode == ("RGB" if shape[-1] == 3 else "L")


def test_a_view_is_encoded_as_it_is_seen() -> None:
    flipped = PHOTO[:, ::-1]
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(encode_image(flipped, "png")))), flipped)


def test_quality_matters() -> None:
    for name in ("jpg", "webp"):
        assert len(encode_image(PHOTO, name, 30)) < len(encode_image(PHOTO, name, 98))


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match="format: got 'bmp'; accepted: jpg, png, webp"):
        encode_image(PHOTO, "bmp")
    with pytest.raises(ValueError, match="quality: got 0; accepted: 1 to 100"):
        encode_image(PHOTO, "jpg", 0)
    with pytest.raises(ValueError, match="webp holds at most 16,383 pixels a side; this picture has 16,384"):
        encode_image(np.zeros((1, 16_384, 3), np.uint8), "webp")


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(b"old")

    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.jpg"]


# -- names -------------------------------------------------------------------------------------------------------


def test_plain_names_lose_their_extension() -> None:
    assert output_stems(["cat/a.jpg", "dog/a.jpg", "cat/deep/a.png"]) == ["cat/a", "dog/a", "cat/deep/a"]
    assert output_path("cat/a", 3, "jpg") == "cat/a_3.jpg"


def test_same_stem_keeps_the_extension() -> None:
    assert output_stems(["c/a.jpg", "c/a.png", "c/b.jpg"]) == ["c/a.jpg", "c/a.png", "c/b"]


def test_names_that_differ_in_case_alone_do_not_meet() -> None:
    assert output_stems(["c/a.jpg", "c/A.jpg", "c/a.png"]) == ["c/a.jpg~0", "c/A.jpg~1", "c/a.png"]


def test_a_name_that_looks_like_a_resolved_clash() -> None:
    stems = output_stems(["c/a.jpg", "c/a.jpg.png", "c/a.png"])
    assert len(set(stems)) == 3


NAMES = st.lists(
    st.tuples(st.sampled_from("ab"), st.text("aA.~_0", min_size=1, max_size=5), st.sampled_from(["jpg", "png", "JPG"]))
    .map(lambda t: f"{t[0]}/{t[1]}.{t[2]}")
    .filter(lambda p: not p.split("/")[1].startswith(".")),
    unique=True,
    max_size=12,
)


@given(NAMES)
def test_outputs_never_meet_on_any_file_system(paths: list[str]) -> None:
    outputs = [output_path(stem, copy, "jpg").casefold() for stem in output_stems(paths) for copy in (0, 1, 10)]
    assert len(set(outputs)) == len(outputs)
