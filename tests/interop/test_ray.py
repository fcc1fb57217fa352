"""Augmentation in Ray Data: a row's pixels are its own, however batches, blocks and workers are cut."""

from __future__ import annotations

import importlib
import io
import logging
import pickle
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.images import PHOTOS, gray, photo
from tests.one_ray import one_ray
from variegate import transforms as T
from variegate.interop.ray import MapBatches, id_of

# Ray's own settings use names that it deprecates.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")

POLICY = T.Compose([T.RandomResizedCrop(24), T.RandAugment(2, 9), T.Normalize(0.5, 0.25)])
CROP = T.RandomResizedCrop(24)
# Keeps the image's size, and two rows never get the same.
NOISE = T.GaussianNoise(sigma=0.1)
FILES = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def file(image: Any, form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(buffer, form, quality=90)
    return buffer.getvalue()


def objects(values: Any) -> Any:
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array


SAME = [photo(32, 40, PHOTOS[i % 4]) for i in range(8)]
RAGGED = [photo(30 + i, 40, PHOTOS[i % 4]) for i in range(8)]
JPEGS = [file(image, "JPEG") for image in RAGGED]
LABELS = [2, 0, 1, 1, 0, 2, 2, 0]
IDS = np.array([5, 0, 7, 2**64 - 1, 3, 9, 11, 4], np.uint64)


def table(images: Any = JPEGS, **columns: Any) -> pa.Table:
    """Hugging Face's layout."""
    files = [None if data is None else {"bytes": data, "path": f"cat/{i}.jpg"} for i, data in enumerate(images)]
    return pa.table({"image": pa.array(files, FILES), "id": range(len(files)), **columns})


def batch(images: Any = None, ids: Any = None, **columns: Any) -> dict[str, Any]:
    images = np.stack(SAME) if images is None else images
    return {"image": images, "id": IDS if ids is None else ids, **columns}


# -- pixels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 8])
def test_pixels_are_the_augmenters_however_batches_are_cut(size: int) -> None:
    map_batches = MapBatches(POLICY, seed=3, epoch=5)
    expected = vg.Augmenter(POLICY, seed=3)(np.stack(SAME), ids=IDS, epoch=5).numpy()
    order = np.array([6, 1, 0, 3, 7, 2, 5, 4])
    for rows in np.split(order, range(size, 8, size)):
        out = map_batches(batch(np.stack(SAME)[rows], IDS[rows]))
        assert out["image"].dtype == np.float32
        np.testing.assert_array_equal(out["image"], expected[rows])


@pytest.mark.parametrize(
    "column",
    [
        objects(JPEGS),
        objects([{"bytes": data, "path": None} for data in JPEGS]),
        table()["image"],
        pa.chunked_array([pa.array(JPEGS[:3]), pa.array(JPEGS[3:])]),
        pa.chunked_array([pa.array(JPEGS, pa.large_binary()).dictionary_encode()]),
    ],
    ids=["bytes", "dicts", "struct", "binary", "large_binary by dictionary"],
)
def test_files_are_decoded_as_far_as_the_crop_needs(column: Any) -> None:
    expected = vg.Augmenter(POLICY, seed=3).decode_and_run(JPEGS, ids=IDS).numpy()
    if isinstance(column, np.ndarray):
        got = MapBatches(POLICY, seed=3)(batch(column))["image"]
    else:
        pytest.importorskip("ray")
        got = tensors(MapBatches(POLICY, seed=3)(pa.table({"image": column, "id": IDS})))
    np.testing.assert_array_equal(got, expected)


def test_sizes_that_differ() -> None:
    out = MapBatches(POLICY)(batch(objects(RAGGED)))["image"]
    np.testing.assert_array_equal(out, vg.Augmenter(POLICY)(RAGGED, ids=IDS).numpy())
    out = MapBatches(NOISE)(batch(objects(RAGGED)))["image"]
    assert (out.dtype, out.shape) == (object, (8,))
    for got, expected in zip(out, vg.Augmenter(NOISE)(RAGGED, ids=IDS), strict=True):
        np.testing.assert_array_equal(got, expected.numpy())


def test_what_an_augmenter_takes() -> None:
    arguments = {"seed": 1, "dtype": "float16", "layout": "NHWC", "geometry": "exact", "num_threads": 2}
    out = MapBatches(POLICY, **arguments)(batch())["image"]
    assert (out.dtype, out.shape) == (np.float16, (8, 24, 24, 3))
    expected = vg.Augmenter(POLICY, **arguments)(np.stack(SAME), ids=IDS)
    np.testing.assert_array_equal(out, expected.numpy())
    out = MapBatches(POLICY, device="cpu")(batch())["image"]
    np.testing.assert_array_equal(out, vg.Augmenter(POLICY, device="cpu")(np.stack(SAME), ids=IDS).numpy())


def test_batches_that_must_not_be_written_to(recwarn: pytest.WarningsRecorder) -> None:
    images, ids = np.stack(SAME), IDS.copy()
    images.flags.writeable = ids.flags.writeable = False  # as Ray hands them over
    before = images.copy()
    out = MapBatches(POLICY)(batch(images, ids))
    np.testing.assert_array_equal(out["image"], MapBatches(POLICY)(batch())["image"])
    np.testing.assert_array_equal(images, before)
    assert not recwarn.list


def test_copies_of_a_row_stand_together() -> None:
    for images in (np.stack(SAME), objects(RAGGED)):
        out = MapBatches(NOISE, copies=3, seed=2)(batch(images, label=np.arange(8)))
        assert out["copy"].tolist() == [0, 1, 2] * 8
        assert out["label"].tolist() == np.repeat(np.arange(8), 3).tolist()
        assert out["id"].tolist() == np.repeat(IDS, 3).tolist()
        for copy in range(3):
            expected = vg.Augmenter(NOISE, seed=2)(list(images), ids=IDS, copy=copy)
            assert len(expected) == 8
            for got, one in zip(out["image"][copy::3], expected, strict=True):
                np.testing.assert_array_equal(got, one.numpy())
    with pytest.raises(ValueError, match="copies: got 2, and the batch has a column 'copy'"):
        MapBatches(NOISE, copies=2)(batch(copy=np.zeros(8)))
    assert MapBatches(NOISE)(batch(copy=np.ones(8)))["copy"].tolist() == [1] * 8


def test_a_pickled_copy_carries_the_settings_alone() -> None:
    map_batches = MapBatches(POLICY, seed=3)
    fresh = len(pickle.dumps(map_batches))
    expected = map_batches(batch())["image"]
    assert len(pickle.dumps(map_batches)) == fresh
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(map_batches))(batch())["image"], expected)


def test_ray_is_not_needed_for_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor to import what is not imported yet."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("variegate.interop.ray")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    anew = importlib.import_module("variegate.interop.ray").MapBatches
    assert anew is not MapBatches
    out = anew(T.Invert())({"image": np.zeros((2, 4, 5, 3), np.uint8), "id": np.arange(2)})
    assert out["image"].shape == (2, 3, 4, 5)


# -- Arrow -------------------------------------------------------------------------------------------------------------


def tensors(out: pa.Table) -> Any:
    """The column of pixels as Ray Data gives it to whoever asks for arrays."""
    from ray.data.block import BlockAccessor

    return BlockAccessor.for_block(out).to_batch_format("numpy")["image"]


@pytest.mark.parametrize("images", [SAME, RAGGED], ids=["one shape", "ragged"])
def test_tensors_of_rays(images: list[Any]) -> None:
    extensions = pytest.importorskip("ray.data.extensions")
    whole = extensions.ArrowTensorArray.from_numpy(objects(images))
    column = pa.chunked_array([whole[:5], whole[5:]])
    expected = vg.Augmenter(NOISE, layout="NHWC")(images, ids=IDS)
    for rows in (slice(0, 8), slice(1, 4), slice(3, 7)):
        given = pa.table({"image": column, "id": IDS, "label": [None, *range(7)]}).slice(
            rows.start, rows.stop - rows.start
        )
        out = MapBatches(NOISE, layout="NHWC")(given)
        assert out.column("label").equals(given.column("label"))
        assert out.column_names == ["image", "id", "label"]
        for got, one in zip(tensors(out), expected[rows], strict=True):
            np.testing.assert_array_equal(got, one.numpy())


def test_tensors_of_arrows_own() -> None:
    pytest.importorskip("ray")
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(np.stack(SAME))
    out = MapBatches(POLICY)(pa.table({"image": column, "id": IDS}))
    np.testing.assert_array_equal(tensors(out), MapBatches(POLICY)(batch())["image"])


def test_other_columns_pass_through() -> None:
    numbers, words = np.arange(8), objects(list("abcdefgh"))
    out = MapBatches(CROP)({"a": numbers, **batch(), "b": words})
    assert list(out) == ["a", "image", "id", "b"]
    assert out["a"] is numbers
    assert out["b"] is words
    columns = {
        "nulls": pa.array([None, *range(7)], pa.int8()),
        "class": pa.array(list("abababab")).dictionary_encode(),
        "scores": pa.array([[1.5, 2], []] * 4),
    }
    given = table(**columns)
    for count, repeated in ((1, given), (2, given.take(np.repeat(np.arange(8), 2)))):
        out = MapBatches(CROP, encode="png", copies=count)(given)
        for name in columns:
            assert out.column(name).type == given.column(name).type
            assert out.column(name).to_pylist() == repeated.column(name).to_pylist()


# -- ids ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ids",
    [np.arange(8, dtype=np.int8), np.arange(8.0).astype(np.uint64), objects(range(8)), list(range(8))],
    ids=["int8", "uint64", "objects", "list"],
)
def test_integers_of_any_kind_are_ids(ids: Any) -> None:
    expected = vg.Augmenter(NOISE)(np.stack(SAME), ids=range(8)).numpy()
    np.testing.assert_array_equal(MapBatches(NOISE)(batch(ids=ids))["image"], expected)


def test_strings_are_ids_by_a_hash_that_stays() -> None:
    assert id_of("cat/1.png") == 904424096894533348
    assert id_of("") == 13020603013274838756
    assert id_of("größer/\udcff") == 3040170523882710383
    paths = [f"cat/{i}.png" for i in range(8)]
    expected = vg.Augmenter(NOISE)(np.stack(SAME), ids=[id_of(path) for path in paths]).numpy()
    for column in (objects(paths), np.array(paths)):
        given = {"image": np.stack(SAME), "path": column}
        np.testing.assert_array_equal(MapBatches(NOISE, id="path")(given)["image"], expected)
    files = [file(image) for image in SAME]
    for strings in (pa.array(paths), pa.array(paths, pa.large_string()), pa.array(paths).dictionary_encode()):
        out = MapBatches(NOISE, id="path", encode="png")(pa.table({"image": files, "path": strings}))
        assert [decode(row)[0, 0].tolist() for row in out["image"].to_pylist()] == expected[:, :, 0, 0].tolist()


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.arange(8) - 1, "id: column 'id' holds -1 in row 0 of the batch; accepted: integers from 0 to"),
        (np.arange(8.0), r"id: column 'id' holds float64; accepted: integers from 0 to 2\*\*64 - 1, or strings"),
        (np.array([np.nan, *range(7)]), r"id: column 'id' holds float64, as integers become where some are missing"),
        (objects([1, None, *range(6)]), "id: column 'id' holds None in row 1"),
        (objects(["a", 2.5, *range(6)]), "id: column 'id' holds 2.5 in row 1"),
        (np.zeros((8, 2), np.int64), r"id: column 'id' holds arrays \[2\]; accepted"),
    ],
)
def test_other_ids_are_refused(ids: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MapBatches(CROP)(batch(ids=ids))


def test_ids_that_are_null_in_arrow() -> None:
    given = table().set_column(1, "id", pa.array([1, None, *range(6)]))
    with pytest.raises(ValueError, match="id: column 'id' holds float64, as integers become where some are missing"):
        MapBatches(CROP, encode="png")(given)


# -- columns -----------------------------------------------------------------------------------------------------------


def test_a_missing_column_is_named_and_so_are_those_there() -> None:
    with pytest.raises(ValueError, match="image: there is no column 'img'; the batch has 'image', 'id', 'label'; acc"):
        MapBatches(CROP, image="img")(batch(label=np.zeros(8)))
    with pytest.raises(
        ValueError, match=r"id: there is no column 'key'; the batch has 'image', 'id'; .*include_paths="
    ):
        MapBatches(CROP, id="key")(table())
    with pytest.raises(
        ValueError, match=r"transform: Cond\(by='label'\) needs a column 'label'; the batch has 'image'"
    ):
        MapBatches(T.Compose([T.Cond(by="label", cases={1: CROP}), CROP]), on_error="skip")(batch())


@pytest.mark.parametrize("given", [[1], np.zeros((2, 4, 4, 3), np.uint8), table().to_pandas()])
def test_other_forms_of_a_batch_are_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=f"batch: got a {type(given).__name__}; accepted: a dict of arrays or an Arrow"):
        MapBatches(CROP)(given)


def test_batches_without_rows() -> None:
    assert MapBatches(CROP)({}) == {}
    for images in (np.zeros((0, 4, 4, 3), np.uint8), objects([])):
        out = MapBatches(CROP, copies=2)(batch(images, np.zeros(0, np.int64), label=np.zeros(0)))
        assert {name: len(column) for name, column in out.items()} == {"image": 0, "id": 0, "label": 0, "copy": 0}
    assert MapBatches(CROP)(table()[:0]).num_rows == 0
    assert MapBatches(CROP, encode="jpg")(table()[:0]).schema.field("image").type == FILES


def test_columns_choose_for_cond() -> None:
    black = np.zeros((4, 4, 5, 3), np.uint8)
    t = T.RandomApply(
        [T.Cond(by="label", cases={1: T.Invert()}), T.Cond(by="side", cases={"left": T.Solarize(200)})], p=1
    )
    columns = {"label": [0, 1, 2, 1], "side": ["left", "left", "", ""]}
    arrays = {name: np.array(column) for name, column in columns.items()}
    out = MapBatches(t)(batch(black, range(4), **arrays))["image"]
    assert out.max(axis=(1, 2, 3)).tolist() == [0, 0, 0, 255]
    given = pa.table({"image": [file(image) for image in black], "id": range(4), **columns})
    out = MapBatches(t, encode="png")(given)["image"].to_pylist()
    assert [decode(row).max() for row in out] == [0, 0, 0, 255]
    with pytest.raises(ValueError, match=r"Cond\(by='label'\) needs one value per row; .* arrays \[2\]"):
        MapBatches(T.Cond(by="label", cases={1: T.Invert()}), on_error="skip")(batch(label=np.zeros((8, 2))))


# -- bad images --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "error", "message"),
    [
        (
            np.zeros((8, 8, 3)),
            TypeError,
            r"id 7: got an image of dtype float64; accepted: uint8 or uint16\. Leave",
        ),
        ("cat.jpg", TypeError, "id 7: got str for an image; accepted"),
        (np.zeros((8, 8, 4), np.uint8), vg.DecodeError, r"id 7: got shape \(8, 8, 4\); accepted"),
        (None, vg.DecodeError, "id 7: no image: null"),
        (b"no image", vg.DecodeError, "id 7: not an image"),
        (JPEGS[0][:-200], vg.DecodeError, "id 7: truncated"),
    ],
)
def test_a_bad_image_is_named(image: Any, error: type[Exception], message: str) -> None:
    given = batch(objects([photo(), photo(), image, photo()]), IDS[:4])
    with pytest.raises(error, match=message):
        MapBatches(T.Invert())(given)
    if error is TypeError:  # not a matter of single images
        with pytest.raises(error, match=message):
            MapBatches(T.Invert(), on_error="skip")(given)


def test_bad_images_are_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    files: list[bytes | None] = [*JPEGS]
    files[1], files[4], files[6] = None, b"no image", JPEGS[6][:-200]
    given = table(files, label=range(8))
    good = [0, 2, 3, 5, 7]
    expected = vg.Augmenter(CROP, layout="NHWC").decode_and_run([JPEGS[i] for i in good], ids=good).numpy()
    for rows in ([8], [4, 4], [1] * 8):
        caplog.clear()
        parts = [given.slice(sum(rows[:i]), count) for i, count in enumerate(rows)]
        out = pa.concat_tables([MapBatches(CROP, encode="png", on_error="skip")(part) for part in parts])
        assert out["label"].to_pylist() == good
        np.testing.assert_array_equal([decode(row) for row in out["image"].to_pylist()], expected)
        assert [record.levelno for record in caplog.records] == [logging.WARNING] * 3
        messages = sorted(record.getMessage() for record in caplog.records)
        assert messages[0].startswith("skipped: id 1: no image: null")
        assert messages[1].startswith("skipped: id 4 (cat/4.jpg): not an image")
        assert messages[2].startswith("skipped: id 6 (cat/6.jpg): truncated")
    arrays = {"image": objects(files), "id": np.arange(8)}
    out = MapBatches(CROP, layout="NHWC", on_error="skip")(arrays)
    assert out["id"].tolist() == good
    np.testing.assert_array_equal(out["image"], expected)
    assert len(MapBatches(CROP, on_error="skip")({"image": objects([None, b""]), "id": np.arange(2)})["image"]) == 0


@pytest.mark.parametrize("as_files", [False, True])
def test_images_that_the_transform_does_not_take(as_files: bool, caplog: pytest.LogCaptureFixture) -> None:
    """RandomCrop refuses the small ones, in the copies in which it is drawn."""
    t = T.RandomApply([T.RandomCrop(33)], p=0.5)
    images = objects([file(image) for image in RAGGED] if as_files else RAGGED)  # heights 30 to 37
    refused = []
    for row in range(8):
        for copy in range(2):
            try:
                vg.Augmenter(t)([RAGGED[row]], ids=[row], copy=copy)
            except ValueError:
                refused.append((row, copy))
    assert 0 < len(refused) < 6
    out = MapBatches(t, copies=2, on_error="skip")({"image": images, "id": np.arange(8)})
    made = list(zip(out["id"].tolist(), out["copy"].tolist(), strict=True))
    assert made == [(row, copy) for row in range(8) for copy in range(2) if (row, copy) not in refused]
    for (row, copy), image in zip(made, out["image"], strict=True):
        np.testing.assert_array_equal(image, vg.Augmenter(t)([RAGGED[row]], ids=[row], copy=copy)[0].numpy())
    logged = [record.getMessage() for record in caplog.records]
    expected = [f"skipped (copy {copy}): id {row}: not taken by the transform" for row, copy in refused]
    assert sorted(line[: line.index(": RandomCrop")] for line in logged) == sorted(expected)
    row = min(row for row, copy in refused if copy == min(copy for _, copy in refused))
    with pytest.raises(vg.DecodeError, match=f"id {row}: not taken by the transform: RandomCrop"):
        MapBatches(t, copies=2)({"image": images, "id": np.arange(8)})


# -- image files -------------------------------------------------------------------------------------------------------


def decode(row: dict[str, Any]) -> Any:
    return np.asarray(Image.open(io.BytesIO(row["bytes"])))


def test_files_hold_the_pixels() -> None:
    expected = vg.Augmenter(NOISE, layout="NHWC")(RAGGED, ids=IDS)
    out = MapBatches(NOISE, encode="png")(batch(objects(RAGGED)))["image"]
    for row, pixels in zip(out, expected, strict=True):
        np.testing.assert_array_equal(decode(row), pixels.numpy())
    small, large = (MapBatches(NOISE, encode="jpg", quality=quality)(batch())["image"][0] for quality in (30, 95))
    assert len(small["bytes"]) < len(large["bytes"])
    assert Image.open(io.BytesIO(small["bytes"])).format == "JPEG"
    assert decode(MapBatches(CROP, encode="webp")(batch(objects([gray()]), [0]))["image"][0]).shape[:2] == (24, 24)


def test_files_keep_their_names() -> None:
    def paths(out: Any) -> list[str]:
        return [row["path"] for row in out]

    assert paths(MapBatches(CROP, encode="png")(table())["image"].to_pylist())[:2] == ["cat/0.png", "cat/1.png"]
    names = paths(MapBatches(CROP, encode="webp", copies=2)(table())["image"].to_pylist())
    assert names[:3] == ["cat/0_0.webp", "cat/0_1.webp", "cat/1_0.webp"]
    assert paths(MapBatches(CROP, encode="png")(batch())["image"])[:2] == ["5.png", "0.png"]
    by_path = {"image": np.stack(SAME[:2]), "path": objects(["v1.2/a.b.jpg", ".hidden"])}
    assert paths(MapBatches(CROP, id="path", encode="jpg")(by_path)["image"]) == ["v1.2/a.b.jpg", ".hidden.jpg"]


def test_files_hold_bytes() -> None:
    with pytest.raises(ValueError, match="encode: got float32 pixels, as the transform ends in Normalize; accepted"):
        MapBatches(POLICY, encode="jpg", on_error="skip")(batch())


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on_error": "replace"}, "on_error: got 'replace'; accepted: one of 'raise', 'skip'"),
        (
            {"encode": "jpeg"},
            "encode: got 'jpeg'; accepted: one of 'jpg', 'png', 'webp', 'tif', 'npy'; did",
        ),
        ({"encode": "jpg", "quality": 0}, "quality: got 0; accepted: 1 to 100"),
        ({"epoch": -1}, "epoch: got -1; accepted: an integer from 0 on"),
        ({"copies": 0}, "copies: got 0; accepted: an integer from 1 on"),
        ({"dtype": "bfloat16"}, "dtype: got 'bfloat16', which NumPy does not have; accepted: 'float32', 'float16'"),
        ({"layout": "CHW", "device": "cuda"}, "layout: got 'CHW'; accepted"),
        ({"device": "gpu"}, "device: got 'gpu'; accepted: 'cpu'"),
        ({"seed": -1}, "seed: got -1; accepted"),
    ],
)
def test_bad_arguments_are_refused_before_there_is_a_worker(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MapBatches(CROP, **arguments)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_a_gpu_is_looked_for_by_the_worker() -> None:
    map_batches = pickle.loads(pickle.dumps(MapBatches(CROP, device="cuda")))
    with pytest.raises(ValueError, match="device: got 'cuda', but"):
        map_batches(batch())
    np.testing.assert_array_equal(MapBatches(CROP, device="auto")(batch())["image"], MapBatches(CROP)(batch())["image"])


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    for images in (np.stack(SAME), objects(RAGGED), objects(JPEGS)):
        out = MapBatches(POLICY, device="cuda", copies=2)(batch(images))["image"]
        assert out.dtype == np.float32
        run = vg.Augmenter(POLICY, device="cuda")
        for copy in range(2):
            expected = (run.decode_and_run if images[0] is JPEGS[0] else run)(list(images), ids=IDS, copy=copy)
            np.testing.assert_array_equal(out[copy::2], expected.cpu().numpy())


# -- Ray ---------------------------------------------------------------------------------------------------------------


GOOD = [0, 1, 3, 4, 5, 6, 7]


def on_ray(test: Any) -> Any:
    return pytest.mark.process(pytest.mark.xdist_group("ray")(test))


class Made(NamedTuple):
    """``results``: what ``ray_pipelines.run`` gave; the rest is in ``folder``. ``logs``: of Ray's workers."""

    folder: Path
    results: dict[str, Any]
    logs: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Made:
    """Of eight photos."""
    told = one_ray(request.config)
    from tests.interop.ray_pipelines import run

    folder = tmp_path_factory.mktemp("ray")
    (folder / "photos").mkdir()
    for i, image in enumerate(RAGGED):
        (folder / "photos" / f"{i}.png").write_bytes(file(image))
    files = [*JPEGS]
    files[2] = b"no image"
    pq.write_table(table(files, label=LABELS), folder / "files.parquet", row_group_size=3)
    return Made(folder, run(folder), Path(told["session_dir"]) / "logs")


@on_ray
def test_tasks_from_parquet_to_parquet_in_small_batches(made: Made) -> None:
    rows = pq.read_table(made.folder / "written").to_pylist()
    expected = [
        vg.Augmenter(CROP, layout="NHWC").decode_and_run(JPEGS, ids=range(8), copy=copy).numpy() for copy in (0, 1)
    ]
    assert sorted((row["id"], row["copy"]) for row in rows) == [(id, copy) for id in GOOD for copy in (0, 1)]
    for row in rows:
        np.testing.assert_array_equal(decode(row["image"]), expected[row["copy"]][row["id"]])
    logs = [path.read_text(errors="replace") for path in made.logs.glob("worker-*.err")]
    assert any("skipped: id 2 (cat/2.jpg): not an image" in log for log in logs)
    source = vg.open_source(made.folder / "written", classes=["a", "b", "c"])
    assert sorted(source.read(i).label for i in range(len(source))) == sorted([LABELS[id] for id in GOOD] * 2)


@on_ray
def test_an_actor_in_one_batch(made: Made) -> None:
    expected = vg.Augmenter(POLICY, seed=3).decode_and_run(JPEGS, ids=range(8), epoch=2).numpy()
    assert sorted(made.results["actor"]) == GOOD
    for id, row in made.results["actor"].items():
        np.testing.assert_array_equal(row["image"], expected[id])
        assert row["label"] == LABELS[id]


@on_ray
def test_images_that_ray_read(made: Made) -> None:
    t = T.Compose([T.RandomHorizontalFlip(), T.GaussianNoise(sigma=0.1)])
    assert len(made.results["images"]) == 8
    for path, row in made.results["images"].items():
        image = RAGGED[int(Path(path).stem)]
        np.testing.assert_array_equal(row["image"], vg.Augmenter(t, seed=4)([image], ids=[id_of(path)])[0].numpy())


@on_ray
def test_errors_reach_the_driver(made: Made) -> None:
    assert "DecodeError: id 2 (cat/2.jpg): not an image" in made.results["error"]


@on_ray
def test_rays_row_hash_stays_with_its_row(made: Made) -> None:
    """What errors and docs/ray.md recommend for tables without ids."""
    written = {row["id"]: row["row_hash"] for row in pq.read_table(made.folder / "written").to_pylist()}
    assert written == {id: row["row_hash"] for id, row in made.results["actor"].items()}
    assert len(set(written.values())) == 7


# -- what passes through -----------------------------------------------------------------------------------------------


def _masks() -> Any:
    return np.zeros((8, 32, 40), np.uint8)


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        (
            "annotation",
            _masks(),
            r"batch\['annotation'\]: got an array uint8\[32, 40\] of the image's height and width",
        ),
        ("boxes", objects([[[1, 2, 3, 4]]] * 8), r"batch\['boxes'\]: got 1 boxes"),
        ("objects", objects([None, *[{"bbox": [[1, 2, 3, 4]]}] * 7]), r"batch\['objects'\]\['bbox'\]: got 1 boxes"),
        ("mask", objects(["a.png"] * 8), r"batch\['mask'\]: got a str"),
    ],
)
def test_columns_that_would_no_longer_fit_are_refused(name: str, column: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        MapBatches(CROP)(batch(**{name: column}))
    out = MapBatches(CROP, untouched=[name])(batch(**{name: column}))
    assert out[name] is column


def test_columns_of_a_table_are_refused_too() -> None:
    masks = pa.array([{"bytes": data, "path": None} for data in JPEGS], FILES)
    with pytest.raises(TypeError, match=r"batch\['second'\]: got an image file"):
        MapBatches(CROP)(table(second=masks))
    boxes = pa.array([[[1.0, 2.0, 3.0, 4.0]]] * 8)
    with pytest.raises(TypeError, match=r"batch\['objects'\]: got 1 boxes; accepted: labels, ids, names and numbers"):
        MapBatches(CROP)(table(objects=boxes))
    assert MapBatches(CROP)(table(label=LABELS, name=["mask"] * 8)).column("label").to_pylist() == LABELS
    with pytest.raises(TypeError, match=r"untouched: got 'boxes'; accepted: a list of names of columns"):
        MapBatches(CROP, untouched="boxes")
