"""What objects say they are: the call that makes them, on one line, without what is as it is anyway."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.ops.examples import BY_BOXES, EXAMPLES, MIXERS, POLICIES
from variegate import transforms as T

# Those of pictures have none.
PICTURES = (T.Overlay,)
EVERY = [example for examples in (EXAMPLES | MIXERS | BY_BOXES).values() for example in examples] + POLICIES
STEPS = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.RandAugment(num_ops=3)])
SHOWN = "Compose([RandomResizedCrop((24, 24)), RandomHorizontalFlip(), RandAugment(num_ops=3)])"


def test_a_transform_is_the_call_that_makes_it() -> None:
    names = {name: getattr(T, name) for name in T.__all__}
    for transform in EVERY:
        text = repr(transform)
        assert "\n" not in text
        if isinstance(transform, PICTURES):
            assert "(<" in text
        else:
            assert eval(text, dict(names)) == transform, text


@pytest.mark.parametrize(
    ("transform", "text"),
    [
        (T.RandomHorizontalFlip(), "RandomHorizontalFlip()"),
        (T.RandomHorizontalFlip(p=0.25), "RandomHorizontalFlip(p=0.25)"),
        (T.Rotate(30, "bilinear"), "Rotate(30, interpolation='bilinear')"),
        (T.Rotate(30, fill=(0, 0, 0)), "Rotate(30)"),
        (STEPS, SHOWN),
        (T.Cond("label", {1: T.Invert()}), "Cond('label', cases={'1': Invert()})"),
        (T.OneOf([T.Invert()], weights=[2]), "OneOf([Invert()], weights=(2,))"),
        (T.Normalize(0.5, 0.25), "Normalize((0.5,), (0.25,))"),
        (T.Grayscale(3), "Grayscale(num_output_channels=3)"),
        (vg.load_policy("randaugment"), "RandAugment()"),
    ],
)
def test_arguments_at_their_default_are_left_out(transform: T.Transform, text: str) -> None:
    assert repr(transform) == text


def test_a_class_of_ones_own_may_say_it_otherwise() -> None:
    class Quiet(T.Transform):
        def __repr__(self) -> str:
            return "quiet"

    class Quieter(Quiet):
        pass

    del T.Transform.registry["Quiet"], T.Transform.registry["Quieter"]
    assert (repr(Quiet()), repr(Quieter())) == ("quiet", "quiet")


def test_an_augmenter_and_a_loader_are_one_line() -> None:
    assert repr(vg.Augmenter(STEPS)) == f"Augmenter({SHOWN}, device='cpu')"
    other = vg.Augmenter(T.Invert(), "oracle", 3, "float16", "NHWC", 2, "exact", decode="cpu")
    assert repr(other) == (
        "Augmenter(Invert(), device='oracle', seed=3, dtype='float16', layout='NHWC', num_threads=2, "
        "geometry='exact', decode='cpu')"
    )
    images: Any = np.zeros((4, 8, 8, 3), np.uint8)
    loader = vg.Loader((images, [0, 1, 2, 3]), STEPS, batch_size=2, device="cpu", shuffle=False, num_threads=1)
    text = repr(loader)
    assert text.startswith("Loader(")
    assert f", {SHOWN}, batch_size=2, device='cpu', shuffle=False, num_threads=1)" in text
    assert "\n" not in text
    long = vg.Loader((images, [0, 1, 2, 3]), batch_size=2, device="cpu", num_threads=1)
    long.source = type("Long", (), {"__repr__": lambda self: "file\n" * 10_000})()  # type: ignore[assignment]
    assert len(repr(long)) < 400
    assert "\n" not in repr(long)


def test_dir_holds_public_names_alone() -> None:
    names = dir(vg)
    assert set(vg.__all__) <= set(names)
    assert all(name in vg.__all__ or (name.startswith("__") and name.endswith("__")) for name in names)
    assert all(hasattr(vg, name) for name in names)
