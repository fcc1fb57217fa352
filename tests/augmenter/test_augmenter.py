"""The Augmenter: pixels of the sample alone, what it takes, gives and refuses, and the memory it hands out."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

import variegate as vg
from tests.images import Image, gray, photo
from variegate import transforms as T
from variegate.executors.runners.images import check_images

POLICY = T.Compose(
    [
        T.RandomHorizontalFlip(),
        T.RandAugment(2, 9),
        T.GaussianNoise(sigma=(0.01, 0.05)),
        T.RandomErasing(0.5, value="random"),
    ]
)
NORMALIZE = T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)
SIZES = ((40, 50), (33, 65), (1, 7), (64, 64), (90, 31))


def ragged(count: int) -> list[Image]:
    return [(gray if i % 4 == 3 else photo)(*SIZES[i % len(SIZES)]) for i in range(count)]


def same(first: Any, second: Any) -> bool:
    return len(first) == len(second) and all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


# -- what the pixels of a sample depend on -----------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "oracle"])
def test_pixels_do_not_depend_on_the_batch(device: str) -> None:
    images = ragged(19)
    ids = list(range(100, 119))
    aug = vg.Augmenter(POLICY, device=device, seed=3)
    together = aug(images, ids=ids)
    order = np.random.default_rng(0).permutation(19)
    shuffled = aug([images[i] for i in order], ids=[ids[i] for i in order])
    assert same(shuffled, [together[i] for i in order])
    for i in (0, 3, 7, 18):
        assert torch.equal(aug([images[i]], ids=[ids[i]])[0], together[i])
    # Neighbours of other sizes, and twice in one batch.
    assert torch.equal(aug([photo(5, 200), images[4], photo(11, 3)], ids=[1, ids[4], 2])[1], together[4])
    twice = aug([images[4], images[4]], ids=[ids[4], ids[4]])
    assert torch.equal(twice[0], twice[1])


def test_pixels_do_not_depend_on_threads() -> None:
    images, ids = ragged(50), range(50)
    expected = vg.Augmenter(POLICY, num_threads=1)(images, ids=ids)
    for threads in (2, 3, 7, None):
        assert same(vg.Augmenter(POLICY, num_threads=threads)(images, ids=ids), expected)


@vg.pipeline
def turned_or_flipped(image: Any, label: int) -> Any:
    image = T.functional.rotate(image, vg.uniform(-30, 30))
    return T.functional.hflip(image) if vg.coin(0.1 * label) else image


SHARED: dict[str, Callable[[], T.Transform]] = {
    "policy": lambda: T.Compose([T.RandomHorizontalFlip(), T.RandAugment(2, 9), T.GaussianNoise(sigma=(0.01, 0.05))]),
    "schedule": lambda: T.PBA(),  # its record is another in each of these epochs
    "draws in Python": lambda: T.Compose([T.RandomCrop(20, pad_if_needed=True), T.ElasticTransform(alpha=20.0)]),
    "pipeline": lambda: T.Compose([turned_or_flipped, T.ColorJitter(0.4, 0.4)]),
    "views": lambda: T.MultiView([T.RandomResizedCrop(24), T.RandAugment()], counts=[2, 1]),
}


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Threads take turns as often as possible, in a Python with a lock for all of them."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize("make", SHARED.values(), ids=SHARED)
def test_threads_at_once_get_the_pixels_of_one_thread(make: Callable[[], T.Transform]) -> None:
    """Of one Augmenter, and of several with one transform; also at the first call, which makes records and tables."""
    images, labels = ragged(6), {"label": range(6)}

    def outputs(aug: vg.Augmenter, epoch: int) -> list[torch.Tensor]:
        one_by_one = [aug([images[i]], ids=[i], epoch=epoch, conditions={"label": [i]}) for i in range(6)]
        return [*flat(one_by_one), *flat(aug(images, ids=range(6), epoch=epoch, conditions=labels))]

    alone, transform = vg.Augmenter(make(), num_threads=1), make()
    epochs = range(0, 180, 30)
    expected = {epoch: outputs(alone, epoch) for epoch in epochs}
    shared = vg.Augmenter(transform, num_threads=2)
    at_once = threading.Barrier(len(epochs), timeout=60)

    def is_right(epoch: int) -> bool:
        at_once.wait()
        own = vg.Augmenter(transform, num_threads=1)
        return all(same(outputs(aug, epoch), expected[epoch]) for aug in (shared, own) * 2)

    with ThreadPoolExecutor(len(epochs)) as pool:
        assert all(pool.map(is_right, epochs))


def flat(made: Any) -> list[torch.Tensor]:
    """All tensors of lists and tuples."""
    return [made] if isinstance(made, torch.Tensor) else [tensor for part in made for tensor in flat(part)]


def test_seed_epoch_copy_and_id_each_change_the_pixels() -> None:
    images = [photo(40, 50)] * 12
    base: dict[str, Any] = {"seed": 0, "epoch": 0, "copy": 0, "start": 0}

    def run(seed: int, epoch: int, copy: int, start: int) -> torch.Tensor:
        ids = range(start, start + 12)
        out = vg.Augmenter(POLICY, seed=seed)(images, ids=ids, epoch=epoch, copy=copy)
        assert isinstance(out, torch.Tensor)
        return out

    first = run(**base)
    assert torch.equal(run(**base), first)
    for name, value in (("seed", 1), ("seed", 2**63), ("epoch", 1), ("copy", 1), ("start", 2**40)):
        other = run(**{**base, name: value})
        # The noise alone makes every one of them another image.
        assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True)), name


@pytest.mark.parametrize("device", ["cpu", "oracle"])
def test_each_image_may_have_a_copy_of_its_own(device: str) -> None:
    mixed = T.Compose([T.AugMix(), T.RandomErasing(1.0, value="random"), NORMALIZE])
    noisy = T.Compose([T.RandomCrop(20), T.RandAugment(2, 9), T.GaussianNoise(0.1)])
    images, copies = [photo(40, 50)] * 6, [0, 3, 3, 1, 2**32 - 1, 0]
    for transform in (mixed, noisy):
        aug = vg.Augmenter(transform, seed=2, device=device)
        for given in (copies, np.array(copies, np.uint32), torch.tensor(copies)):
            together = aug(images, ids=[8] * 6, epoch=1, copy=given)
            for image, copy in zip(together, copies, strict=True):
                assert torch.equal(image, aug(images[:1], ids=[8], epoch=1, copy=copy)[0])


def test_without_ids_a_running_count() -> None:
    images = ragged(5)
    aug = vg.Augmenter(POLICY)
    assert same(aug(images), vg.Augmenter(POLICY)(images, ids=range(5)))
    assert same(aug(images[:2]), vg.Augmenter(POLICY)(images[:2], ids=[5, 6]))


def test_program_of_images_is_the_program_of_their_sizes() -> None:
    images = ragged(7)
    aug = vg.Augmenter(POLICY)
    by_image = aug.program(images, ids=range(7))
    by_size = aug.program([image.shape for image in images], ids=range(7))
    by_array = aug.program(np.array([image.shape for image in images]), ids=range(7))
    for other in (by_size, by_array):
        for name in ("opcode", "args", "flags", "fill", "out_size", "length", "in_shape", "ids", "key"):
            np.testing.assert_array_equal(getattr(by_image, name), getattr(other, name), err_msg=name)
    # Two numbers mean a colour image.
    assert aug.program([(20, 30)], ids=[0]).in_shape.tolist() == [[20, 30, 3]]


def test_a_program_runs_as_the_call_does() -> None:
    images = ragged(9)
    aug = vg.Augmenter(POLICY, seed=8)
    program = aug.program(images, ids=range(9), epoch=2, copy=1)
    expected = aug(images, ids=range(9), epoch=2, copy=1)
    assert same(aug.run(program, list(check_images(images))), expected)


def test_explain() -> None:
    transform = T.Compose([T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.RandAugment(2, 9), NORMALIZE])
    aug = vg.Augmenter(transform, seed=0)
    # Pinned: a change of it is a change of what sample 3 of seed 0 goes through, which breaks what users recorded.
    assert aug.explain(id=3, epoch=0) == (
        "sample 3, epoch 0, copy 0, seed 0, 224x224\n"
        "operations:\n"
        "  ResizedCrop 202x203 at 18,13\n"
        "  HorizontalFlip\n"
        "  AutoContrast\n"
        "  Rotate -9\n"
        "2 passes:\n"
        "  1: ResizedCrop -> uint8 canvas\n"
        "  2: AutoContrast -> map_fixed -> normalize, float32 CHW\n"
        "     apart from pass 1, as AutoContrast needs the histogram after ResizedCrop"
    )
    assert aug.explain(id=3, epoch=1) != aug.explain(id=3, epoch=0)
    assert "320x200" in aug.explain(id=3, size=(320, 200, 1))
    # Looking does not move the running count.
    assert same(aug([photo(40, 50)]), vg.Augmenter(transform)([photo(40, 50)], ids=[0]))


# -- what goes in and comes out ----------------------------------------------------------------------------------------


def test_lists_arrays_and_tensors_are_the_same_batch() -> None:
    batch = np.stack([photo(32, 40, name) for name in ("astronaut", "coffee", "chelsea")])
    aug = vg.Augmenter(POLICY)
    expected = aug(batch, ids=range(3))
    assert isinstance(expected, torch.Tensor)
    assert expected.shape == (3, 3, 32, 40)
    assert expected.dtype == torch.uint8
    tensor = torch.from_numpy(batch)
    forms: list[Any] = [list(batch), tuple(batch), tensor, list(tensor), [batch[0], tensor[1], batch[2]]]
    forms.append(torch.from_numpy(batch.transpose(0, 3, 1, 2).copy()).permute(0, 2, 3, 1))
    forms.append(np.ascontiguousarray(batch[:, ::-1, ::-1])[:, ::-1, ::-1])
    # Tensors may have their channels first, as torch has them, and Pillow's images are images.
    first = tensor.permute(0, 3, 1, 2)
    forms += [first, first.contiguous(), list(first), list(first.contiguous()), [batch[0], first[1], tensor[2]]]
    forms += [[PIL.Image.fromarray(image) for image in batch], [batch[0], PIL.Image.fromarray(batch[1]), first[2]]]
    for form in forms:
        assert same(aug(form, ids=range(3)), expected)


def test_channels_come_last_where_both_could_be() -> None:
    """As on a GPU. One rule for batches and lists: of tensors alone, as an array's channels always come last."""
    ramp = torch.arange(36, dtype=torch.uint8)
    aug = vg.Augmenter(T.Identity(), layout="NHWC")
    for shape, taken in (((3, 4, 3), (3, 4, 3)), ((1, 4, 9), (4, 9, 1)), ((1, 12, 3), (1, 12, 3))):
        image = ramp.reshape(shape)
        assert tuple(aug([image])[0].shape) == taken
        assert tuple(aug(image[None])[0].shape) == taken
    assert torch.equal(aug([ramp.reshape(3, 4, 3)])[0], ramp.reshape(3, 4, 3))


def test_gray_images_stay_one_channel() -> None:
    flat, whole = gray(20, 30)[..., 0], gray(20, 30)
    for layout, shape in (("NCHW", (2, 1, 20, 30)), ("NHWC", (2, 20, 30, 1))):
        aug = vg.Augmenter(T.Compose([POLICY, NORMALIZE]), layout=layout)
        out = aug([flat, whole], ids=[4, 4])
        assert out.shape == shape  # type: ignore[union-attr]
        assert torch.equal(out[0], out[1])


def test_different_shapes_come_as_a_list() -> None:
    out = vg.Augmenter(T.RandomHorizontalFlip())([photo(20, 30), gray(20, 30), photo(5, 6)])
    assert isinstance(out, list)
    assert [tuple(t.shape) for t in out] == [(3, 20, 30), (1, 20, 30), (3, 5, 6)]
    crops = vg.Augmenter(T.RandomResizedCrop(16))([photo(20, 30), photo(50, 60)])
    assert isinstance(crops, torch.Tensor)


@pytest.mark.parametrize("device", ["cpu", "oracle"])
def test_an_empty_batch_is_an_empty_list(device: str) -> None:
    assert vg.Augmenter(POLICY, device=device)([]) == []


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", torch.float32),
        ("float16", torch.float16),
        ("bfloat16", torch.bfloat16),
        (torch.bfloat16, torch.bfloat16),
    ],
)
def test_dtypes_are_casts_of_float32(dtype: Any, expected: torch.dtype) -> None:
    transform = T.Compose([POLICY, NORMALIZE])
    images = [photo(20, 30)] * 4
    full = vg.Augmenter(transform)(images, ids=range(4))
    out = vg.Augmenter(transform, dtype=dtype)(images, ids=range(4))
    assert isinstance(full, torch.Tensor)
    assert isinstance(out, torch.Tensor)
    assert out.dtype == expected
    assert torch.equal(out, full.to(expected))
    # Without Normalize there is nothing to cast.
    assert vg.Augmenter(POLICY, dtype=dtype)(images)[0].dtype == torch.uint8


def test_layouts_are_transpositions() -> None:
    images = [photo(20, 30)] * 4
    for transform in (POLICY, T.Compose([POLICY, NORMALIZE])):
        first = vg.Augmenter(transform, layout="NCHW")(images, ids=range(4))
        last = vg.Augmenter(transform, layout="NHWC")(images, ids=range(4))
        assert isinstance(last, torch.Tensor)
        assert same(first, last.permute(0, 3, 1, 2))


# -- what is refused ---------------------------------------------------------------------------------------------------

ONE = [photo(4, 5)]


def test_conditions_may_be_any_tensor() -> None:
    aug = vg.Augmenter(T.Cond("label", {1: T.Invert()}))
    expected = aug(ONE, conditions={"label": [1]})
    for value in (torch.tensor([1.0], requires_grad=True), torch.tensor([1], dtype=torch.bfloat16)):
        assert same(aug(ONE, conditions={"label": value}), expected)


def test_messages_stay_short_whatever_is_handed_over() -> None:
    for ids in ([-1] * 10**5, np.full(10**5, -1)):
        with pytest.raises(ValueError, match="ids: got") as raised:
            vg.Augmenter(POLICY)(np.zeros((10**5, 1, 1, 1), np.uint8), ids=ids)
        assert len(str(raised.value)) < 600
        assert "\n" not in str(raised.value)


def test_a_call_that_is_refused_takes_no_place_of_the_running_count() -> None:
    aug = vg.Augmenter(POLICY)
    for wrong in ({"epoch": -1}, {"copy": 0.5}, {"conditions": {"label": [1, 2]}}):
        with pytest.raises(ValueError, match="accepted"):
            aug(ONE, **wrong)
    assert same(aug(ONE), vg.Augmenter(POLICY)(ONE, ids=[0]))


def test_every_id_of_64_bits_is_taken() -> None:
    aug = vg.Augmenter(POLICY)
    largest = 2**64 - 1
    alone = aug(ONE, ids=[largest])
    # NumPy makes floats of a list that mixes such an id with small ones.
    assert torch.equal(aug(ONE * 2, ids=[1, largest])[1], alone[0])
    assert torch.equal(aug(ONE, ids=torch.tensor([7]))[0], aug(ONE, ids=np.array([7], np.int32))[0])


def test_a_policy_goes_by_its_name() -> None:
    assert (
        vg.Augmenter("RandAugment").transform
        == vg.as_transform("randaugment")._arguments["transform"]
        == T.RandAugment()
    )
    with pytest.raises(ValueError, match=r"policy: got 'randaugmet'; .*; did you mean 'randaugment'"):
        vg.Augmenter("randaugmet")


@pytest.mark.parametrize("device", ["cpu", "oracle"])
def test_a_program_runs_on_its_own_images_only(device: str) -> None:
    aug = vg.Augmenter(T.RandomHorizontalFlip(), device=device)
    program = aug.program([(20, 30)], ids=[0])
    with pytest.raises(ValueError, match=r"sampled for uint8\[20, 30, 3\]"):
        aug.run(program, [photo(10, 10)])
    with pytest.raises((ValueError, IndexError)):
        aug.run(program, [])


# -- memory ------------------------------------------------------------------------------------------------------------


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")


@pytest.mark.parametrize("transform", [POLICY, T.Compose([POLICY, NORMALIZE])], ids=["uint8", "float"])
@pytest.mark.parametrize("count", [1, 8])
def test_results_stay_as_long_as_they_are_held(transform: T.Transform, count: int) -> None:
    aug = vg.Augmenter(transform)
    images = [photo(64, 80)] * count
    held = [aug(images, ids=range(count), epoch=epoch) for epoch in range(5)]
    copies = [out.clone() for out in held]  # type: ignore[union-attr]
    # Views and arrays over the memory hold it as well as the tensor does.
    view = aug(images, ids=range(count), epoch=90)[0][1:, 3:]
    array = aug(images, ids=range(count), epoch=91)[0].numpy()
    lists = aug([*images, photo(9, 9)], ids=range(count + 1), epoch=92)[count]
    kept = view.clone(), array.copy(), lists.clone()
    for epoch in range(5, 40):
        aug(images, ids=range(count), epoch=epoch)
        aug([*images, photo(9, 9)], ids=range(count + 1), epoch=epoch)
    for out, copy in zip(held, copies, strict=True):
        assert torch.equal(out, copy)  # type: ignore[arg-type]
    assert torch.equal(view, kept[0])
    np.testing.assert_array_equal(array, kept[1])
    assert torch.equal(lists, kept[2])


@needs_proc
def test_repeated_calls_do_not_grow() -> None:
    aug = vg.Augmenter(T.Compose([POLICY, NORMALIZE]), num_threads=2)
    images = [photo(128, 128)] * 32  # 6 MiB a result
    for epoch in range(5):
        aug(images, ids=range(32), epoch=epoch)
    before = resident()
    for epoch in range(60):
        aug(images, ids=range(32), epoch=epoch)
    assert resident() - before < 20 << 20


@needs_proc
def test_results_of_ever_new_sizes_do_not_pile_up() -> None:
    """A data set whose images keep their own sizes: memory of sizes that are gone must make room."""
    aug = vg.Augmenter(NORMALIZE, num_threads=1)
    sizes = [(180 + i % 40, 180 + i // 40 * 3) for i in range(600)]
    base = photo(222, 240)
    for height, width in sizes[:50]:
        aug([base[:height, :width]])
    before = resident()
    for height, width in sizes[50:]:
        aug([base[:height, :width]])
    # 550 results of half a MiB each went by; a pool may keep some of them.
    assert resident() - before < 128 << 20
