"""Several views of each image: what each depends on, the form in which they are handed out, and one decode for all."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.decode.jpegs import jpeg
from tests.images import photo
from variegate import transforms as T
from variegate.decode import decode_plain, read_image
from variegate.executors.runners import encoded_batch
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.program.describe import operations_of

NORMALIZE = T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)
LARGE = T.Compose([T.RandomResizedCrop(40), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4), NORMALIZE])
SMALL = T.Compose([T.RandomResizedCrop(17, (0.05, 0.4)), T.GaussianNoise(), NORMALIZE])
OTHER = T.Compose([T.RandomResizedCrop(40), T.Invert(), NORMALIZE])
VIEWS = T.MultiView([LARGE, SMALL], counts=[2, 3])
IDS = [3, 9, 2**40 + 1, 5]


def images() -> list[Any]:
    return [photo(64, 48), photo(31, 77), photo(90, 41), photo(17, 31)]


def counted(calls: list[int]) -> Any:
    """``decode_plain``, noting the size of each file that it decodes."""

    def noted(data: bytes, *rest: Any) -> Any:
        calls.append(len(data))
        return decode_plain(data, *rest)

    return noted


@pytest.mark.parametrize("device", ["oracle", "cpu"])
def test_a_tensor_for_each_group(device: str) -> None:
    large, small = vg.Augmenter(VIEWS, device, seed=7)(images(), ids=IDS, epoch=1)
    assert large.shape == (4, 2, 3, 40, 40)
    assert small.shape == (4, 3, 3, 17, 17)
    assert large.is_contiguous()
    assert small.is_contiguous()
    every = [*large.unbind(1), *(view[..., :17, :17] for view in small.unbind(1))]
    assert all(not torch.equal(a[..., :17, :17], b[..., :17, :17]) for i, a in enumerate(every) for b in every[:i])


def test_a_view_depends_on_its_place_alone() -> None:
    def views(transform: T.Transform, chosen: list[int]) -> Any:
        given = [images()[i] for i in chosen]
        return vg.Augmenter(transform, seed=7)(given, ids=[IDS[i] for i in chosen], epoch=1, copy=2)

    large, small = views(VIEWS, [0, 1, 2, 3])
    first = vg.Augmenter(LARGE, seed=7)(images(), ids=IDS, epoch=1, copy=2)
    assert torch.equal(large[:, 0], first), "the very first view is what its transform gives alone"
    for counts in ([3, 3], [2, 5]):
        more = views(T.MultiView([LARGE, SMALL], counts=counts), [0, 1, 2, 3])
        assert torch.equal(more[0][:, :2], large)
        assert torch.equal(more[1][:, :3], small)
    assert torch.equal(views(T.MultiView([OTHER, SMALL, LARGE], counts=[1, 3, 1]), [0, 1, 2, 3])[1], small)
    backwards = views(VIEWS, [3, 1])
    assert torch.equal(backwards[0], large[[3, 1]])
    assert torch.equal(views(VIEWS, [2])[1][0], small[2])


def test_one_transform_for_each_view_of_a_group() -> None:
    aug = vg.Augmenter(T.MultiView([[LARGE, OTHER], SMALL], counts=[2, 3]), seed=7)
    same = vg.Augmenter(VIEWS, seed=7)
    mixed, small = aug(images(), ids=IDS)
    assert torch.equal(mixed[:, 0], same(images(), ids=IDS)[0][:, 0])
    assert torch.equal(small, same(images(), ids=IDS)[1])
    others = vg.Augmenter(T.MultiView([OTHER], counts=[2]), seed=7)(images(), ids=IDS)[0]
    assert torch.equal(mixed[:, 1], others[:, 1])


def test_without_counts_views_have_no_axis() -> None:
    pair = vg.Augmenter(T.MultiView([LARGE, OTHER]), seed=7)(images(), ids=IDS)
    assert [view.shape for view in pair] == [(4, 3, 40, 40)] * 2
    counted = vg.Augmenter(T.MultiView([LARGE, OTHER], counts=[1, 1]), seed=7)(images(), ids=IDS)
    assert all(torch.equal(a, b[:, 0]) for a, b in zip(pair, counted, strict=True))


def test_sizes_that_differ_make_lists() -> None:
    grown = T.MultiView([T.Identity(), T.RandomRotation((5, 85), expand=True)], counts=[1, 2])
    plain, turned = vg.Augmenter(grown, layout="NHWC")(images(), ids=IDS)
    assert [tuple(view.shape) for view in plain] == [(1, *image.shape) for image in images()]
    assert all(len(views) == 2 for views in turned)
    assert len({tuple(view.shape) for views in turned for view in views}) > 4
    one = vg.Augmenter(grown, layout="NHWC")([images()[1]], ids=IDS[1:2])
    assert all(torch.equal(a, b) for a, b in zip(one[1][0], turned[1], strict=True))


def test_a_blend_may_be_a_view() -> None:
    mixed = T.Compose([T.RandomResizedCrop(40), T.AugMix(), NORMALIZE])
    aug = vg.Augmenter(T.MultiView([LARGE, mixed, mixed], counts=[1, 1, 1]), seed=7)
    given = images()
    a, b, c = aug(given, ids=IDS)
    assert torch.equal(a[:, 0], vg.Augmenter(LARGE, seed=7)(given, ids=IDS))
    assert not torch.equal(b, c)
    files = [jpeg(*image.shape[:2]) for image in given]
    whole = [read_image(file) for file in files]
    assert all(torch.equal(x, y) for x, y in zip(aug.decode_and_run(files, ids=IDS), aug(whole, ids=IDS), strict=True))


def test_a_file_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [jpeg(150 + 11 * i, 200) for i in range(5)]
    calls: list[int] = []
    monkeypatch.setattr(encoded_batch, "decode_plain", counted(calls))
    for threads in (1, 3):
        calls.clear()
        aug = vg.Augmenter(VIEWS, num_threads=threads)
        made = aug.decode_and_run(files, ids=range(5))
        assert sorted(calls) == sorted(map(len, files))
        whole = aug([read_image(file) for file in files], ids=range(5))
        assert all(torch.equal(a, b) for a, b in zip(made, whole, strict=True))


def test_the_same_bytes_are_decoded_once_for_all_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = jpeg(150, 200), jpeg(160, 190)
    crop = T.RandomResizedCrop(70, (0.1, 0.5))  # never so large that a reduced scale would do
    calls: list[int] = []
    monkeypatch.setattr(encoded_batch, "decode_plain", counted(calls))
    aug, ids, copies = vg.Augmenter(crop, num_threads=1), [4, 4, 4, 8, 8, 8], [0, 1, 2] * 2
    made = aug.decode_and_run([one] * 3 + [other] * 3, ids=ids, copy=copies)
    assert len(calls) == 2
    whole = [read_image(file) for file in [one] * 3 + [other] * 3]
    assert torch.equal(made, aug(whole, ids=ids, copy=copies))


def test_a_bad_file_is_noted_for_all_that_share_it() -> None:
    bad = jpeg(60, 60)[:-400]
    good = jpeg(60, 60)
    failures: dict[int, Any] = {}
    encoded = EncodedBatch([bad, good, bad], failures=failures)
    large, _ = vg.Augmenter(VIEWS).decode_and_run(encoded, ids=[1, 2, 3])
    assert set(failures) == {0, 2}
    assert torch.equal(large[1], vg.Augmenter(VIEWS).decode_and_run([good], ids=[2])[0][0])


def test_one_image_at_a_time() -> None:
    large, small = vg.Augmenter(VIEWS, seed=7)(images(), ids=IDS)
    one = vg.as_transform(VIEWS, seed=7)(images()[1], id=IDS[1])
    assert isinstance(one, tuple)
    assert torch.equal(one[0], large[1])
    assert torch.equal(one[1], small[1])
    grown = T.MultiView([T.Identity(), T.RandomRotation((5, 85), expand=True), T.AugMix()], counts=[1, 2, 1])
    batch = vg.Augmenter(grown)(images(), ids=IDS, epoch=1)
    alone = vg.Augmenter(grown).of_one(images()[2], IDS[2:3], 1)
    assert torch.equal(alone[0], batch[0][2])
    assert all(torch.equal(a, b) for a, b in zip(alone[1], batch[1][2], strict=True))
    assert torch.equal(alone[2], batch[2][2])
    assert [tuple(view.shape) for view in VIEWS(images()[0])] == [(2, 3, 40, 40), (3, 3, 17, 17)]
    items = [(image, label, id) for image, label, id in zip(images(), range(4), IDS, strict=True)]
    views, labels = vg.Collate(VIEWS, seed=7)(items)
    assert torch.equal(views[0], large)
    assert labels.tolist() == [0, 1, 2, 3]


def test_conditions_and_grayscale() -> None:
    by_label = T.Compose([T.Cond("label", {0: T.Invert()}), T.CenterCrop(17), T.Grayscale()])
    a, b = vg.Augmenter(T.MultiView([by_label, by_label]))(images(), ids=IDS, conditions={"label": [0, 1, 0, 1]})
    assert a.shape == (4, 1, 17, 17)
    plain = vg.Augmenter(T.Compose([T.CenterCrop(17), T.Grayscale()]))(images(), ids=IDS)
    assert torch.equal(b[1], plain[1])
    assert torch.equal(a[0], 255 - plain[0])


def test_it_is_described_explained_and_sent() -> None:
    views = T.MultiView([[LARGE, OTHER], SMALL], counts=[2, 3])
    assert T.from_dict(json.loads(json.dumps(views.to_dict()))) == views
    assert pickle.loads(pickle.dumps(views)) == views
    assert repr(T.MultiView([[T.Invert(), T.Equalize()]], counts=[2])) == (
        "MultiView([[Invert(), Equalize()]], counts=(2,))"
    )
    told = vg.Augmenter(views).explain(id=3)
    assert told.count("group 0, view") == 2
    assert told.count("group 1, view") == 3
    assert "Invert" in told.partition("group 0, view 1:")[2].partition("group 1")[0]


def test_views_of_several_formats_are_refused() -> None:
    aug = vg.Augmenter(T.MultiView([LARGE, T.CenterCrop(4)]))
    with pytest.raises(ValueError, match=r"MultiView: its views leave in several formats .*the same at the end"):
        aug(images(), ids=IDS)


def test_who_has_no_place_for_views_says_so() -> None:
    with pytest.raises(ValueError, match="transform: got a MultiView, which makes several images of each; accepted"):
        list(vg.Engine(devices=["cpu:0"], workers="thread").map(images(), transform=VIEWS))


def test_half_of_the_samples_are_flipped_in_each_epoch() -> None:
    aug = vg.Augmenter(T.AlternatingHorizontalFlip(), seed=5)
    image = photo(5, 6)
    mirrored = torch.from_numpy(image[:, ::-1].copy()).permute(2, 0, 1)
    batch, ids = np.repeat(image[None], 400, axis=0), np.arange(400) * 7

    def flipped(epoch: int, copy: int = 0) -> list[bool]:
        return [torch.equal(made, mirrored) for made in aug(batch, ids=ids, epoch=epoch, copy=copy)]

    first = flipped(0)
    assert 150 < sum(first) < 250
    assert flipped(1) == [not each for each in first]
    assert flipped(2) == flipped(2**40) == first
    assert flipped(0, copy=1) != first
    alone = [torch.equal(aug.of_one(image, [int(id)], 3), mirrored) for id in ids[:20]]
    assert alone == flipped(3)[:20]
    views = vg.Augmenter(T.MultiView([T.AlternatingHorizontalFlip()], counts=[2]), seed=5)
    even, odd = (views(batch, ids=ids, epoch=epoch)[0] for epoch in (0, 1))
    assert all(
        (torch.equal(a, mirrored) != torch.equal(b, mirrored)) for a, b in zip(even[:, 1], odd[:, 1], strict=True)
    )
    assert [torch.equal(made, mirrored) for made in even[:, 0]] == first


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("simclr", [(3, 224, 224)] * 2),
        ("byol", [(3, 224, 224)] * 2),
        ("mocov3", [(3, 224, 224)] * 2),
        ("dino", [(2, 3, 224, 224), (6, 3, 96, 96)]),
    ],
)
def test_presets(name: str, sizes: list[tuple[int, ...]]) -> None:
    views = vg.load_policy(name)
    assert T.from_dict(json.loads(json.dumps(views.to_dict()))) == views
    made = vg.Augmenter(views)([photo(120, 160)] * 2, ids=[1, 2])
    assert [tuple(group.shape) for group in made] == [(2, *size) for size in sizes]
    assert all(group.dtype == torch.float32 and bool(group.isfinite().all()) for group in made)
    lowest = min(float(group.min()) for group in made)
    assert (lowest >= 0) == (name == "simclr"), "SimCLR's are on 0..1, the others normalised"


def always_blurred(*other: Any) -> list[Any]:
    return [("GaussianBlur", 1.0), ("Solarize", 0.0), other]


def seldom_blurred(*other: Any) -> list[Any]:
    return [("GaussianBlur", 0.1), ("Solarize", 0.2), other]


def test_presets_blur_and_solarize_as_published() -> None:
    """Shares of the operations in 300 samples, within four deviations of a binomial of these."""
    expected = {
        "simclr": [("GaussianBlur", 0.5), ("Solarize", 0.0), ("HorizontalFlip", 0.5)] * 2,
        "byol": [*always_blurred("Grayscale", 0.2), *seldom_blurred("HorizontalFlip", 0.5)],
        "mocov3": [*always_blurred("Grayscale", 0.2), *seldom_blurred("Brightness", 0.8)],
        "dino": [
            *always_blurred("Hue", 0.8),
            *seldom_blurred("Hue", 0.8),
            *[("GaussianBlur", 0.5), ("Solarize", 0.0), ("HorizontalFlip", 0.5)] * 6,
        ],
    }
    for name, shares in expected.items():
        program = vg.Augmenter(vg.load_policy(name)).program([(300, 400)] * 300, ids=range(300))
        assert program.grouping is not None
        views = program.grouping.views
        for place, (operation, share) in enumerate(shares):
            rows = range(place // 3, program.num_rows, views)
            found = sum(any(done["op"] == operation for done in operations_of(program, row)) for row in rows)
            assert abs(found - 300 * share) <= 4 * (300 * share * (1 - share)) ** 0.5, (name, place, operation)
