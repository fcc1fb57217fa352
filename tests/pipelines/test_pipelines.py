"""Pipelines by labels, sizes and chance, with transforms, in batches of any size, and where transforms are used."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import variegate as vg
from variegate import transforms as T
from variegate.executors.cpu import executor as cpu
from variegate.transforms import functional as F

N = 64
IDS = np.random.default_rng(1).permutation(10_000)[:N]
LABELS = np.arange(N) % 12


def operations(transform: T.Transform, **conditions: Any) -> list[list[tuple[Any, ...]]]:
    """What is done to each of N samples."""
    program = vg.Augmenter(transform).program([(40, 30)] * N, ids=IDS, conditions=conditions or None)
    return [[(op.name, *np.nan_to_num(args[:6]).tolist()) for op, args in program.operations(r)] for r in range(N)]


def shifts(transform: T.Transform, **conditions: Any) -> list[tuple[float, ...]]:
    """By how much F.translate_x moved each sample, step by step: a number that a pipeline computed."""
    rows = operations(transform, **conditions)
    assert all(op == "TRANSLATE_X" for row in rows for op, *_ in row)
    return [tuple(args[0] for _, *args in row) for row in rows]


def test_if_elif_else_by_a_label() -> None:
    @vg.pipeline
    def augment(image: Any, label: Any) -> Any:
        if label == 9:
            image = F.translate_x(image, 9)
        elif label < 3:
            image = F.translate_x(image, label * 2)
        elif 4 <= label <= 5 or label in (7, 11):
            pass
        else:
            image = F.translate_x(image, 1)
            image = F.translate_x(image, 2)
        return image

    def expected(label: int) -> tuple[float, ...]:
        if label == 9:
            return (9,)
        if label < 3:
            return (label * 2,)
        return () if 4 <= label <= 5 or label in (7, 11) else (1, 2)

    assert shifts(augment, label=LABELS) == [expected(int(label)) for label in LABELS]
    assert shifts(augment, label=LABELS.astype(object)) == [expected(int(label)) for label in LABELS]
    assert shifts(augment, label=LABELS.astype(np.uint8)) == shifts(augment, label=LABELS.astype(np.float32))


def test_labels_may_be_texts() -> None:
    @vg.pipeline
    def augment(image: Any, label: Any) -> Any:
        amount = 3 if label == "cat" else 4
        return F.translate_x(image, amount if label != "dog" else 5)

    names = np.array(["cat", "dog", "fish", "ant"])[LABELS % 4]
    assert (
        shifts(augment, label=names)
        == shifts(augment, label=names.astype(object))
        == [({"cat": 3, "dog": 5}.get(name, 4),) for name in names]
    )


def test_a_number_that_is_drawn_is_the_same_wherever_it_is_used() -> None:
    @vg.pipeline
    def augment(image: Any) -> Any:
        x, y = vg.uniform(-5, 5), vg.uniform(-5, 5)
        for amount in (x, x, y):
            image = F.translate_x(image, amount)
        return image

    rows = shifts(augment)
    assert all(a == b != c for a, b, c in rows)
    drawn = np.array(rows)
    assert drawn.min() < -4
    assert drawn.max() > 4
    assert len(np.unique(drawn[:, 0])) == N


def test_a_draw_in_another_branch_moves_no_number() -> None:
    def make(more: bool) -> T.Transform:
        def augment(image: Any, label: Any) -> Any:
            x = vg.uniform(0, 9)
            if label == 0:
                image = F.translate_x(image, x)
            elif more:
                image = F.translate_x(image, vg.uniform(0, 9) + vg.randint(3))
            return image

        return vg.pipeline(augment)

    alone, beside = (shifts(make(more), label=LABELS) for more in (False, True))
    assert [a for a, label in zip(alone, LABELS, strict=True) if label == 0] == [
        b for b, label in zip(beside, LABELS, strict=True) if label == 0
    ]


def test_arithmetic_is_pythons() -> None:
    def formula(x: Any) -> list[Any]:
        return [
            *(x + 2, 2 - x, x * -3, x / 4, x // 3, x % 3, -x, abs(x - 5), x**2, 2**x, round(x / 4), (x > 4) + 1),
            *(min(x, 4), max(x, 3, 6), min([x, 2]), int(x / 2 - 2), math.floor(x / 4), math.sqrt(x), math.sin(x)),
            *(
                np.exp(x / 9),
                np.clip(x, 2, 5),
                np.where(x > 3, x, 1.5),
                np.maximum(x, 5),
                math.radians(x),
                float(x) + 0.5,
                [10, 20, 30][x % 3],
            ),
            *(x if x > 3 else -x, (x > 2 and x < 7) * 1.0, (not x) + 0, 1 if x in (1, 5) else 2, math.ceil(x / 4)),
            *(1 if 2 < x <= 4 < 9 else 0, 5 if all([x > 1, x < 4]) else 6, 5 if any([x == 1, x == 4]) else 6),
        ]

    @vg.pipeline
    def augment(image: Any, label: Any) -> Any:
        for value in formula(label):
            image = F.translate_x(image, value)
        return image

    rows = shifts(augment, label=LABELS)
    for row, label in zip(rows, LABELS.tolist(), strict=True):
        assert row == tuple(float(value) for value in formula(label))


def test_a_chain_of_choices_may_be_long() -> None:
    @vg.pipeline
    def augment(image: Any, label: Any) -> Any:
        for number in range(200):
            if label == number:
                return F.translate_x(image, number)
        return image

    assert shifts(augment, label=LABELS) == [(label,) for label in LABELS.tolist()]


def test_a_draw_elsewhere_moves_no_number() -> None:
    """Neither on the same line nor in a loop that some samples leave."""

    @vg.pipeline
    def augment(image: Any, label: Any) -> Any:
        _, x = (vg.uniform(0, 9) if label % 2 else 0), vg.uniform(0, 9)
        for _ in range(label % 3):
            vg.uniform()
        if label > 6:
            T.RandAugment()(image)
        return F.translate_x(F.translate_x(image, x), vg.uniform(0, 9))

    drawn = [shifts(augment, label=LABELS * 0 + label) for label in range(9)]
    assert all(each == drawn[0] for each in drawn[1:])


def test_pipelines_within_pipelines() -> None:
    @vg.pipeline
    def moved(image: Any, amount: Any, times: int = 1) -> Any:
        """Moves."""
        for _ in range(times):
            image = F.translate_x(image, amount)
        return image

    @vg.pipeline
    def augment(image: Any, label: Any, amount: Any) -> Any:
        image = moved(image)
        if label > 5:
            image = moved(image, label, times=2)
        return image

    assert moved.__doc__ == "Moves."
    assert shifts(augment, label=LABELS, amount=LABELS * 2) == [
        (2 * label, label, label) if label > 5 else (2 * label,) for label in LABELS.tolist()
    ]
    assert shifts(vg.pipeline(moved, times=3), amount=LABELS) == [(label,) * 3 for label in LABELS.tolist()]
    nested = vg.pipeline(lambda image: T.Compose([moved])(image))
    assert shifts(nested, amount=LABELS) == [(label,) for label in LABELS.tolist()]


def test_transforms_are_called_as_functions_are() -> None:
    flip = T.RandomHorizontalFlip()

    @vg.pipeline
    def augment(image: Any, label: Any) -> Any:
        image = T.RandAugment(2, 9)(flip(image))
        image = T.Resize(24)(image) if label > 3 else F.resize(image, (24, 20))
        return T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)(image)

    batch = vg.Augmenter(augment)(vg.sample_images(4), ids=range(4), conditions={"label": [1, 5, 1, 5]})
    assert {image.dtype for image in batch} == {batch[0].dtype}
    assert [tuple(image.shape[1:]) == (24, 20) for image in batch] == [True, False, True, False]


def moved_by(amount: Any) -> Callable[[Any], Any]:
    return lambda image: F.translate_x(image, amount)


def test_vg_select_and_choice() -> None:
    @vg.pipeline
    def augment(image: Any, label: Any) -> Any:
        index = vg.randint(3)
        image = F.translate_x(image, vg.select(index, [5, 6, 7]))
        image = vg.select(index, [lambda x: F.translate_x(x, 5), moved_by(6), moved_by(label)], image)
        return F.translate_x(image, vg.choice([1, 2], p=[0, 3]))

    rows = shifts(augment, label=LABELS)
    assert {first for first, *_ in rows} == {5, 6, 7}
    assert all(b == (a if a < 7 else label) and c == 2 for (a, b, c), label in zip(rows, LABELS.tolist(), strict=True))


def test_draws_have_their_distributions() -> None:
    @vg.pipeline
    def augment(image: Any) -> Any:
        drawn = [vg.normal(3, 2), vg.randint(2, 5), vg.choice([1, 2, 3], p=[1, 0, 3]), vg.uniform(), vg.coin(0.2) * 1]
        for value in drawn:
            image = F.translate_x(image, value)
        return image

    program = vg.Augmenter(augment).program([(40, 30)] * 4000, ids=range(4000))
    normal, whole, chosen, unit, coin = program.args[:, :5, 0].T
    assert abs(normal.mean() - 3) < 0.15
    assert abs(normal.std() - 2) < 0.1
    np.testing.assert_allclose(np.bincount(whole.astype(int)) / 4000, [0, 0, 1 / 3, 1 / 3, 1 / 3], atol=0.03)
    np.testing.assert_allclose(np.bincount(chosen.astype(int)) / 4000, [0, 0.25, 0, 0.75], atol=0.03)
    assert 0 <= unit.min() < unit.max() < 1
    assert abs(coin.mean() - 0.2) < 0.02


def test_sizes_are_those_of_the_image_at_hand() -> None:
    @vg.pipeline
    def augment(image: Any, height: Any, epoch: Any) -> Any:
        first = image.width
        image = F.center_crop(image, (20, 10)) if image.height > 50 else image
        if image.width == 10:
            image = F.translate_x(image, image.height * 2)
        return F.translate_x(image, image.width + first * 100 + height * 10_000 + epoch)

    program = vg.Augmenter(augment).program([(60, 30), (40, 25, 1)], ids=[1, 2], epoch=3)
    assert [[args[0] for _, args in program.operations(row)][-1] for row in range(2)] == [603013, 402528]
    assert [op.name for op, _ in program.operations(0)] == ["CROP", "TRANSLATE_X", "TRANSLATE_X"]
    assert program.args[0, 1, 0] == 40


def test_noise_differs_from_sample_to_sample() -> None:
    augment = vg.pipeline(lambda image: F.gaussian_noise(image, sigma=vg.uniform(0.1, 0.2)))
    image = np.full((20, 30, 3), 128, np.uint8)
    one, other = vg.Augmenter(augment)([image, image], ids=[1, 2])
    assert (one != other).any()
    assert 15 < one.float().std() < 60


def test_noise_has_high_slots_on_every_device() -> None:
    def augment(image: Any) -> Any:
        image = T.SaltAndPepper(0.2)(F.gaussian_noise(image, sigma=0.1))
        return T.RandomErasing(p=1.0, value="random")(T.ShotNoise()(image))

    images = [image[:40, :50] for image in vg.sample_images(3)]
    on_cpu, by_oracle = (
        vg.Augmenter(vg.pipeline(augment), device)(images, ids=[0, 1, 2]) for device in ("cpu", "oracle")
    )
    assert (on_cpu.int() - by_oracle.int()).abs().max() <= 1
    many = [np.dstack([image, image[..., :2]]) for image in images]
    noisy = vg.pipeline(lambda image: F.gaussian_noise(image, sigma=vg.uniform(0.1, 0.2)))
    batch = vg.Augmenter(noisy)(many, ids=[0, 1, 2])
    assert batch.shape == (3, 5, 40, 50)
    assert (batch[:, 3:] != batch[:, :2]).any()  # each channel has noise of its own
    assert (vg.Augmenter(noisy)(many[1:2], ids=[1])[0] == batch[1]).all()


@pytest.mark.parametrize("device", ["cpu", "oracle"])
def test_any_batch_gives_the_same_pixels(device: str) -> None:
    @vg.pipeline
    def augment(image: Any, label: Any) -> Any:
        if vg.coin(0.6):
            image = F.affine(image, vg.uniform(-20, 20), (vg.uniform(-3, 3), 0), 1.0, 0.0, "bilinear")
        elif label == 1:
            image = T.RandomResizedCrop(24)(image)
        image = F.adjust_gamma(image, 1 + vg.uniform() / 2)
        if image.height > 100:
            image = F.erase(image, vg.randint(50), 3, 20, vg.randint(1, 40), 200)
        return F.gaussian_blur(image, 5, vg.uniform(0.1, 2))

    images = [image[: 90 + 10 * i, : 130 - 20 * i] for i, image in enumerate(vg.sample_images(4))]
    ids, labels = [7, 8, 9, 10], np.array([0, 1, 1, 0])
    together = vg.Augmenter(augment)(images, ids=ids, conditions={"label": labels})
    augmenter = vg.Augmenter(augment, device)
    for row in (2, 0, 3, 1):
        alone = augmenter([images[row]], ids=[ids[row]], conditions={"label": labels[row : row + 1]})[0]
        assert (alone == together[row]).all()
    one = vg.as_transform(augment)(images[1], id=8, conditions={"label": 1})
    assert (one == together[1]).all()


def test_it_stays_one_pass() -> None:
    @vg.pipeline
    def augment(image: Any) -> Any:
        if vg.coin():
            image = F.rotate(image, vg.uniform(-30, 30))
        return F.adjust_brightness(F.hflip(image), vg.uniform(0.5, 1.5))

    for sample in range(8):
        assert "1 pass:" in vg.Augmenter(augment).explain(sample)


def test_a_function_of_one_class_method_and_partial() -> None:
    class Mover:
        __amount = 4

        def move(self, image: Any, times: Any) -> Any:
            return F.translate_x(image, self.__amount) if times > 3 else image

        def __call__(self, image: Any) -> Any:
            return self.move(image, 9)

    @vg.pipeline
    def augment(image: Any, label: Any) -> Any:
        return Mover()(Mover().move(image, label))

    assert shifts(augment, label=LABELS) == [(4, 4) if label > 3 else (4,) for label in LABELS]


@vg.pipeline
def several(image: Any, label: Any) -> Any:
    if vg.coin(0.7):
        image = F.rotate(image, vg.uniform(-20, 20), "bilinear")
    elif label == 1:
        return T.AugMix()(image)
    image = vg.select(
        vg.randint(4), [F.equalize, F.invert, F.autocontrast, lambda x: F.gaussian_blur(x, 5, 2.0)], image
    )
    return F.adjust_gamma(F.hflip(image), vg.uniform(0.5, 1.5))


def test_it_runs_in_the_kernels_of_a_gpu() -> None:
    """In Triton's interpreter, to the CPU's bits."""
    from tests.executors.poison import poisoned_executor, run_poisoned

    @vg.pipeline
    def augment(image: Any) -> Any:
        image = F.rotate(image, vg.uniform(-20, 20)) if vg.coin() else F.invert(image)
        image = F.gaussian_noise(image)
        return F.adjust_gamma(F.hflip(image), vg.uniform(0.5, 1.5))

    images = [np.random.default_rng(i).integers(0, 256, (20, 30, 3), np.uint8) for i in range(2)]
    program = vg.Augmenter(augment).program(images, ids=[0, 2])
    assert len(set(program.opcode[:, 0].tolist())) == 2
    outputs = run_poisoned(poisoned_executor("cpu", (32, 64)), program, images)
    for out, wanted in zip(outputs, cpu.run(program, images), strict=True):
        np.testing.assert_array_equal(out, wanted)


def test_blends_loaders_and_choices_take_it() -> None:
    images, labels = vg.sample_images(6), [0, 1, 0, 1, 0, 1]
    transform = T.Compose([T.Resize((40, 50)), T.OneOf([several, T.SomeOf([several, T.Invert()], 1)])])
    wanted = vg.Augmenter(transform)(images, ids=range(6), conditions={"label": labels})
    loader = vg.Loader(vg.WithIds(list(zip(images, labels, strict=True))), transform, 4, shuffle=False, device="cpu")
    loaded = [image for batch, _ in loader for image in batch]
    assert all((a == b).all() for a, b in zip(loaded, wanted, strict=True))


class Warm(T.CustomOp):
    magnitude = T.Magnitude(0, 1)

    def lut(self, m: float) -> Any:
        return np.clip(np.arange(256) * (1 + m), 0, 255).astype(np.uint8)


@vg.pipeline
def usual(image: Any) -> Any:
    if vg.coin():
        image = F.rotate(image, vg.uniform(-30, 30))
    image = T.AlternatingHorizontalFlip()(image)
    return F.resize(T.RandAugment()(T.ThreeAugment()(image)), (32, 32))


@vg.pipeline
def blended(image: Any) -> Any:
    return T.AugMix()(F.rotate(image, vg.uniform(0, 9)))


@vg.pipeline
def with_tables(image: Any) -> Any:
    image = Warm()(T.Cutout(8)(Warm(0.3)(image))) if vg.coin() else T.CoarseDropout()(image)
    return T.ElasticTransform()(image)


@vg.pipeline
def in_gray(image: Any) -> Any:
    if vg.coin():
        return F.hflip(F.rgb_to_grayscale(F.rotate(image, 5), 3))
    return T.Grayscale(3)(image)


@pytest.mark.parametrize(
    "transform",
    [
        usual,
        with_tables,
        T.Compose([T.Resize((32, 32)), blended, T.RandomHorizontalFlip(), T.Normalize(0.5, 0.5)]),
        T.Compose([T.Resize((32, 32)), T.AugMix(), vg.pipeline(lambda image: F.hflip(image))]),
        T.Compose([T.Resize((32, 32)), T.SomeOf([blended, usual, T.Invert()], 1), T.RandomHorizontalFlip()]),
        T.Compose([T.Resize((32, 32)), T.RandomOrder([blended, T.RandomHorizontalFlip()])]),
        T.Compose([T.Pad(2, fill=(9, 9, 9)), in_gray]),
        T.MultiView([usual, T.Compose([T.Resize(16), usual])], counts=[2, 1]),
    ],
)
def test_alone_as_in_a_batch(transform: T.Transform) -> None:
    images = [image[:60, :80, :1] if i % 2 else image[:60, :80] for i, image in enumerate(vg.sample_images(6))]
    together = vg.Augmenter(transform, num_threads=1)(images, ids=range(6))
    for row in (1, 4, 3):
        alone = vg.Augmenter(transform)([images[row]], ids=[row])
        one = vg.as_transform(transform)(images[row], id=row)
        if not isinstance(transform, T.MultiView):
            together_row, alone_row, one = [together[row]], [alone[0]], [one]
        else:
            together_row, alone_row = [view[row] for view in together], [view[0] for view in alone]
        for a, b, c in zip(together_row, alone_row, one, strict=True):
            assert (a == b).all()
            assert (b == c).all()


def test_only_what_may_follow_a_mixed_image_follows_it() -> None:
    images = [image[:32, :32] for image in vg.sample_images(4)]
    turned = vg.pipeline(lambda image: F.rotate(image, 3))
    with pytest.raises(ValueError, match="Rotate after AugMix: images are already mixed there"):
        vg.Augmenter(T.Compose([T.AugMix(), turned]))(images, ids=range(4))
    with pytest.raises(ValueError, match="AugMix after AugMix: images are already mixed there"):
        vg.Augmenter(T.Compose([T.AugMix(), blended]))(images, ids=range(4))
    mixed, labels = vg.Augmenter(T.Compose([turned, T.MixUp(num_classes=2)]))(
        images, ids=range(4), partners="batch", labels=[0, 1, 0, 1]
    )
    assert (mixed.shape, labels.shape) == ((4, 3, 32, 32), (4, 2))


def test_values_are_plain() -> None:
    def kinds(image: Any, name: Any, *, flag: Any, weight: Any, epoch: Any, area: Any, aspect: Any) -> Any:
        assert (type(name), type(flag), type(weight), type(epoch)) == (str, bool, float, int)
        assert (area, aspect, image.area, image.shape) == (4000, 1.6, 4000, (50, 80, 3))
        return image

    conditions = {"name": ["a", "b"], "flag": [True, False], "weight": np.ones(2, np.float32)}
    vg.Augmenter(vg.pipeline(kinds)).program([(50, 80)] * 2, ids=[0, 1], conditions=conditions)
