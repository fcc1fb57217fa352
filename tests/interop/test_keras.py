"""A loader as a data set of Keras: its batches, those made ahead, refusals, and training with two back ends."""

from __future__ import annotations

import os
import platform
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from tests.images import PHOTOS, photo
from tests.loader.samples import MemoryShards
from tests.needed import needs
from tests.one_tensorflow import on_tensorflow
from variegate import transforms as T
from variegate.data.folder import open_folder
from variegate.data.samples import Samples

if TYPE_CHECKING:
    import keras

    from tests.interop.keras_training import make_loader, train
    from variegate.interop.keras import BatchesAhead, PyDataset

os.environ.setdefault("KERAS_BACKEND", "torch")  # before Keras is imported; TensorFlow has a process of its own
platform.processor()  # Keras asks for it when it is imported: a process, which is begun here, by no test
pytestmark = needs("keras")


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    """Keras takes seconds, which every worker that collects tests would spend."""
    global BatchesAhead, PyDataset, keras, make_loader, train
    import keras

    from tests.interop.keras_training import make_loader, train
    from variegate.interop.keras import BatchesAhead, PyDataset


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of six photos of different sizes, as JPEG files."""
    folder = tmp_path_factory.mktemp("photos")
    for i in range(18):
        (folder / PHOTOS[i % 3]).mkdir(exist_ok=True)
        Image.fromarray(photo(30 + i, 40, PHOTOS[i % 3])).save(folder / PHOTOS[i % 3] / f"{i:02d}.jpg")
    return folder


@pytest.fixture
def source(root: Path) -> Samples:
    return open_folder(root)


# -- batches -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_are_the_loaders(source: Samples, workers: int) -> None:
    loader = make_loader(source)
    dataset = PyDataset(loader, workers=workers)
    assert len(dataset) == dataset.num_batches == 5
    for epoch in range(2):
        for i in (*range(5), 3, 1):
            images, labels = dataset[i]
            expected = make_loader(source).batch(i, epoch)
            np.testing.assert_array_equal(images, expected.images.numpy())
            np.testing.assert_array_equal(labels, expected.labels.numpy())
            assert images.shape == (4 if i < 4 else 2, 16, 16, 3)
            assert (images.dtype, labels.dtype) == (np.float32, np.int64)
        dataset.on_epoch_end()
        assert loader.epoch == epoch + 1
    with pytest.raises(IndexError, match="step: got 5; accepted: 0 to 4"):
        dataset[5]


def test_without_normalising_images_are_bytes(source: Samples) -> None:
    images, _ = PyDataset(make_loader(source, T.Resize((8, 8))))[0]
    assert images.dtype == np.uint8


def test_views_are_a_tuple_of_arrays(source: Samples) -> None:
    views = T.MultiView([T.Resize((8, 8)), T.RandomResizedCrop(5)], counts=[1, 3])
    (large, small), labels = PyDataset(make_loader(source, views))[0]
    assert (large.shape, small.shape, labels.shape) == ((4, 1, 8, 8, 3), (4, 3, 5, 5, 3), (4,))
    ragged = PyDataset(make_loader(source, T.MultiView([T.Identity()])))
    with pytest.raises(ValueError, match=r"batch 0: got images of shapes .*; accepted: one shape"):
        ragged[0]


@pytest.mark.parametrize(("one_hot", "length"), [(True, 3), (5, 5)])
def test_one_hot_labels(source: Samples, one_hot: Any, length: int) -> None:
    loader = make_loader(source)
    _, labels = PyDataset(loader, one_hot=one_hot)[1]
    assert labels.dtype == np.float32
    assert labels.shape == (4, length)
    np.testing.assert_array_equal(labels.argmax(axis=1), loader.batch(1).labels)
    np.testing.assert_array_equal(labels.sum(axis=1), 1)


@pytest.mark.parametrize("mix", [T.MixUp(), T.Mosaic()], ids=["two", "four"])
def test_mixed_labels_are_weighted_means(source: Samples, mix: T.Transform) -> None:
    loader = make_loader(source, T.Compose([T.Resize((16, 16)), mix]))
    labels: Any = loader.batch(0).labels
    _, vectors = PyDataset(loader, one_hot=3)[0]
    expected = np.zeros((4, 3))
    rest = labels.weight.reshape(4, -1)
    for row in range(4):
        expected[row, labels.label[row]] += 1 - float(rest[row].sum())
        for partner, weight in zip(labels.partner.reshape(4, -1)[row], rest[row], strict=True):
            expected[row, partner] += float(weight)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    with pytest.raises(
        ValueError, match="one_hot: got False; accepted: True or the number of classes, as the transform"
    ):
        PyDataset(loader)[0]
    with_classes = make_loader(source, T.Compose([T.Resize((16, 16)), T.MixUp(num_classes=3)]))
    np.testing.assert_array_equal(PyDataset(with_classes, one_hot=3)[0][1], with_classes.batch(0).labels)


def test_epochs_of_another_length_are_refused(source: Samples) -> None:
    dataset = PyDataset(make_loader(source), one_hot=3)
    model = keras.Sequential([keras.Input((16, 16, 3)), keras.layers.Flatten(), keras.layers.Dense(3, "softmax")])
    model.compile("sgd", "categorical_crossentropy", run_eagerly=True)
    message = "steps_per_epoch: got 3; accepted: None, or the 5 batches of an epoch; .* pass no dataset.epochs"
    with pytest.raises(ValueError, match=message):
        model.fit(dataset, steps_per_epoch=3, shuffle=False, callbacks=[dataset.epochs()], verbose=0)


def test_a_batch_may_be_shorter(root: Path, tmp_path: Path) -> None:
    for name in PHOTOS[:3]:
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / PHOTOS[0]).unlink()
    (tmp_path / PHOTOS[0]).mkdir()
    (tmp_path / PHOTOS[0] / "bad.jpg").write_bytes(b"no image")
    dataset = PyDataset(make_loader(open_folder(tmp_path), on_error="skip", shuffle=False))
    sizes = [len(images) for images, _ in dataset]
    assert sum(sizes) == 12
    assert [len(labels) for _, labels in dataset] == sizes


# -- batches ahead ----------------------------------------------------------------------------------------------------


def test_the_next_are_made_while_one_is_used() -> None:
    made: list[int] = []
    reached = threading.Event()

    def record(epoch: int, index: int) -> None:
        made.append(index)
        if index == 3:
            reached.set()

    ahead = BatchesAhead(record, 1, depth=3)
    ahead.get(0, 0, 5)
    assert reached.wait(10)
    assert made == [0, 1, 2, 3]
    for index in range(1, 5):
        ahead.get(0, index, 5)
    assert made == [0, 1, 2, 3, 4]  # each once, and none beyond the last


def test_an_error_is_raised_when_its_batch_is_asked_for() -> None:
    def fail(epoch: int, index: int) -> int:
        if index == 1:
            raise ValueError("batch 1")
        return index

    ahead = BatchesAhead(fail, 2, depth=2)
    assert ahead.get(0, 0, 3) == 0
    with pytest.raises(ValueError, match="batch 1"):
        ahead.get(0, 1, 3)
    assert ahead.get(0, 2, 3) == 2


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ({"layout": "NCHW"}, {}, r"layout='NCHW', but keras.config.image_data_format\(\) is 'channels_last'; accepted"),
        ({"dtype": "bfloat16"}, {}, "loader: got dtype='bfloat16', .* accepted: 'float32', 'float16'"),
        ({}, {"one_hot": 0}, "one_hot: got 0; accepted: False, True, or the number of classes"),
        ({}, {"one_hot": "yes"}, "one_hot: got 'yes'; accepted"),
        ({}, {"workers": 0}, "workers: got 0; accepted: an integer from 1 on"),
        ({}, {"max_queue_size": True}, "max_queue_size: got True; accepted"),
    ],
)
def test_arguments_that_are_refused(source: Samples, arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PyDataset(make_loader(source, **arguments), **options)


def test_loaders_that_are_refused(source: Samples) -> None:
    with pytest.raises(TypeError, match=r"loader: got list; accepted: a vg\.Loader"):
        PyDataset([])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"loader: its source is .*, whose length is not known; .* stream=False\)"):
        PyDataset(make_loader(MemoryShards(4)))
    loader = make_loader(source)
    loader.augmenter.device = "cuda:0"
    with pytest.raises(ValueError, match="loader: got device='cuda:0'; accepted: 'cpu'"):
        PyDataset(loader)


def test_channels_first(source: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras.config, "image_data_format", lambda: "channels_first")
    assert PyDataset(make_loader(source, layout="NCHW"))[0][0].shape == (4, 3, 16, 16)
    with pytest.raises(ValueError, match=r"layout='NHWC', but .* 'channels_first'; accepted: layout='NCHW'"):
        PyDataset(make_loader(source))


def test_images_of_several_shapes_are_refused(source: Samples) -> None:
    message = r"batch 0: got images of shapes \(\d+, 40, 3\), .* accepted: one shape. End the transform with a crop"
    with pytest.raises(ValueError, match=message):
        PyDataset(make_loader(source, T.RandomHorizontalFlip()))[0]


def test_labels_that_no_one_hot_vector_has(source: Samples) -> None:
    dataset = PyDataset(make_loader(source, shuffle=False), one_hot=2)
    dataset[0]
    with pytest.raises(ValueError, match="one_hot: got the label 2; accepted: 0 to 1"):
        dataset[4]


# -- training ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "backend", ["torch", pytest.param("tensorflow", marks=[pytest.mark.process, pytest.mark.xdist_group("tensorflow")])]
)
def test_fit_sees_every_batch_of_every_epoch(root: Path, backend: str) -> None:
    loader = make_loader(open_folder(root))
    expected = [float(loader.batch(i, epoch).images.sum()) for epoch in range(4) for i in range(5)]
    results = (
        train(root) if backend == keras.backend.backend() else on_tensorflow("tests.interop.keras_training:train", root)
    )
    assert len(results) == 2
    for result in results:
        assert result["backend"] == backend
        # Sums in another order of addition.
        np.testing.assert_allclose(result["seen"], expected, rtol=1e-3, atol=0.05)
        assert result["losses"][-1] < result["losses"][0]
        assert result["predicted"] == [18, 3]
        assert np.isfinite(result["evaluated"])


@pytest.mark.process
@pytest.mark.xdist_group("tensorflow")
def test_each_replica_gets_its_part_of_each_batch_and_each_image_comes_once() -> None:
    found = on_tensorflow("tests.interop.keras_on_two:replicas")
    given, batches = found["given"], found["batches"]
    assert len(given) == 2 * len(batches) == 20
    assert sorted(label for batch in batches[:5] for label in batch) == list(range(18))
    for place, batch in enumerate(batches):
        parts = {replica: (x, y) for replica, x, y in given[2 * place : 2 * place + 2]}
        assert sorted(parts) == [0, 1]
        assert [*parts[0][1], *parts[1][1]] == batch
        for x, y in parts.values():
            np.testing.assert_allclose(x, y, atol=1e-4)
