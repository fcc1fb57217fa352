"""Many channels from files and arrays to batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image

import variegate as vg
from tests.images import noise
from variegate import transforms as T

NORMALIZE = T.Normalize((0.1, 0.2, 0.3, 0.4, 0.5), (0.5,) * 5)
TRANSFORM = T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), NORMALIZE])


def folder_of(root: Path, channels: int, suffix: str) -> list[Any]:
    images = [noise(20, 24 + i, channels, i) for i in range(6)]
    for i, image in enumerate(images):
        (root / f"class{i % 2}").mkdir(parents=True, exist_ok=True)
        path = root / f"class{i % 2}" / f"{i}{suffix}"
        if suffix == ".npy":
            np.save(path, image)
        elif suffix == ".tif":
            tifffile.imwrite(path, image, photometric="minisblack", planarconfig="contig")
        else:
            Image.fromarray(image).save(path)
    return images


@pytest.mark.parametrize("suffix", [".npy", ".tif"])
def test_folders_of_five_channels(tmp_path: Path, suffix: str) -> None:
    images = folder_of(tmp_path, 5, suffix)
    loader = vg.Loader(str(tmp_path), TRANSFORM, batch_size=6, device="cpu", shuffle=False)
    made, labels = next(iter(loader))
    order = [0, 2, 4, 1, 3, 5]
    expected = vg.Augmenter(TRANSFORM)([images[i] for i in order], ids=range(6))
    assert (made == expected).all()
    assert labels.tolist() == [0, 0, 0, 1, 1, 1]
    cached = vg.Loader(str(tmp_path), TRANSFORM, batch_size=6, device="cpu", shuffle=False, cache="host")
    for _ in range(2):
        assert (next(iter(cached))[0].shape) == (6, 5, 16, 16)


def test_arrays_and_alpha(tmp_path: Path) -> None:
    images = np.stack([noise(20, 24, 5, i) for i in range(6)])
    loader = vg.Loader((images, [0, 1, 2, 0, 1, 2]), TRANSFORM, batch_size=3, device="cpu", shuffle=False)
    made = torch.cat([batch for batch, _ in loader])
    assert (made == vg.Augmenter(TRANSFORM)(images, ids=range(6))).all()
    files = folder_of(tmp_path, 4, ".png")
    crop = T.CenterCrop(16)
    plain, _ = next(iter(vg.Loader(str(tmp_path), crop, 6, "cpu", shuffle=False)))
    alpha, _ = next(iter(vg.Loader(str(tmp_path), crop, 6, "cpu", shuffle=False, channels=4)))
    assert plain.shape == (6, 3, 16, 16)
    assert (alpha[:, :3] == plain).all()
    assert (alpha[0, 3] == torch.from_numpy(files[0])[2:18, 4:20, 3]).all()
    with pytest.raises(ValueError, match="channels: got 33; accepted: an integer from 1 to 32"):
        vg.Loader(str(tmp_path), crop, channels=33)


def test_numpy_files_next_to_images_are_no_images(tmp_path: Path) -> None:
    folder_of(tmp_path, 3, ".png")
    np.save(tmp_path / "class0" / "features.npy", np.zeros((4, 4, 5), np.uint8))
    assert len(vg.open_source(str(tmp_path))) == 6


def test_data_sets_say_their_channels() -> None:
    images = [noise(20, 24, 5, i) for i in range(4)]

    class Pairs:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: int) -> tuple[Any, int]:
            return images[i], i % 2

    pairs = Pairs()
    made, labels = next(iter(vg.Loader(pairs, TRANSFORM, 4, "cpu", shuffle=False, channels=5)))
    assert (made == vg.Augmenter(TRANSFORM)(images, ids=range(4))).all()
    assert labels.tolist() == [0, 1, 0, 1]
    with pytest.raises(
        vg.DecodeError, match=r"got shape \(20, 24, 5\); accepted: 1 or 3 channels; others with channels="
    ):
        next(iter(vg.Loader(pairs, TRANSFORM, 4, "cpu", shuffle=False)))
