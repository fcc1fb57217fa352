"""Transforms that look at boxes: what they keep and drop, from which draws, and where in a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variegate as vg
from tests.ops.examples import BY_BOXES
from tests.oracle.philox import philox4x32
from tests.targets.test_samples import IMAGE, run, sample
from variegate import transforms as T
from variegate.program.rng import sample_words, stream_key, to_unit

HEIGHT, WIDTH = 120, 160
BOXES = [[10.0, 20, 70, 100], [90, 5, 150, 60], [60, 60, 75, 70]]
OPTIONS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
TURNS = T.Compose([T.RandomHorizontalFlip(), T.RandomAffine(30, (0.1, 0.1), (0.8, 1.2)), T.ElasticTransform(40.0, 4.0)])


def crops_of(transform: T.Transform, count: int, boxes: Any = BOXES) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Of ids 0 .. count - 1: top, left, height, width [count, 4], and which boxes are kept."""
    augmenter = vg.Augmenter(transform, seed=5)
    program = augmenter.program([(HEIGHT, WIDTH)] * count, range(count), boxes=[boxes] * count)
    whole = np.array([0, 0, HEIGHT, WIDTH])
    assert program.dropped_boxes is not None
    return np.where(program.length[:, None] > 0, program.args[:, 0, :4], whole), ~program.dropped_boxes


def ssd_crop(sample_id: int, trials: int) -> tuple[list[int], list[bool]]:
    """torchvision's loop, over this library's random words: blocks of a stream whose key is the transform's first."""
    key = philox4x32([0, 0, sample_id, 0], stream_key(5, 0))[None, :2]
    boxes = np.array(BOXES)
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    for number in range(100):
        [words] = to_unit(sample_words(np.array([number], np.uint64), np.ascontiguousarray(key), 1 + trials))
        option = OPTIONS[int(words[0, 0] * 7)]
        if option >= 1.0:
            break
        for w, h, x, y in words[1:]:
            width, height = int(WIDTH * (0.3 + 0.7 * w)), int(HEIGHT * (0.3 + 0.7 * h))
            if not 0.5 <= width / height <= 2.0:
                continue
            left, top = int((WIDTH - width) * x), int((HEIGHT - height) * y)
            within = ((centres > [left, top]) & (centres < [left + width, top + height])).all(axis=1)
            sides = np.minimum(boxes[:, 2:], [left + width, top + height]) - np.maximum(boxes[:, :2], [left, top])
            common = np.maximum(sides, 0).prod(axis=1)
            overlap = common / ((boxes[:, 2:] - boxes[:, :2]).prod(axis=1) + width * height - common)
            if within.any() and overlap[within].max() >= option:
                return [top, left, height, width], within.tolist()
    return [0, 0, HEIGHT, WIDTH], [True] * 3


def test_iou_crop_is_the_loop_of_torchvision() -> None:
    crops, kept = crops_of(T.RandomIoUCrop(trials=9), 100)
    for n in range(100):
        assert (crops[n].tolist(), kept[n].tolist()) == ssd_crop(n, 9)


# Of 6,000 crops of torchvision 0.28 each: means of top, left, height, width and of each box's being kept, and the share
# of images that stay as they are.
@pytest.mark.parametrize(
    ("transform", "means", "unchanged"),
    [
        (T.RandomIoUCrop(), [12.30, 20.98, 91.42, 103.85, 0.816, 0.576, 0.844], 0.193),
        (
            T.RandomIoUCrop(sampler_options=[0.5, 1.0], trials=10),
            [5.46, 8.35, 105.82, 128.03, 0.932, 0.708, 0.890],
            0.638,
        ),
        (
            T.RandomIoUCrop(0.5, 0.8, 1.0, 1.6, [0.0, 0.3]),
            [18.54, 24.44, 79.21, 102.15, 0.778, 0.540, 0.978],
            0.0,
        ),
    ],
)
def test_iou_crop_has_the_distribution_of_torchvision(
    transform: T.Transform, means: list[float], unchanged: float
) -> None:
    crops, kept = crops_of(transform, 3000)
    drawn = np.concatenate([crops, kept], axis=1)
    # Four standard errors of the difference, of 3,000 and of 6,000.
    error = drawn.std(axis=0) * np.sqrt(1 / 3000 + 1 / 6000)
    assert (np.abs(drawn.mean(axis=0) - means) <= 4 * error + 0.01).all()
    assert (crops[:, 2:] == [HEIGHT, WIDTH]).all(axis=1).mean() == pytest.approx(unchanged, abs=0.045)


def test_iou_crop_drops_boxes_whose_centre_is_outside_with_their_labels() -> None:
    results = run(
        T.RandomIoUCrop(0.3, 0.6, sampler_options=[0.0]),
        *[sample(boxes=[[4, 4, 20, 30], [25, 2, 55, 22], [30, 20, 58, 38]], labels=["a", "b", "c"])] * 40,
    )
    numbers = {len(result["labels"]) for result in results}
    assert numbers >= {1, 2}
    for result in results:
        assert len(result["boxes"]) == len(result["labels"]) >= 1
        assert result["image"].shape[1] <= 0.6 * 40
    middle = [result["labels"] for result in results if 0 < len(result["labels"]) < 3]
    assert {"a", "b", "c"} == {label for labels in middle for label in labels}


def test_without_boxes_or_with_options_that_cannot_be_met_the_image_stays() -> None:
    [result] = run(T.RandomIoUCrop(), sample(boxes=[], labels=[]))
    assert result["image"].shape == (3, 40, 60)
    crops, kept = crops_of(T.RandomIoUCrop(sampler_options=[0.999], trials=3), 4, [[0, 0, 3, 3]])
    assert crops.tolist() == [[0, 0, HEIGHT, WIDTH]] * 4
    assert kept.all()
    # An option of 1 leaves the image alone; one box is the whole image, so that each crop has its own share of it.
    crops, _ = crops_of(T.RandomIoUCrop(sampler_options=[0.6]), 50, [[0, 0, WIDTH, HEIGHT]])
    assert (crops[:, 2:].prod(axis=1) / (HEIGHT * WIDTH)).min() >= 0.6


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0, 39), st.floats(0, 29)), min_size=1, max_size=5), st.integers(0, 2**32))
def test_a_box_safe_crop_cuts_no_box(corners: list[tuple[float, float]], first: int) -> None:
    boxes = [[x, y, x + 20, y + 10.5] for x, y in corners]
    for transform in (T.RandomBoxSafeCrop(), T.Compose([T.RandomVerticalFlip(), T.RandomBoxSafeCrop()])):
        augmenter = vg.Augmenter(transform, device="cpu", num_threads=1)
        options = vg.Targets(min_visibility=1.0)
        for result in augmenter([sample(boxes=boxes)] * 3, ids=range(first, first + 3), targets=options):
            assert len(result["boxes"]) == len(boxes)


def test_a_resized_box_safe_crop_has_its_size_and_all_boxes() -> None:
    for interpolation in ("bilinear", "nearest"):
        t = T.RandomResizedBoxSafeCrop((20, 30), interpolation=interpolation)
        for result in run(t, *[sample(boxes=[[10, 10, 20, 20], [30, 12, 50, 34]])] * 6, min_visibility=1.0):
            assert result["image"].shape == (3, 20, 30)
            assert len(result["boxes"]) == 2


@pytest.mark.parametrize("erosion", [0.0, 0.4, 1.0])
def test_a_crop_holds_enough_of_one_box_each_equally_often(erosion: float) -> None:
    crops, _ = crops_of(T.RandomAtLeastOneBoxCrop((40, 50), erosion), 1500, [[0, 0, 30, 20], [120, 90, 160, 120]])
    start = crops[:, 1::-1]
    shares = []
    for box in ([0, 0, 30, 20], [120, 90, 160, 120]):
        low, high = np.array(box[:2]), np.array(box[2:])
        common = np.maximum(np.minimum(start + np.array([50, 40]), high) - np.maximum(start, low), 0)
        shares.append((common >= np.maximum((1 - erosion) * (high - low), 1) - 1e-9).all(axis=1))
    assert (shares[0] ^ shares[1]).all()
    assert shares[0].mean() == pytest.approx(0.5, abs=0.06)
    # A box that is larger than the crop holds all of it.
    crops, _ = crops_of(T.RandomAtLeastOneBoxCrop(20), 300, [[50, 40, 110, 80]])
    assert crops[:, :2].min(axis=0).tolist() == [40, 50]
    assert crops[:, :2].max(axis=0).tolist() == [60, 90]
    crops, _ = crops_of(T.RandomAtLeastOneBoxCrop(100), 300, [])
    assert crops[:, :2].max(axis=0).tolist() == [20, 60]


def test_sanitizing_drops_what_is_small_here_and_not_what_becomes_small() -> None:
    entries: dict[str, Any] = {"boxes": [[0, 0, 3, 30], [5, 5, 9, 9], [20, 20, 40, 40]], "labels": ["thin", "s", "l"]}
    shrink = T.Resize((20, 30))
    assert run(T.SanitizeBoundingBoxes(4), sample(**entries))[0]["labels"] == ["s", "l"]
    assert run(T.SanitizeBoundingBoxes(min_area=17), sample(**entries))[0]["labels"] == ["thin", "l"]
    assert run(T.Compose([T.SanitizeBoundingBoxes(4), shrink]), sample(**entries))[0]["labels"] == ["s", "l"]
    assert run(T.Compose([shrink, T.SanitizeBoundingBoxes(4)]), sample(**entries))[0]["labels"] == ["l"]
    assert run(shrink, sample(**entries), min_size=2)[0]["labels"] == ["s", "l"]
    assert run(shrink, sample(**entries), min_size=2.01)[0]["labels"] == ["l"]


def test_sanitizing_after_a_mix_is_of_what_the_mix_shows() -> None:
    samples = [sample(boxes=[[n, n, n + 12, n + 12], [0, 0, 60, 40]], labels=[n, 9], label=n) for n in range(4)]
    mosaic = T.Mosaic(num_classes=4)
    plain = run(mosaic, *samples, partners="batch")
    sanitized = run(T.Compose([mosaic, T.SanitizeBoundingBoxes(11, 200)]), *samples, partners="batch")
    assert sum(len(result["boxes"]) for result in sanitized) < sum(len(before["boxes"]) for before in plain)
    for result, before in zip(sanitized, plain, strict=True):
        sides = before["boxes"][:, 2:] - before["boxes"][:, :2]
        wanted = (sides >= 11).all(dim=1) & (sides.prod(dim=1) >= 200)
        assert result["boxes"].tolist() == before["boxes"][wanted].tolist()
        assert len(result["labels"]) == int(wanted.sum())


def test_clamping_changes_nothing_but_refuses_boxes_with_angles() -> None:
    turn = T.RandomRotation(40)
    entries = sample(boxes=[[0, 0, 30, 20]])
    clamped, plain = (run(t, entries)[0]["boxes"] for t in (T.Compose([turn, T.ClampBoundingBoxes()]), turn))
    assert clamped.tolist() == plain.tolist()
    assert len(run(T.ClampBoundingBoxes(), sample(keypoints=[[1, 2]]))) == 1
    with pytest.raises(ValueError, match="ClampBoundingBoxes: got boxes with angles"):
        run(T.ClampBoundingBoxes(), sample(boxes=[[30, 20, 16, 8, 10]]), box_format="cxcywhr")


def test_boxes_with_angles_can_be_chosen_by() -> None:
    turned = [[30, 20, 16, 8, 10], [15, 30, 10, 10, 45]]
    for result in run(T.Compose([T.RandomIoUCrop(), T.SanitizeBoundingBoxes()]), *[sample(boxes=turned)] * 5,
                      box_format="cxcywhr"):  # fmt: skip
        assert 1 <= len(result["boxes"]) <= 2


def test_explain_and_program_take_boxes() -> None:
    augmenter = vg.Augmenter(T.RandomIoUCrop(sampler_options=[0.0]), seed=5)
    [crop], _ = crops_of(T.RandomIoUCrop(sampler_options=[0.0]), 1)
    top, left, height, width = crop.astype(int).tolist()
    assert f"Crop {width}x{height} at {left},{top}" in augmenter.explain(0, size=(HEIGHT, WIDTH), boxes=BOXES)
    with pytest.raises(ValueError, match=r"boxes: got those of 1 images; accepted: .* for each of 2"):
        augmenter.program([(9, 9), (9, 9)], boxes=[[]])
    with pytest.raises(ValueError, match=r"\['boxes'\]\[0\]: got \[0.0, 0.0, 10.0, 5.0\]; accepted: boxes within"):
        augmenter.explain(0, size=(9, 9), boxes=[[0, 0, 10, 5]])


@pytest.mark.parametrize("transform", [examples[0] for examples in BY_BOXES.values()])
def test_images_without_boxes_are_refused(transform: T.Transform) -> None:
    message = f"{type(transform).__name__}: got images without boxes.*accepted: samples that are dicts with 'boxes'"
    for call in (
        lambda: vg.Augmenter(transform)([IMAGE]),
        lambda: vg.Augmenter(transform)([sample(mask=IMAGE[..., 0])]),
        lambda: transform(IMAGE),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_crops_by_boxes_come_before_what_mixes() -> None:
    samples = [sample(boxes=[[0, 0, 9, 9]], label=n) for n in range(4)]
    with pytest.raises(ValueError, match=r"RandomIoUCrop\(\) after Mosaic; accepted: RandomIoUCrop before Mosaic"):
        run(T.Compose([T.Mosaic(num_classes=4), T.RandomIoUCrop()]), *samples, partners="batch")
    with pytest.raises(ValueError, match="RandomBoxSafeCrop after AugMix"):
        run(T.Compose([T.AugMix(), T.RandomBoxSafeCrop()]), *samples)
    assert len(run(T.Compose([T.AugMix(), T.SanitizeBoundingBoxes(2)]), *samples)) == 4
    for result in run(T.Compose([T.RandomIoUCrop(), T.AugMix()]), *samples):
        assert len(result["boxes"]) == 1
    with pytest.raises(ValueError, match=r"got an image of 40x60 for size=\(41, 41\)"):
        run(T.RandomAtLeastOneBoxCrop(41), samples[0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T.RandomIoUCrop(min_scale=0.5, max_scale=0.4), "max_scale=0.4; accepted: a number from min_scale"),
        (lambda: T.RandomIoUCrop(min_aspect_ratio=3), "max_aspect_ratio=2.0; accepted"),
        (lambda: T.RandomIoUCrop(sampler_options=[]), "sampler_options=.*accepted: None, or a list of overlaps"),
        (lambda: T.SanitizeBoundingBoxes(labels_getter=None), "labels_getter=None; accepted: 'default'"),
    ],
)
def test_arguments_out_of_range(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
