"""A pipeline does the same in batches, on single images, in views, clips and images of many channels; and transforms do
in it what they do elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.ops.examples import EXAMPLES, POLICIES
from variegate import transforms as T
from variegate.pipelines.image import Recorder
from variegate.program.program import Program
from variegate.program.scalar_draw import NeedsBatch
from variegate.transforms import functional as F

SIZES = [(20 + 17 * i, 150 - 11 * i) for i in range(6)]
WITHIN = {
    name: transforms
    for name, transforms in {**EXAMPLES, "policies": POLICIES}.items()
    if not any(each._must_be_root or each._mixers or each._object_labels for each in transforms)
}


def program_of(transform: T.Transform) -> Program:
    pipeline = vg.pipeline(lambda image: transform(image))
    return vg.Augmenter(pipeline).program(SIZES, ids=range(6), conditions={"label": [0, 1] * 3})


@pytest.mark.parametrize("name", WITHIN)
def test_numbers_of_one_image_are_those_of_a_batch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a transform records in plain numbers is what the machine draws."""

    def refuse(*_: Any) -> None:
        raise NeedsBatch

    recorded = [program_of(transform) for transform in WITHIN[name]]
    monkeypatch.setattr(Recorder, "run", refuse)
    drawn = [program_of(transform) for transform in WITHIN[name]]
    names = ["opcode", "flags", "out_size", "length", "fill"]
    if name not in ("ChannelDropout", "Convolve"):  # whose arguments are positions in tables
        names.append("args")
    for one, other in zip(recorded, drawn, strict=True):
        for array in names:
            np.testing.assert_array_equal(getattr(one, array), getattr(other, array), err_msg=array)


@vg.pipeline
def mixed(image: Any, label: int = 0) -> Any:
    if vg.coin():
        image = T.RandomResizedCrop(24)(image)
    image = F.rotate(image, vg.uniform(-30, 30), fill=vg.randint(256))
    image = T.ElasticTransform(20.0)(F.gaussian_noise(image, sigma=0.1))
    return T.RandomErasing(0.5)(F.resize(image, (20, 20)))


def test_views_clips_and_single_images() -> None:
    images = [np.random.default_rng(i).integers(0, 256, (40 + i, 50, 3), np.uint8) for i in range(3)]
    batch = vg.Augmenter(mixed)(images, ids=[4, 5, 6], epoch=2, copy=1)
    for row, image in enumerate(images):
        one = vg.Augmenter(mixed).of_one(image, ids=[4 + row], epoch=2, copy=1)
        np.testing.assert_array_equal(np.asarray(one), np.asarray(batch[row]))
    views = vg.Augmenter(T.MultiView([mixed, T.Resize((20, 20))], [2, 1]))(images, ids=[4, 5, 6], epoch=2, copy=1)
    np.testing.assert_array_equal(np.asarray(views[0])[:, 0], np.asarray(batch))
    assert (np.asarray(views[0])[:, 1] != np.asarray(batch)).any()
    clip = np.stack([images[0]] * 3)
    frames = vg.Augmenter(mixed, consistent=True)([clip], ids=[4], epoch=2, copy=1)[0]
    np.testing.assert_array_equal(np.asarray(frames[2]), np.asarray(batch[0]))


def test_images_of_many_channels() -> None:
    @vg.pipeline
    def augment(image: Any) -> Any:
        assert image.channels == 5
        image = F.pad(image, vg.randint(1, 4), (1, 2, 3, 4, 5))
        image = T.RandomRotation(20)(T.ElasticTransform(20.0)(image))
        return F.adjust_brightness(image, vg.uniform(0.5, 1.5))

    images = [np.random.default_rng(i).integers(0, 256, (20, 30, 5), np.uint8) for i in range(3)]
    batch = vg.Augmenter(augment)(images, ids=range(3))
    for row, image in enumerate(images):
        assert batch[row].shape[0] == 5
        np.testing.assert_array_equal(np.asarray(vg.Augmenter(augment)([image], ids=[row])[0]), np.asarray(batch[row]))
    one_channel = vg.pipeline(lambda image: F.hflip(image))
    out = vg.Augmenter(one_channel, layout="NHWC")(images, ids=range(3))
    np.testing.assert_array_equal(np.asarray(out[0]), images[0][:, ::-1])


def test_the_format_that_a_pipeline_sets_is_that_of_what_follows() -> None:
    normalized = vg.pipeline(lambda image: T.Normalize(0.5, 0.25)(image))
    images = vg.sample_images(2)
    both = vg.Augmenter(T.Compose([normalized, T.Normalize(1.0, 0.5)])).program(images)
    assert both.output.mean == (0.75,)
    assert both.output.std == (0.125,)
    with pytest.raises(ValueError, match="Invert after Normalize: only RandomErasing may follow"):
        vg.Augmenter(T.Compose([normalized, T.Invert()])).program(images)
    with pytest.raises(vg.PipelineError, match="Invert after Normalize"):
        vg.Augmenter(vg.pipeline(lambda image: F.invert(T.Normalize(0.5, 0.25)(image)))).program(images)


def test_what_follows_a_blend_within_a_pipeline_is_done_to_all_of_it() -> None:
    blended = vg.pipeline(lambda image: T.AugMix()(image))
    images = vg.sample_images(4)
    plain = vg.Augmenter(blended, layout="NHWC")(images, ids=range(4))
    for after in (vg.pipeline(lambda image: F.hflip(image)), T.RandomHorizontalFlip(1.0)):
        flipped = vg.Augmenter(T.Compose([blended, after]), layout="NHWC")(images, ids=range(4))
        for made, wanted in zip(flipped, plain, strict=True):
            np.testing.assert_array_equal(np.asarray(made), np.asarray(wanted)[:, ::-1])
    for refused in (
        vg.pipeline(lambda image: F.rotate(image, 3)),
        T.RandomRotation(9),
        T.ElasticTransform(),
        T.AugMix(),
    ):
        with pytest.raises(ValueError, match="after AugMix"):
            vg.Augmenter(T.Compose([blended, refused])).program(images)
