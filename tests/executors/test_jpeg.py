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
from tests.executors.contract import CPU, assert_equal, check
from tests.images import Image, gray, noise, photo
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

SIZES = ((1, 1), (1, 2), (2, 1), (3, 2), (7, 8), (8, 8), (9, 17), (16, 16), (17, 31), (33, 64), (65, 15), (97, 113))


def by_pillow(image: Image, quality: int) -> Image:
    """Pillow's default is 4:2:0, as libjpeg's, which torchvision's ``encode_jpeg`` calls."""
    file = io.BytesIO()
    PIL.Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(file, "JPEG", quality=quality)
    return np.asarray(PIL.Image.open(file)).reshape(image.shape)


def images_of(number: int) -> list[Image]:
    makes: list[Any] = [photo, gray, noise]
    return [makes[i % 3](*SIZES[-1 - i % len(SIZES)]) for i in range(number)]


@pytest.mark.parametrize("size", SIZES)
def test_pixels_are_those_of_pillow(size: tuple[int, int]) -> None:
    for image in (photo(*size), gray(*size), noise(*size), noise(*size, 1)):
        for quality in (1, 10, 50, 75, 95, 96, 100):
            expected = by_pillow(image, quality)
            for device in ("cpu", "oracle"):
                np.testing.assert_array_equal(F.jpeg(image, quality, device=device), expected)


def test_every_quality_on_the_harshest_levels() -> None:
    """Black and white at random, and pure colors, go as far beyond the levels as anything."""
    harsh = (noise(40, 53) > 127).astype(np.uint8) * 255
    blocks = np.repeat(np.repeat(harsh[:5, :7], 8, axis=0), 8, axis=1)
    for quality in range(1, 101, 3):
        for image in (harsh, harsh[:, :, :1].copy(), blocks):
            np.testing.assert_array_equal(F.jpeg(image, quality), by_pillow(image, quality), str(quality))


# -- in programs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("geometry", ["composed", "exact"])
def test_chains_with_jpegs_are_the_same_bits(geometry: str) -> None:
    """Every other instruction around them, noise and rectangles by their own numbers; several in a chain, or none."""
    ops = (*SEMANTIC, *[Op.JPEG] * 12)
    for seed in range(40):
        program, images, chains = random_program(seed, ops, interpolate=geometry == "exact", rows=5)
        poison = (0x5A, 0xA5)[seed % 2]
        check(CPU, program, images, chains, geometry=geometry, threads=1 + seed % 2, poison=poison)


def test_rows_without_a_jpeg_are_left_as_they_are() -> None:
    images = [photo(40, 50), photo(41, 50), photo(42, 50)]
    chain = [resized_crop((3, 4, 30, 31), 24, 24), step(Op.EQUALIZE), step(Op.GAUSSIAN_NOISE, 0, 0.1, 1)]
    mixed = lower(program_of([chain, [chain[0], step(Op.JPEG, 30), *chain[1:]], chain], images))
    alone = lower(program_of([chain] * 3, images))
    assert mixed.passes[..., P.QUALITY].tolist() == [[0, 0], [0, 30], [0, 0]]
    for row in (0, 2):
        n = int(alone.length[row])
        assert mixed.length[row] == n
        for name in ("opcode", "args", "flags", "out_size", "pass_of"):
            np.testing.assert_array_equal(getattr(mixed, name)[row, :n], getattr(alone, name)[row, :n])


def test_a_pass_begins_with_each_of_them() -> None:
    around = [step(Op.HFLIP), step(Op.JPEG, 9), rotate(5.0, 1), step(Op.JPEG, 80), step(Op.JPEG, 70), step(Op.INVERT)]
    fused = lower(program_of([[step(Op.JPEG, 5), *around]], [photo(9, 8)]))
    assert fused.passes[0, :, P.QUALITY].tolist() == [5, 9, 80, 70]
    assert fused.passes[0, :, [P.BEGIN, P.END]].T.tolist() == [[1, 2], [3, 4], [5, 5], [6, 7]]


def test_a_fused_program_runs_on_the_images_it_was_sampled_for_alone() -> None:
    images = [photo(20, 30), gray(31, 17)]
    program = program_of([[resized_crop((0, 0, 20, 30), 8, 9), step(Op.JPEG, 40)], [step(Op.JPEG, 40)]], images)
    fused = lower(program)
    assert_equal(cpu.run(fused, images, 1), oracle.run(program, images))
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


def encoded(image: Image) -> bytes:
    return bytes(simplejpeg.encode_jpeg(np.repeat(image, 3 // image.shape[2], axis=2), 95, "RGB", "420"))


@pytest.mark.parametrize("name", TREES)
def test_the_reference_says_the_same_whatever_the_batch(name: str) -> None:
    images, t, ids = images_of(12), TREES[name], [3 * i for i in range(12)]
    for geometry in ("composed", "exact"):
        made = vg.Augmenter(t, num_threads=2, geometry=geometry, seed=1)(images, ids=ids, epoch=2)
        if name != "blended" or geometry == "exact":
            assert same(made, vg.Augmenter(t, "oracle", seed=1)(images, ids=ids, epoch=2))
        augmenter = vg.Augmenter(t, num_threads=1, geometry=geometry, seed=1)
        backwards = augmenter(images[::-1], ids=ids[::-1], epoch=2)
        assert same([*made], [*backwards][::-1])
        assert same([*made], [augmenter([image], ids=[i], epoch=2)[0] for image, i in zip(images, ids, strict=True)])


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
    crop = T.Compose([T.RandomResizedCrop(16), T.RandomApply([T.JPEG((5, 95))])])
    views = T.MultiView([crop, T.JPEG(4)], counts=[3, 1])
    made = vg.Augmenter(views)(images, ids=[4, 5])
    assert same(made, vg.Augmenter(views, "oracle")(images, ids=[4, 5]))
    files = [encoded(image) for image in images]
    pictures = [simplejpeg.decode_jpeg(file) for file in files]
    assert same(vg.Augmenter(views).decode_and_run(files, ids=[4, 5]), vg.Augmenter(views)(pictures, ids=[4, 5]))
    clips = np.stack([np.stack([photo(24, 20), noise(24, 20)])] * 2)
    noisy = T.Compose([T.JPEG((5, 95)), *NOISE])
    clip = vg.Augmenter(noisy, consistent=True)(clips, ids=[4, 5])
    assert same(clip, vg.Augmenter(noisy, "oracle", consistent=True)(clips, ids=[4, 5]))


def test_in_a_pipeline() -> None:
    @vg.pipeline
    def worse(image: Any, label: Any) -> Any:
        if label == 1:
            return F.invert(F.jpeg(image, vg.randint(5, 50)))
        return F.jpeg(image, 7)

    images = [photo(40, 50), photo(40, 50)]
    made = vg.Augmenter(worse, layout="NHWC")(images, ids=[1, 2], conditions={"label": [0, 1]})
    np.testing.assert_array_equal(made[0], by_pillow(images[0], 7))
    assert sum((made[1].numpy() == 255 - by_pillow(images[1], quality)).all() for quality in range(5, 50)) == 1


def test_replayed_and_explained() -> None:
    t = T.Compose([T.RandomResizedCrop(24), T.JPEG((40, 60)), T.Invert(), NORMALIZE])
    augmenter, images = vg.Augmenter(t), [photo(40, 50), photo(41, 51)]
    program = augmenter.program(images, ids=[1, 2])
    assert same(augmenter.run(program, images), augmenter(images, ids=[1, 2]))
    quality = int(program.args[0, 1, 0])
    told = augmenter.explain(1, size=(40, 50)).splitlines()
    assert f"  JPEG {quality}" in told
    assert told[-3:] == [
        "  1: ResizedCrop -> uint8 canvas",
        f"  2: JPEG {quality} -> LUT -> normalize, float32 CHW",
        "     apart from pass 1, as JPEG takes the whole image after ResizedCrop",
    ]


def test_after_a_blend_it_is_refused() -> None:
    with pytest.raises(ValueError, match=r"JPEG after AugMix: images are already mixed there"):
        vg.Augmenter(T.Compose([T.AugMix(), T.JPEG(9)]))([photo(9, 9)])


def test_a_gpu_refuses_it_and_says_what_to_do() -> None:
    from tests.executors.poison import poisoned_executor
    from variegate.executors.cuda.executor import lower_for_cuda, upload_images

    program = lower_for_cuda(program_of([[step(Op.JPEG, 9)], [erase((0, 0, 2, 2))]], [photo(9, 9), photo(9, 9)]))
    executor = poisoned_executor("cpu")
    images = upload_images(executor, [photo(9, 9), photo(9, 9)])
    message = r"JPEG: runs on device='cpu' .* not done behind your back"
    with pytest.raises(ValueError, match=message):
        executor.run(program, images)
    with pytest.raises(ValueError, match=message):
        executor.prepare(program, images, np.zeros(2, np.int64))
