"""JPEGs within a program: a pass that begins with one reads what it keeps of the image."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import PIL.Image
import pytest
import simplejpeg
import torch

import variegate as vg
from tests import oracle
from tests.executors.contract import DEVICES, check
from tests.images import Image, gray, noise, photo
from tests.oracle import apply
from tests.programs import SEMANTIC, erase, program_of, random_program, resized_crop, rotate, step
from variegate import transforms as T
from variegate.executors import cpu
from variegate.executors.batches import check_fits
from variegate.program import passes as P
from variegate.program.depth import Depth
from variegate.program.lowering import lower
from variegate.program.ops import Op
from variegate.transforms import functional as F

pytestmark = pytest.mark.usefixtures("validated")

CPU = DEVICES[0]
SIZES = ((1, 1), (1, 2), (2, 1), (3, 2), (7, 8), (8, 8), (9, 17), (16, 16), (17, 31), (33, 64), (65, 15), (97, 113))
QUALITIES = (1, 10, 50, 75, 95, 96, 100)


def by_pillow(image: Image, quality: int) -> Image:
    """Pillow's default is 4:2:0, as libjpeg's, which torchvision's ``encode_jpeg`` calls."""
    file = io.BytesIO()
    PIL.Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(file, "JPEG", quality=quality)
    return np.asarray(PIL.Image.open(file)).reshape(image.shape)


def images_of(number: int = 6) -> list[Image]:
    makes: list[Any] = [photo, gray, noise]
    return [makes[i % 3](*SIZES[-1 - i % len(SIZES)]) for i in range(number)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [photo, gray, noise, lambda h, w: noise(h, w, 1)])
def test_pixels_are_those_of_pillow(make: Any, size: tuple[int, int]) -> None:
    image = make(*size)
    for quality in QUALITIES:
        expected = by_pillow(image, quality)
        np.testing.assert_array_equal(apply(Op.JPEG, image, [quality]), expected)
        for device in ("cpu", "oracle"):
            np.testing.assert_array_equal(F.jpeg(image, quality, device=device), expected)


@pytest.mark.parametrize("quality", range(1, 101, 3))
def test_every_quality_on_the_harshest_levels(quality: int) -> None:
    """Black and white at random, and pure colours, go as far beyond the levels as anything."""
    harsh = (noise(40, 53) > 127).astype(np.uint8) * 255
    for image in (harsh, harsh[:, :, :1].copy(), np.repeat(np.repeat(harsh[:5, :7], 8, axis=0), 8, axis=1)):
        np.testing.assert_array_equal(F.jpeg(image, quality), by_pillow(image, quality))


def test_pillow_writes_since_simplejpeg_takes_another_transform_below_96() -> None:
    image = photo(224, 224)
    for quality, same in ((50, False), (95, False), (96, True)):
        file = simplejpeg.encode_jpeg(image, quality, "RGB", "420")
        assert (simplejpeg.decode_jpeg(file) == by_pillow(image, quality)).all() == same


def test_lower_qualities_keep_less() -> None:
    image = photo(97, 113).astype(int)
    off = [np.abs(F.jpeg(photo(97, 113), quality) - image).mean() for quality in (5, 50, 95)]
    assert off[0] > off[1] > off[2] > 0


# -- in programs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("geometry", ["composed", "exact"])
def test_chains_with_jpegs_are_the_same_bits(seed: int, geometry: str) -> None:
    """Every other instruction around them, noise and rectangles by their own numbers; several in a chain, or none."""
    ops = (*SEMANTIC, *[Op.JPEG] * 12)
    program, images, chains = random_program(seed, ops, interpolate=geometry == "exact", rows=5)
    for threads in (1, 2):
        check(CPU, program, images, chains, geometry=geometry, threads=threads)
    for poison in (0x5A, 0xA5):
        for result, wanted in zip(
            CPU.run(program, images, geometry, poison=poison), oracle.run(program, images), strict=True
        ):
            np.testing.assert_array_equal(result, wanted)


def test_rows_without_a_jpeg_are_left_as_they_are() -> None:
    images = [photo(40, 50), photo(41, 50), photo(42, 50)]
    chain = [resized_crop((3, 4, 30, 31), 24, 24), step(Op.EQUALIZE), step(Op.GAUSSIAN_NOISE, 0, 0.1, 1)]
    mixed = program_of([chain, [chain[0], step(Op.JPEG, 30), *chain[1:]], chain], images)
    alone = lower(program_of([chain] * 3, images))
    fused = lower(mixed)
    assert fused.passes is not None
    assert fused.passes[..., P.QUALITY].tolist() == [[0, 0], [0, 30], [0, 0]]
    for row in (0, 2):
        n = int(alone.length[row])
        assert fused.length[row] == n
        for name in ("opcode", "args", "flags", "out_size", "pass_of"):
            np.testing.assert_array_equal(getattr(fused, name)[row, :n], getattr(alone, name)[row, :n])
        np.testing.assert_array_equal(fused.in_shape[row], alone.in_shape[row])


def test_a_pass_begins_with_each_of_them() -> None:
    chain = [step(Op.HFLIP), step(Op.JPEG, 9), rotate(5.0, 1), step(Op.JPEG, 80), step(Op.JPEG, 70), step(Op.INVERT)]
    program = program_of([[step(Op.JPEG, 5), *chain]], [photo(9, 8)])
    fused = lower(program)
    assert fused.passes is not None
    assert fused.passes[0, :, P.QUALITY].tolist() == [5, 9, 80, 70]
    assert fused.passes[0, :, [P.BEGIN, P.END]].T.tolist() == [[1, 2], [3, 4], [5, 5], [6, 7]]


def test_maps_on_both_sides_of_one_are_not_joined() -> None:
    image = photo(40, 31)
    made = vg.Augmenter(T.Compose([T.RandomHorizontalFlip(1.0), T.JPEG(30), T.RandomHorizontalFlip(1.0)]))([image])
    expected = by_pillow(image[:, ::-1].copy(), 30)[:, ::-1]
    np.testing.assert_array_equal(made[0].permute(1, 2, 0).numpy(), expected)


def test_a_fused_program_runs_on_the_images_it_was_sampled_for_alone() -> None:
    images = [photo(20, 30), gray(31, 17)]
    program = program_of([[resized_crop((0, 0, 20, 30), 8, 9), step(Op.JPEG, 40)], [step(Op.JPEG, 40)]], images)
    fused = lower(program)
    for made, wanted in zip(cpu.run(fused, images, 1), oracle.run(program, images), strict=True):
        np.testing.assert_array_equal(made, wanted)
    with pytest.raises(ValueError, match=r"row 1: image 1 is uint8\[31, 18, 1\]"):
        check_fits(fused, np.array([[20, 30, 3], [31, 18, 1]], np.int32), Depth.UINT8)


# -- in transforms ----------------------------------------------------------------------------------------------------

NORMALIZE = T.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.2))
NOISE = [T.GaussianNoise(0.0, 0.1), T.RandomErasing(1.0, value="random")]
TREES = {
    "alone": T.JPEG((5, 95)),
    "first": T.Compose([T.JPEG(20), T.RandomResizedCrop(24), *NOISE, NORMALIZE, T.RandomErasing(1.0, value="random")]),
    "last": T.Compose([T.RandomResizedCrop(24), T.RandomEqualize(), T.JPEG((5, 95)), T.ToDtype("float32", scale=True)]),
    "some": T.Compose([T.RandomRotation(20), T.RandomApply([T.JPEG((5, 95))], p=0.5), *NOISE, T.Resize((20, 21))]),
    "several": T.Compose([T.JPEG(30), T.RandomApply([T.JPEG(60), *NOISE]), T.RandomCrop(9, 4, True), T.JPEG((1, 9))]),
    "one of": T.Compose([T.OneOf([T.JPEG(10), T.Invert(), T.GaussianBlur(5)]), T.RandomHorizontalFlip(), NORMALIZE]),
    "by height": T.Cond("height", {97: [T.JPEG(7)]}, default=T.Invert()),
    "blended": T.Compose([T.Resize((24, 25)), T.RandomApply([T.JPEG(10)]), T.AugMix(), NORMALIZE]),
    "in chains": T.RandAugment(2, 9, operations=[T.Augmentation("jpeg", "JPEG", (5.5, 95)), "Rotate", "Invert"]),
    "gray": T.Compose([T.Grayscale(), T.JPEG(15), *NOISE]),
}


def same(made: Any, wanted: Any) -> bool:
    if isinstance(made, (list, tuple)):
        return len(made) == len(wanted) and all(map(same, made, wanted))
    return made.dtype == wanted.dtype and torch.equal(made, wanted)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("geometry", ["composed", "exact"])
def test_the_reference_says_the_same_whatever_the_batch(name: str, geometry: Any) -> None:
    images, t = images_of(12), TREES[name]
    ids = [3 * i for i in range(12)]
    made = vg.Augmenter(t, num_threads=2, geometry=geometry, seed=1)(images, ids=ids, epoch=2)
    if name != "blended" or geometry == "exact":
        assert same(made, vg.Augmenter(t, "oracle", seed=1)(images, ids=ids, epoch=2))
    augmenter = vg.Augmenter(t, num_threads=1, geometry=geometry, seed=1)
    backwards = augmenter(images[::-1], ids=ids[::-1], epoch=2)
    assert same([*made], [*backwards][::-1])
    assert same([*made], [augmenter([image], ids=[i], epoch=2)[0] for image, i in zip(images, ids, strict=True)])


def encoded(image: Image) -> bytes:
    return bytes(simplejpeg.encode_jpeg(np.repeat(image, 3 // image.shape[2], axis=2), 95, "RGB", "420"))


@pytest.mark.parametrize("name", TREES)
def test_files_give_what_their_pictures_give(name: str) -> None:
    """Some of them read twice, one of another kind."""
    files = [encoded(image) for image in [photo(180, 240), *images_of(11)]]
    files += files[:3]
    buffer = io.BytesIO()
    PIL.Image.fromarray(photo(40, 30)).save(buffer, "PNG")
    files.append(buffer.getvalue())
    pictures = [np.asarray(PIL.Image.open(io.BytesIO(file))) for file in files]
    augmenter, ids = vg.Augmenter(TREES[name], num_threads=2, seed=1), list(range(len(files)))
    assert same(augmenter.decode_and_run(files, ids=ids), augmenter(pictures, ids=ids))


def test_files_that_do_not_decode_are_named() -> None:
    file = encoded(photo(180, 240))
    with pytest.raises(vg.DecodeError, match=r"files\[1\]"):
        vg.Augmenter(T.JPEG(9)).decode_and_run([file, file[:3000]])


def test_views_and_clips() -> None:
    images = [photo(40, 50), photo(37, 41)]
    t = T.MultiView([T.Compose([T.RandomResizedCrop(16), T.RandomApply([T.JPEG((5, 95))])]), T.JPEG(4)], counts=[3, 1])
    made = vg.Augmenter(t)(images, ids=[4, 5])
    assert same(made, vg.Augmenter(t, "oracle")(images, ids=[4, 5]))
    assert same([group[1] for group in made], [group[0] for group in vg.Augmenter(t)(images[1:], ids=[5])])
    files = [encoded(image) for image in images]
    pictures = [simplejpeg.decode_jpeg(file) for file in files]
    assert same(vg.Augmenter(t).decode_and_run(files, ids=[4, 5]), vg.Augmenter(t)(pictures, ids=[4, 5]))
    clips = np.stack([np.stack([photo(24, 20), noise(24, 20)])] * 2)
    noisy = T.Compose([T.JPEG((5, 95)), *NOISE])
    made = vg.Augmenter(noisy, consistent=True)(clips, ids=[4, 5])
    assert same(made, vg.Augmenter(noisy, "oracle", consistent=True)(clips, ids=[4, 5]))
    first = vg.Augmenter(noisy)([*clips[:, 0]], ids=[4, 5])
    assert same(made[:, 0], first)  # type: ignore[call-overload]


def test_in_a_pipeline() -> None:
    @vg.pipeline
    def worse(image: Any, label: Any) -> Any:
        if label == 1:
            return F.invert(F.jpeg(image, vg.randint(5, 50)))
        return F.jpeg(image, 7)

    images = [photo(40, 50), photo(40, 50)]
    made = vg.Augmenter(worse)(images, ids=[1, 2], conditions={"label": [0, 1]})
    np.testing.assert_array_equal(made[0].permute(1, 2, 0).numpy(), by_pillow(images[0], 7))
    qualities = [255 - by_pillow(images[1], quality) for quality in range(5, 50)]
    assert sum((made[1].permute(1, 2, 0).numpy() == each).all() for each in qualities) == 1


def test_replayed_and_told() -> None:
    t = T.Compose([T.RandomResizedCrop(24), T.JPEG((40, 60)), T.Invert(), NORMALIZE])
    augmenter, images = vg.Augmenter(t), [photo(40, 50), photo(41, 51)]
    program = augmenter.program(images, ids=[1, 2])
    assert same(augmenter.run(program, images), augmenter(images, ids=[1, 2]))
    told = augmenter.explain(1, size=(40, 50)).splitlines()
    quality = int(program.args[0, 1, 0])
    assert f"  JPEG {quality}" in told
    assert told[-3:] == [
        "  1: ResizedCrop -> uint8 canvas",
        f"  2: JPEG {quality} -> LUT -> normalise, float32 CHW",
        "     apart from pass 1, as JPEG takes the whole image after ResizedCrop",
    ]
    assert vg.Augmenter(T.JPEG(3)).explain(0).splitlines()[3:] == ["1 pass:", "  1: JPEG 3 -> uint8 CHW"]


def test_after_a_blend_it_is_refused() -> None:
    with pytest.raises(ValueError, match=r"JPEG after AugMix: images are already mixed there"):
        vg.Augmenter(T.Compose([T.AugMix(), T.JPEG(9)]))([photo(9, 9)])


def test_a_gpu_refuses_it_and_says_what_to_do() -> None:
    from tests.executors.poison import poisoned_executor
    from variegate.executors.cuda.executor import lower_for_cuda, upload_images

    program = lower_for_cuda(program_of([[step(Op.JPEG, 9)], [erase((0, 0, 2, 2))]], [photo(9, 9), photo(9, 9)]))
    executor = poisoned_executor("cpu")
    images = upload_images(executor, [photo(9, 9), photo(9, 9)])
    for call in (
        lambda: executor.run(program, images),
        lambda: executor.prepare(program, images, np.zeros(2, np.int64)),
    ):
        with pytest.raises(ValueError, match=r"JPEG: runs on device='cpu' .* not done behind your back"):
            call()
