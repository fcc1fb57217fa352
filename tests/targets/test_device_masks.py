"""Masks made by the GPU's kernels, here in Triton's interpreter: the CPU's, pixel for pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.executors.poison import interpreted_runner
from tests.images import Image, photo
from tests.programs import INTERPOLATING, Step, crop, erase, program_of, random_chain, random_step, rotate, step
from variegate import transforms as T
from variegate.executors.runners.cuda import CudaRunner
from variegate.program.ops import Op
from variegate.program.program import Program
from variegate.targets.following import Follower
from variegate.targets.samples import ImageTargets

# As few tiles as can be: the interpreter takes as long for small ones.
RUNNER = interpreted_runner((32, 64))
GEOMETRY = tuple(op for op in Op if Op.HFLIP <= op <= Op.DISPLACE)
SIZES = ((1, 1), (1, 7), (9, 31), (32, 33))


def numbered(size: tuple[int, ...]) -> np.ndarray:
    """A mask whose every pixel has its own value, so that equal masks are equal places."""
    return np.arange(1, 1 + int(np.prod(size)), dtype=np.int32).reshape(size)


def check(
    program: Program, images: Sequence[ImageTargets], runner: CudaRunner = RUNNER, **options: Any
) -> list[dict[str, Any]]:
    """The same masks by both -> the device's results."""
    settings = vg.Targets(**options)
    expected = Follower(program, images, settings, 1).results()
    results = Follower(program, images, settings, 1, runner).results()
    for row, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        assert result.keys() == wanted.keys()
        for name, masks in _masks_of(wanted).items():
            made = _masks_of(result)[name]
            assert made.dtype == masks.dtype
            assert torch.equal(made, masks), (row, name, int((made != masks).sum()))
    return results


def _masks_of(result: dict[str, Any]) -> dict[str, torch.Tensor]:
    named = result.get("mask", {})
    whole = {"": named} if isinstance(named, torch.Tensor) else named
    return whole | ({"masks": result["masks"]} if "masks" in result else {})


def _image(size: tuple[int, int]) -> Image:
    return np.zeros((*size, 3), np.uint8)


def _check_chains(chains: Sequence[Sequence[Step]], sizes: Sequence[tuple[int, int]]) -> None:
    program = program_of(chains, [_image(size) for size in sizes])
    check(
        program, [ImageTargets(str(n), size, masks={"": numbered(size)}) for n, size in enumerate(sizes)], mask_fill=-7
    )


@pytest.mark.parametrize("op", GEOMETRY, ids=lambda op: op.name)
def test_every_step(op: Op) -> None:
    """With the nearest pixel and between pixels, whatever its arguments, alone and with a flip before it."""
    rng = np.random.default_rng(int(op))
    sizes = [size for size in SIZES for _ in range(2)]
    chains = [[random_step(rng, op, *size, interpolate=bool(n % 2))] for n, size in enumerate(sizes)]
    _check_chains([[step(Op.HFLIP), *chain] if n % 3 else chain for n, chain in enumerate(chains)], sizes)


@pytest.mark.parametrize("flags", [1, 2, 3], ids=["reflect", "symmetric", "edge"])
def test_pads_that_repeat_an_image_many_times(flags: int) -> None:
    """Turned before and behind them, so that places lie anywhere between pixels."""
    sizes, turn = [(1, 1), (2, 5), (3, 2), (9, 4)], rotate(33.0, 1)
    pads = [step(Op.PAD, 9, 8, 7, 6, flags=flags, size=(h + 14, w + 16)) for h, w in sizes]
    _check_chains([[turn, pad, turn] for pad in pads], sizes)


def test_chains_of_steps() -> None:
    rng = np.random.default_rng(0)
    sizes = [(int(h), int(w)) for h, w in rng.integers(1, 40, (12, 2))]
    chains: list[list[Step]] = []
    while len(chains) < len(sizes):
        size = sizes[len(chains)]
        chain = random_chain(rng, size, [*GEOMETRY, *INTERPOLATING], int(rng.integers(2, 6)))
        if max(max(taken.size or (1, 1)) for taken in chain) <= 50:
            chains.append(chain)
    _check_chains(chains, sizes)


def test_what_is_erased_stays_in_masks() -> None:
    chain = [rotate(20.0, 1), erase((2, 3, 9, 9)), crop(-2, 3, 20, 15), erase((0, 0, 5, 5)), step(Op.VFLIP)]
    _check_chains([chain, chain[1:2], []], [(17, 23)] * 3)


def test_several_tiles() -> None:
    """Of one output that its last tiles hold in part, and of outputs of one tile beside it."""
    runner = interpreted_runner((8, 16))
    sizes = [(20, 37), (3, 3), (8, 16)]
    chain = [rotate(20.0, 1), crop(-2, 3, 17, 33)]
    program = program_of([chain, [step(Op.HFLIP)], []], [_image(size) for size in sizes])
    check(program, [ImageTargets(str(n), size, masks={"": numbered(size)}) for n, size in enumerate(sizes)], runner)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64, np.bool_])
def test_masks_of_every_dtype(dtype: Any) -> None:
    """Several of an image by name, and one for each of its boxes."""
    rng = np.random.default_rng(1)
    sizes = [(9, 33), (18, 20)]
    low, high = (0, 2) if dtype == np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    images = []
    for n, size in enumerate(sizes):
        masks = {name: rng.integers(low, high, size, np.int64).astype(dtype) for name in ("a", "b")}
        each = rng.integers(low, high, (n + 1, *size), np.int64).astype(dtype)
        images.append(ImageTargets(str(n), size, masks=masks, has_mask_names=True, instances=each))
    results = check(program_of([[rotate(30.0, 1)]] * 2, [_image(size) for size in sizes]), images, mask_fill=1)
    assert [len(result["masks"]) for result in results] == [1, 2]
    assert str(results[0]["mask"]["a"].dtype) == f"torch.{np.dtype(dtype).name}"


def test_a_fill_that_masks_cannot_hold_is_refused() -> None:
    program = program_of([[step(Op.HFLIP)]], [_image((5, 6))])
    of = ImageTargets("samples[0]", (5, 6), masks={"": np.zeros((5, 6), np.uint8)})
    with pytest.raises(ValueError, match=r"mask_fill: got -1; accepted for uint8 masks: 0 to 255"):
        Follower(program, [of], vg.Targets(mask_fill=-1), 1, RUNNER).results()


SAMPLES = 4


def _samples(dtypes: Sequence[Any]) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    size = (20, 36)
    boxes = [[0, 0, 36, 20], [5, 5, 20, 18], [30, 2, 34, 19]]
    samples = []
    for n in range(SAMPLES):
        mask, each = (rng.integers(-5, 99, shape).astype(dtypes[n % len(dtypes)]) for shape in (size, (3, *size)))
        samples.append({"image": _image(size), "mask": mask, "masks": each, "boxes": boxes, "labels": [n, n, n]})
    return samples


ALIKE, MIXED = [np.int16], [np.uint8, np.int16, np.int32]
MIXES = [(T.Mosaic(), MIXED), (T.CutMix(), ALIKE), (T.MixUp(), MIXED), (T.ResizeMix(), ALIKE), (T.AugMix(), ALIKE)]


@pytest.mark.parametrize(("mix", "dtypes"), MIXES, ids=[type(mix).__name__ for mix, _ in MIXES])
def test_mixed_masks_are_pasted(mix: T.Transform, dtypes: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes of several images, over one another where images are blended; masks of boxes that are dropped are too."""
    t = T.Compose([T.RandomAffine(40, (0.3, 0.3), interpolation="bilinear"), mix])
    options: dict[str, Any] = {"ids": range(SAMPLES), "targets": vg.Targets(mask_fill=3, min_visibility=0.4)}
    options |= {} if isinstance(mix, T.AugMix) else {"partners": "batch"}
    augmenter = vg.Augmenter(t, device="cpu", num_threads=1)
    expected = augmenter(_samples(dtypes), **options)
    runner = interpreted_runner((32, 64))
    monkeypatch.setattr(runner, "run", lambda program, batch: [torch.empty(3, 1, 1)] * program.num_outputs)
    monkeypatch.setattr(augmenter, "_runner", runner)
    results = augmenter(_samples(dtypes), **options)
    for result, wanted in zip(results, expected, strict=True):
        for key in ("mask", "masks"):
            assert result[key].dtype == wanted[key].dtype
            assert torch.equal(result[key], wanted[key]), key


def test_tensors_are_read_where_they_are() -> None:
    size = (30, 40)
    program = program_of([[rotate(9.0)], [step(Op.VFLIP)]], [_image(size)] * 2)
    shared = numbered(size)
    there = [ImageTargets("device", size, masks={"": torch.from_numpy(shared)}) for _ in range(2)]
    check(program, there)


def test_tensors_of_another_device_are_refused() -> None:
    program = program_of([[step(Op.HFLIP)]], [_image((5, 6))])
    of = ImageTargets("samples[0]", (5, 6), masks={"": torch.zeros(5, 6, dtype=torch.uint8, device="meta")})
    with pytest.raises(ValueError, match=r"samples\[0\]: got a mask on meta; accepted: masks on cpu or on the host"):
        Follower(program, [of], vg.Targets(), 1, RUNNER).results()


def test_masks_beside_the_images_of_a_call() -> None:
    """The whole call on the interpreted device."""
    augmenter = vg.Augmenter(T.Compose([T.RandomHorizontalFlip(), T.RandomRotation(30)]), device="cpu")
    sample = {"image": photo(20, 30), "mask": numbered((20, 30)), "boxes": [[1, 2, 20, 15]]}
    expected = augmenter([sample, sample], ids=[0, 1])
    augmenter._runner = RUNNER
    for result, wanted in zip(augmenter([sample, sample], ids=[0, 1]), expected, strict=True):
        for key, value in wanted.items():
            assert torch.equal(result[key], value), key
