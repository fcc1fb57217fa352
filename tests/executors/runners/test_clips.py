"""Clips: one program for all frames, in every form in which clips are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.images import photo
from variegate import transforms as T

MIX = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandAugment()])
NOISY = T.Compose([MIX, T.GaussianNoise(), T.RandomErasing(), T.Normalize(0.5, 0.25)])
IDS = [5, 2**33, 7]


def clip(frames: int, height: int, width: int) -> Any:
    """A photo that moves."""
    whole = photo(height, width + frames)
    return np.stack([whole[:, t : t + width] for t in range(frames)])


CLIPS = [clip(3, 40, 31), clip(1, 17, 31), clip(5, 33, 64)]


@pytest.mark.parametrize("device", ["oracle", "cpu"])
@pytest.mark.parametrize("transform", [MIX, NOISY, T.AugMix(), T.Identity()], ids=["mix", "noise", "blend", "nothing"])
def test_every_frame_gets_what_the_clip_gets(device: str, transform: T.Transform) -> None:
    made = vg.Augmenter(transform, device, seed=4, consistent=True)(CLIPS, ids=IDS, epoch=2, copy=1)
    alone = vg.Augmenter(transform, device, seed=4)
    assert isinstance(made, list)
    for frames, given, id in zip(made, CLIPS, IDS, strict=True):
        assert len(frames) == len(given)
        expected = alone(given, ids=[id] * len(given), epoch=2, copy=1)
        assert torch.equal(frames, expected)


def test_all_forms_of_clips_give_the_same() -> None:
    given = np.stack([clip(3, 40, 31), clip(3, 40, 31)[::-1], clip(3, 40, 31)])
    aug = vg.Augmenter(NOISY, consistent=True)
    made = aug(given, ids=IDS)
    assert made.shape == (3, 3, 3, 24, 24)
    tensor = torch.from_numpy(given)
    frames = [[Image.fromarray(frame) for frame in one] for one in given]
    for other in (tensor, tensor.permute(0, 1, 4, 2, 3), list(given), list(tensor.permute(0, 1, 4, 2, 3)), frames):
        assert torch.equal(aug(other, ids=IDS), made)
    channels_last = vg.Augmenter(NOISY, consistent=True, layout="NHWC")(given, ids=IDS)
    assert torch.equal(channels_last.permute(0, 1, 4, 2, 3), made)
    gray = aug(given[..., :1], ids=IDS)
    assert gray.shape == (3, 3, 1, 24, 24)
    program = aug.program(given, ids=IDS)
    assert torch.equal(aug.run(program, given), made)


def test_views_of_clips() -> None:
    views = T.MultiView([MIX, T.Compose([T.RandomResizedCrop(9), T.AugMix()])], counts=[2, 1])
    large, small = vg.Augmenter(views, consistent=True)([CLIPS[0], CLIPS[0][:, :20]], ids=[1, 2])
    assert large.shape == (2, 2, 3, 3, 24, 24)
    assert small.shape == (2, 1, 3, 3, 9, 9)
    for t in range(3):
        frame = vg.Augmenter(views)([CLIPS[0][t], CLIPS[0][t, :20]], ids=[1, 2])
        assert torch.equal(large[:, :, t], frame[0])
        assert torch.equal(small[:, :, t], frame[1])


def test_a_clip_at_a_time() -> None:
    aug = vg.Augmenter(NOISY, consistent=True)
    one = vg.as_transform(NOISY, consistent=True)
    expected = aug([CLIPS[2]], ids=[7])[0]
    assert expected.shape == (5, 3, 24, 24)
    assert torch.equal(one(CLIPS[2], id=7), expected)
    assert torch.equal(one(torch.from_numpy(CLIPS[2]).permute(0, 3, 1, 2), id=7), expected)
    assert "consistent=True" in repr(aug)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (CLIPS[0], r"images: got shape \(3, 40, 31, 3\); accepted with consistent=True: clips"),
        ([CLIPS[0], CLIPS[0][0]], r"images\[1\]: got shape \(40, 31, 3\); accepted with"),
        ([[]], r"images\[0\]: got no frame"),
        (
            [CLIPS[0], [CLIPS[0][0], CLIPS[1][0]]],
            r"images\[1\]\[1\]: got shape \[17, 31, 3\] in a clip of \[40, 31, 3\]",
        ),
    ],
)
def test_what_is_no_clip(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vg.Augmenter(MIX, consistent=True)(given)


def test_clips_without_the_word_are_refused_with_it() -> None:
    with pytest.raises(ValueError, match=r"clips are for Augmenter\(consistent=True\)"):
        vg.Augmenter(MIX)(np.stack([CLIPS[0]] * 2))
    with pytest.raises(ValueError, match="consistent: got 'yes'; accepted"):
        vg.Augmenter(MIX, consistent="yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="decode_and_run: got files with consistent=True"):
        vg.Augmenter(MIX, consistent=True).decode_and_run([b""])
    with pytest.raises(ValueError, match="consistent: got True with a transform that has CutMix, which mixes images"):
        vg.Augmenter(T.Compose([MIX, T.CutMix()]), consistent=True)
