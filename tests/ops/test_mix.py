"""MixUp, CutMix, ResizeMix and Mosaic within a batch: their pixels, their labels, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import variegate as vg
from tests.images import photo
from variegate import transforms as T
from variegate.augmenter.planner import MixedLabels

N, CLASSES = 12, 5
IMAGES = [np.roll(photo(17, 31), shift, axis=1) // (1 + shift % 3) for shift in range(N)]
LABELS = [n % CLASSES for n in range(N)]
BEFORE = T.Compose([T.RandomHorizontalFlip(), T.Rotate((-30, 30)), T.Posterize((2, 8))])
MIXERS: list[Any] = [T.MixUp(alpha=0.2), T.MixUp(), T.CutMix(), T.ResizeMix(), T.Mosaic()]


def run(*transforms: T.Transform, **options: Any) -> Any:
    given = {"ids": range(N), "labels": LABELS, "partners": "batch", **options}
    return vg.Augmenter(T.Compose(transforms), "oracle", seed=4, layout="NHWC")(IMAGES, **given)


def pictures() -> npt.NDArray[np.uint8]:
    """Unmixed."""
    made = vg.Augmenter(BEFORE, "oracle", seed=4, layout="NHWC")(IMAGES, ids=range(N))
    return np.asarray(made)


def test_mixup_is_a_weighted_sum_rounded_to_the_nearest() -> None:
    images, labels = run(BEFORE, T.MixUp(alpha=0.4))
    own = pictures().astype(np.float64)
    weight = labels.weight.numpy().astype(np.float64)[:, None, None, None]
    expected = own * (1 - weight) + np.roll(own, 1, axis=0) * weight
    assert np.abs(images.numpy() - expected).max() <= 0.5 + 1e-4
    assert 0 < weight.min() < 0.1
    assert len(set(labels.weight.tolist())) == N  # each has its own


def test_cutmix_has_a_box_of_the_partner_and_its_share_of_the_label() -> None:
    images, labels = run(BEFORE, T.CutMix())
    own = pictures()
    for n, image in enumerate(images.numpy()):
        is_other = (image != own[n]).any(axis=2)
        lines, columns = np.flatnonzero(is_other.any(axis=1)), np.flatnonzero(is_other.any(axis=0))
        area = labels.weight[n].item() * 17 * 31
        assert area == pytest.approx(round(area), abs=1e-3)
        if len(lines):
            box = slice(lines[0], lines[-1] + 1), slice(columns[0], columns[-1] + 1)
            np.testing.assert_array_equal(image[box], own[n - 1][box])
            assert is_other.sum() <= (lines[-1] + 1 - lines[0]) * (columns[-1] + 1 - columns[0]) <= round(area)
    assert 0.1 < labels.weight.mean() < 0.9


def test_a_mosaic_has_four_quadrants() -> None:
    images, labels = run(BEFORE, T.Mosaic((0.5, 0.5)))
    own = pictures()
    for n, image in enumerate(images.numpy()):
        whose = [own[n - k] for k in range(4)]
        expected = np.concatenate(
            [
                np.concatenate([whose[0][:8, :15], whose[1][:8, 15:]], axis=1),
                np.concatenate([whose[2][8:, :15], whose[3][8:, 15:]], axis=1),
            ]
        )
        np.testing.assert_array_equal(image, expected)
    assert labels.partner.tolist()[0] == [LABELS[-1], LABELS[-2], LABELS[-3]]
    np.testing.assert_allclose(labels.weight[0] * 17 * 31, [8 * 16, 9 * 15, 9 * 16], rtol=1e-6)


def test_resizemix_shows_the_whole_partner_whatever_its_size() -> None:
    images = [np.full((20, 30, 3), 10, np.uint8), np.full((50, 7, 3), 200, np.uint8)]
    made, labels = vg.Augmenter(T.ResizeMix((0.5, 0.5)), layout="NHWC")(images, labels=[0, 1], partners=[1])
    assert made.shape == (1, 20, 30, 3)
    assert int((made == 200).sum()) == 10 * 15 * 3
    assert int((made == 10).sum()) == 3 * (20 * 30 - 10 * 15)
    assert labels.weight.tolist() == [0.25]


@pytest.mark.parametrize("mixer", MIXERS, ids=repr)
def test_labels_become_soft_by_the_same_shares(mixer: Any) -> None:
    _, triple = run(mixer)
    assert isinstance(triple, MixedLabels)
    _, soft = run(type(mixer)(**{**vars_of(mixer), "num_classes": CLASSES}))
    assert soft.dtype == torch.float32
    expected = torch.zeros(N, CLASSES)
    partner, weight = triple.partner.reshape(N, -1), triple.weight.reshape(N, -1)
    for n in range(N):
        expected[n, triple.label[n]] += 1 - weight[n].sum()
        for k in range(partner.shape[1]):
            expected[n, partner[n, k]] += weight[n, k]
    torch.testing.assert_close(soft, expected)
    torch.testing.assert_close(soft.sum(dim=1), torch.ones(N))


def vars_of(mixer: T.Transform) -> dict[str, Any]:
    return {name: value for name, value in mixer.to_dict().items() if name != "type"}


@pytest.mark.parametrize("mixer", MIXERS, ids=repr)
def test_a_picture_depends_on_its_id_and_its_partners_alone(mixer: Any) -> None:
    whole, _ = run(BEFORE, mixer)
    kept = [7, *(7 - k for k in range(1, 1 + mixer.num_partners))]
    some = vg.Augmenter(T.Compose([BEFORE, mixer]), "oracle", seed=4, layout="NHWC")(
        [IMAGES[n] for n in kept], ids=kept, partners=[list(range(1, len(kept)))]
    )
    assert some.shape[0] == 1
    assert torch.equal(some[0], whole[7])


def test_a_choice_of_them_and_images_that_stay_as_they_are() -> None:
    t = [BEFORE, T.RandomApply([T.RandomChoice([T.MixUp(num_classes=5), T.CutMix(num_classes=5)])], 0.6)]
    images, labels = run(*t)
    program = vg.Augmenter(T.Compose(t), seed=4).program(IMAGES, ids=range(N), partners="batch")
    assert {"MixUp", "CutMix", None} == set(program.mixture.names)  # type: ignore[union-attr]
    own = pictures()
    for n, name in enumerate(program.mixture.names):  # type: ignore[union-attr]
        if name is None:
            np.testing.assert_array_equal(images[n], own[n])
            assert labels[n].tolist() == np.eye(CLASSES)[LABELS[n]].tolist()
    # A partner that nobody is mixed with is not made.
    lone = vg.Augmenter(T.RandomApply([T.MixUp()], 0.0)).program([(8, 8), (9, 9)], partners=[1])
    assert lone.num_rows == lone.num_outputs == 1


def test_labels_that_are_floats_are_mixed_as_they_are() -> None:
    _, labels = run(T.MixUp(), labels=np.arange(N, dtype=np.float32))
    _, triple = run(T.MixUp())
    expected = np.arange(N) * (1 - triple.weight.numpy()) + np.roll(np.arange(N), 1) * triple.weight.numpy()
    np.testing.assert_allclose(labels, expected, rtol=1e-5)


def test_the_distribution_is_torchvisions() -> None:
    """Beta(0.2, 0.2), and CutMix's area at lam uniform: mean and deviation of many."""
    count = 4000
    for mixer, mean, deviation in ((T.MixUp(alpha=0.2), 0.5, (1 / (4 * 1.4)) ** 0.5), (T.MixUp(), 0.5, 12**-0.5)):
        program = vg.Augmenter(mixer).program([(8, 8)] * count, partners="batch")
        share = program.mixture.shares[:, 0]  # type: ignore[union-attr]
        assert share.mean() == pytest.approx(mean, abs=4 * deviation / count**0.5)
        assert share.std() == pytest.approx(deviation, rel=0.05)
    # By 200,000 draws of torchvision's own arithmetic: what is pasted covers 0.3235 on average.
    shares = vg.Augmenter(T.CutMix()).program([(64, 64)] * count, partners="batch").mixture.shares  # type: ignore[union-attr]
    assert 1 - shares[:, 0].mean() == pytest.approx(_torchvision_cutmix(), abs=0.015)


def _torchvision_cutmix() -> float:
    rng, number, side = np.random.default_rng(0), 200_000, 64
    lam, centre = rng.uniform(size=number), rng.integers(0, side, (2, number))
    half = (0.5 * np.sqrt(1.0 - lam) * side).astype(int)
    ends = np.minimum(centre + half, side) - np.maximum(centre - half, 0)
    return float((ends[0] * ends[1]).mean() / side**2)


def test_it_is_described_and_explained() -> None:
    told = vg.Augmenter(T.Compose([T.Invert(), T.MixUp()])).explain(3, partners=[17], size=(8, 8))
    assert "MixUp of" in told
    assert "x sample 17: Invert" in told


def test_an_empty_batch_has_nothing_to_mix() -> None:
    assert vg.Augmenter(T.MixUp(), "oracle")([], partners="batch", labels=[])[0] == []
