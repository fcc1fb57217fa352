"""What users hand over is checked before anything is computed from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.loader.samples import jpeg
from variegate import Augmenter
from variegate import transforms as T
from variegate.cli import main
from variegate.decode import read_image
from variegate.errors import DecodeError
from variegate.executors.runners.images import check_images, check_sizes
from variegate.program.program import MAX_SIDE


def test_the_longest_side_is_accepted() -> None:
    assert check_images([np.zeros((MAX_SIDE, 1, 3), np.uint8)])[0].shape == (MAX_SIDE, 1, 3)
    assert check_sizes([(1, MAX_SIDE)]).tolist() == [[1, MAX_SIDE, 3]]


@pytest.mark.parametrize("shape", [(MAX_SIDE + 1, 1), (1, MAX_SIDE + 1)])
def test_longer_sides_are_refused(shape: tuple[int, int]) -> None:
    """Coordinates are 16.16 fixed point: 32,768 * 65,536 does not fit an int32."""
    image = np.zeros((*shape, 3), np.uint8)
    accepted = r"accepted: sides of at most 32,767 pixels"
    with pytest.raises(ValueError, match=rf"images\[1\]: got shape \({shape[0]}, {shape[1]}, 3\); {accepted}"):
        check_images([np.zeros((2, 2), np.uint8), image])
    with pytest.raises(ValueError, match=rf"images: got shape \(1, .*\); {accepted}"):
        check_images(image[None])
    with pytest.raises(ValueError, match=rf"sizes\[0\]: got shape \(.*\); {accepted}"):
        check_sizes([shape])
    with pytest.raises(ValueError, match=accepted):
        Augmenter(T.RandomHorizontalFlip()).explain(0, size=shape)


def test_a_file_with_a_longer_side_is_skipped_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    Image.new("L", (MAX_SIDE + 1, 1)).save(tmp_path / "in/long.png")
    Image.new("L", (8, 8)).save(tmp_path / "in/small.png")
    command = ["augment", str(tmp_path / "in"), str(tmp_path / "out"), "--on-error", "skip", "--policy", "none"]
    assert main([*command, "--workers", "thread"]) == 0
    assert "skipped long.png: 32,768 x 1 pixels, more than 32,767 on a side" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").glob("*.jpg")] == ["small_0.jpg"]


@pytest.mark.parametrize("transform", [T.Resize((MAX_SIDE + 1, 2)), T.Pad((0, MAX_SIDE))])
def test_operations_do_not_make_longer_sides(transform: T.Transform) -> None:
    with pytest.raises(ValueError, match=r"to \d+x\d+; accepted: sides of at most 32,767 pixels"):
        Augmenter(transform).explain(0, size=(8, 8))


def test_bytes_of_files_are_decoded_as_by_the_loader() -> None:
    files = [jpeg(0), jpeg(1)]
    augmenter = Augmenter(T.Compose([T.RandomResizedCrop(8), T.RandomHorizontalFlip()]))
    expected = augmenter([read_image(data) for data in files], ids=[5, 6])
    np.testing.assert_array_equal(augmenter(files, ids=[5, 6]), expected)
    np.testing.assert_array_equal(augmenter([files[0]], ids=[5])[0], expected[0])
    np.testing.assert_array_equal(augmenter([files[0], read_image(files[1])], ids=[5, 6]), expected)
    sample = augmenter({"image": files[1], "boxes": np.array([[1, 1, 5, 5]], np.float32)}, ids=6)
    np.testing.assert_array_equal(sample["image"], expected[1])
    with pytest.raises(DecodeError, match=r"images\[1\]: not an image"):
        augmenter([files[0], b"no image"])
