"""One image on several devices: the pixels of one ``Augmenter``, from and to arrays and files, whatever goes wrong."""

from __future__ import annotations

import errno
import gc
import os
import signal
import time
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

import variegate as vg
from tests.children import run_python, start_python
from tests.images import gray, noise, photo
from tests.jobs.odd_files import DeadlyImage
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.jobs.mapping import MapSpec
from variegate.jobs.regions import reading, writing
from variegate.jobs.regions.run import ImageRun, pixel_file
from variegate.jobs.regions.worker import BandJob
from variegate.workers import devices
from variegate.workers.protocol import EngineError

# It needs Python 3.11.
zarr: Any = pytest.importorskip("zarr")

CHAIN = T.Compose([T.RandAugment(2, 9), T.Equalize(), T.GaussianBlur(5), T.GaussianNoise(), T.Contrast(1.3)])
FLOATS = T.Compose([CHAIN, T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)])


def threads(transform: Any = CHAIN, **options: Any) -> vg.Engine:
    return vg.Engine(["cpu:0", "cpu:1"], "thread", transform=transform, **{"seed": 4, "num_threads": 1, **options})


def whole(image: Any, transform: Any = CHAIN, id: int = 3, **options: Any) -> Any:
    return vg.Augmenter(transform, device="cpu", **{"seed": 4, **options})([image], ids=[id])[0].numpy()


def written(image: Any, folder: Path, kind: str) -> Path:
    """The image as a file."""
    path = folder / f"source.{kind}"
    if kind == "npy":
        np.save(path, image)
    elif kind == "zarr":
        zarr.create_array(str(path), shape=image.shape, chunks=(30, 50, image.shape[2]), dtype="u1")[:] = image
    elif kind.endswith("strips.tif"):
        compression = "zlib" if kind == "deflated strips.tif" else None
        tifffile.imwrite(path, image, rowsperstrip=7, photometric="rgb", compression=compression)
    else:
        tifffile.imwrite(path, image, tile=(32, 48), photometric="rgb", compression="zlib", predictor=True)
    return path


def read(path: Path) -> Any:
    if path.suffix == ".npy":
        return np.load(path)
    return zarr.open_array(str(path), mode="r")[:] if path.suffix == ".zarr" else tifffile.imread(path)


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_an_array_comes_back_as_an_array(layout: Any, num_threads: int) -> None:
    for image in (photo(170, 230), gray(170, 230)):
        for transform in (CHAIN, FLOATS):
            made = threads(transform, layout=layout, num_threads=num_threads).map_image(image, tile=64, id=3)
            np.testing.assert_array_equal(made, whole(image, transform, layout=layout))


def test_two_axes_are_a_gray_image_and_floats_may_be_half_as_long() -> None:
    image = gray(90, 70)
    made = threads(FLOATS, dtype="float16").map_image(image[..., 0], tile=33, id=3)
    np.testing.assert_array_equal(made, whole(image, FLOATS, dtype="float16"))
    assert made.dtype == np.float16


@pytest.mark.parametrize("kind", ["npy", "tiff", "strips.tif", "deflated strips.tif", "zarr"])
def test_files_of_every_kind(kind: str, tmp_path: Path) -> None:
    image = photo(170, 230)
    source, result = written(image, tmp_path, kind), tmp_path / f"result.{kind.rpartition('.')[2]}"
    assert threads().map_image(source, out=result, tile=48, id=3) is None
    np.testing.assert_array_equal(read(result), whole(image, layout="NHWC"))
    assert {path.name for path in tmp_path.iterdir()} == {source.name, result.name}


@pytest.mark.parametrize("kind", ["npy", "tif", "zarr"])
def test_floats_in_files_have_their_channels_last(kind: str, tmp_path: Path) -> None:
    result = tmp_path / f"result.{kind}"
    result_before = np.zeros((2, 2), np.uint8)
    if kind == "npy":
        np.save(result, result_before)  # is replaced
    threads(FLOATS).map_image(photo(90, 110), out=result, tile=32, id=3)
    np.testing.assert_array_equal(read(result), whole(photo(90, 110), FLOATS, layout="NHWC"))


def test_a_large_image_is_many_tasks() -> None:
    """Whatever the tile is, as long as there are lines enough."""
    work = MapSpec(T.Invert(), 4, "float32", "NHWC", "composed")
    assert ImageRun(threads(), work, pixel_file(noise(3000, 30)), tile=16_384).total > 60
    assert ImageRun(threads(), work, pixel_file(noise(8, 90))).total == 1


def test_a_mapped_file_is_read_by_its_name(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", photo(90, 110))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    np.testing.assert_array_equal(threads().map_image(mapped, tile=40, id=3), whole(photo(90, 110)))
    np.testing.assert_array_equal(threads().map_image(mapped[5:, 7:], tile=40, id=3), whole(photo(90, 110)[5:, 7:]))


def test_the_epoch_the_copy_and_conditions_count() -> None:
    transform = T.Compose([T.Cond("label", {3: T.Invert()}), T.RandAugment(2, 9)])
    expected = vg.Augmenter(transform, device="cpu", seed=4)([photo()], [3], 2, 5, {"label": [3]})[0].numpy()
    made = threads(transform).map_image(photo(), tile=30, id=3, epoch=2, copy=5, conditions={"label": 3})
    np.testing.assert_array_equal(made, expected)


@pytest.mark.process
def test_memory_is_bounded_by_tiles(tmp_path: Path) -> None:
    """A picture of 300 MB, in a process that takes less than half as much more than it had to begin with."""
    program = """
import sys
import numpy as np, variegate as vg
from variegate import transforms as T
def anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) << 10
path, out = sys.argv[1:]
with open(path, "wb") as file:
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (5000, 20000, 3)})
    begin = file.tell(); file.truncate(begin + 300_000_000)
engine = vg.Engine(["cpu:0", "cpu:1"], "thread", num_threads=1)
transform = T.Compose([T.Rotate((45, 45), interpolation="bilinear"), T.Resize(300)])
engine.map_image(np.zeros((300, 300, 3), np.uint8), transform)
before = anonymous()
engine.map_image(path, transform, out)
print(anonymous() - before, np.load(out, mmap_mode="r").shape)
"""
    run = run_python(program, tmp_path / "in.npy", tmp_path / "out.npy")
    grown, shape = run.stdout.split(" ", 1)
    assert shape.strip() == "(300, 1200, 3)"
    assert int(grown) < 150_000_000


@pytest.mark.process
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    image = noise(400, 300)
    np.save(tmp_path / "a.npy", image)
    program = f"""
import os, time
import variegate as vg
from variegate import transforms as T
from variegate.jobs.regions.worker import BandJob
def slow(make):
    return lambda *of: (time.sleep(0.05), make(*of))[1]
BandJob._make = slow(BandJob._make)
engine = vg.Engine(["cpu:0", "cpu:1"], "thread", seed=4, num_threads=1)
engine.map_image({str(tmp_path / "a.npy")!r}, T.from_dict({CHAIN.to_dict()!r}), {str(tmp_path / "b.npy")!r}, 32, id=3)
"""
    done = tmp_path / ".b.npy.partial" / ".variegate" / "parts" / "bands"
    with start_python(program) as process:
        deadline = time.monotonic() + 50
        while (not done.exists() or done.read_bytes().count(b"\n") < 40) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "b.npy").exists()
    with done.open("ab") as log:
        log.write(b"7")  # torn off in the middle of a number
    made = done.read_bytes().split(b"\n")[1:-1]
    again: list[Any] = []
    kept = BandJob._make
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BandJob, "_make", lambda self, band: (again.append(band), kept(self, band))[1])
        threads().map_image(tmp_path / "a.npy", out=tmp_path / "b.npy", tile=32, id=3)
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), whole(image, layout="NHWC"))
    total = ImageRun(threads(), MapSpec(CHAIN, 4, "float32", "NHWC", "composed"), pixel_file(image), 3, tile=32).total
    assert 39 <= len(made) < total
    assert len(again) == total - len(made)
    assert {path.name for path in tmp_path.iterdir()} == {"a.npy", "b.npy"}


def test_another_run_s_part_is_not_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "a.npy", noise(100, 100))
    with monkeypatch.context() as patch:
        patch.setattr(writing.ResultFile, "finish", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            threads(T.Invert()).map_image(tmp_path / "a.npy", out=tmp_path / "b.npy", tile=32)
    assert (tmp_path / ".b.npy.partial").exists()
    threads().map_image(tmp_path / "a.npy", out=tmp_path / "b.npy", tile=32, id=3)
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), whole(noise(100, 100), layout="NHWC"))


def descriptors() -> int:
    """Open files of this process; one is multiprocessing's, from the first process on."""
    resource_tracker.ensure_running()
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.process
def test_a_lost_worker_s_tiles_are_made_again(tmp_path: Path) -> None:
    """Two processes, which load no torch; the first to come to the second row of tiles is killed."""
    mark, loads = tmp_path / "mark", tmp_path / "loads"
    mark.touch()
    np.save(tmp_path / "a.npy", photo(170, 230))
    image = DeadlyImage(reading.file_of(tmp_path / "a.npy"), str(mark), 64, str(loads))
    work = MapSpec(T.Invert(), 4, "float32", "NCHW", "composed")
    engine, before = vg.Engine(["cpu:0", "cpu:1"], "process", num_threads=1), descriptors()
    made = ImageRun(engine, work, image, tile=64).run()  # type: ignore[arg-type]
    assert not mark.exists()
    np.testing.assert_array_equal(made, whole(photo(170, 230), T.Invert()))
    opened = dict(line.split() for line in loads.read_text().splitlines())
    assert opened.pop(str(os.getpid())) == "True"
    assert set(opened.values()) == {"False"}
    del made
    gc.collect()
    assert descriptors() == before


@pytest.mark.process
def test_processes_share_the_image_and_the_result() -> None:
    """Every second column, so that it is no array that could be mapped as it is; and nothing is left of either."""
    image, before = photo(170, 460)[:, ::2], descriptors()
    engine = vg.Engine(["cpu:0"], "process", seed=4, num_threads=1)
    made = engine.map_image(image, FLOATS, tile=64, id=3)
    np.testing.assert_array_equal(made, whole(image, FLOATS))
    made[:] = 0  # it is the caller's own
    del made
    gc.collect()
    assert descriptors() == before


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_gpus_make_the_pixels_of_cpus(layout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them, in Triton's interpreter."""
    from tests.executors.poison import poisoned_executor
    from variegate.executors.cuda import executor

    on = {name: poisoned_executor("cpu", (32, 64)) for name in ("cuda:0", "cuda:1")}
    monkeypatch.setattr(executor, "executor_of", on.__getitem__)
    monkeypatch.setattr(devices, "resolve", str)
    transform = T.Compose([T.Rotate((20, 20), interpolation="bilinear"), T.Contrast(1.4), T.GaussianNoise()])
    gpus = vg.Engine(list(on), "thread", transform=transform, seed=4, layout=layout, num_threads=1)
    made = gpus.map_image(photo(60, 70), tile=32, id=3)
    np.testing.assert_array_equal(made, whole(photo(60, 70), transform, layout=layout))
    gpus.map_image(gray(40, 50), out=tmp_path / "a.npy", tile=32, id=3)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), whole(gray(40, 50), transform, layout="NHWC"))
    with pytest.raises(ValueError, match="CLAHE of an image in tiles runs on CPUs alone"):
        gpus.map_image(photo(60, 70), T.CLAHE())


def test_a_full_disk_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(EngineError, match="No space left on device"):
        threads().map_image(photo(90, 110), out=tmp_path / "a.tif", tile=32)
    assert not (tmp_path / "a.tif").exists()
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(EngineError, match=r"a\.npy: cannot be written .*No space left on device"):
        threads().map_image(photo(90, 110), out=tmp_path / "a.npy", tile=32)


def test_a_damaged_tile_is_named(tmp_path: Path) -> None:
    path = written(photo(170, 230), tmp_path, "tiff")
    with tifffile.TiffFile(path) as file:
        offset = file.pages[0].aspage().dataoffsets[7]
    with open(path, "r+b") as opened:
        opened.seek(offset)
        opened.write(b"\0" * 30)
    with pytest.raises(EngineError, match=r"source\.tiff: chunk in row 1, column 2: cannot be read"):
        threads(T.Invert()).map_image(path, tile=64)
    np.save(tmp_path / "a.npy", photo(50, 50))
    os.truncate(tmp_path / "a.npy", 3000)
    with pytest.raises(SourceError, match=r"a\.npy: cut off"):
        threads().map_image(tmp_path / "a.npy")


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "dtype": (np.zeros((9, 9, 3), np.float64), {}, r"image: got float64\[9, 9, 3\]; accepted: uint8"),
    "channels": (np.zeros((9, 9, 33), np.uint8), {}, r"image: got uint8\[9, 9, 33\]; accepted"),
    "first": (np.zeros((3, 9, 9), np.uint8), {}, "channels come last"),
    "tile": (photo(), {"tile": 0}, "tile: got 0; accepted"),
    "suffix": (photo(), {"out": "a.png"}, r"out: got 'a.png'; accepted: a name that ends in \.npy"),
    "multiple": (photo(), {"out": "a.tif", "tile": 100}, "tile: got 100 for a.tif; accepted: multiples of 16"),
    "folder": (photo(), {"out": "nowhere/a.npy"}, "its folder does not exist"),
    "missing": ("nowhere.npy", {}, "nowhere.npy: no such file"),
    "kind": ("photo.jpg", {}, r"photo.jpg: accepted: \.npy"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(name: str) -> None:
    image, options, said = REFUSED[name]
    with pytest.raises(ValueError, match=said):
        threads().map_image(image, **options)


def test_wrong_engines_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="bfloat16"):
        threads(FLOATS, dtype="bfloat16").map_image(photo())
    with pytest.raises(TypeError, match="image: got list; accepted"):
        threads().map_image([photo()])
    image = photo(50, 60)
    tifffile.imwrite(tmp_path / "b.tif", image.astype(np.uint32), tile=(16, 16), photometric="rgb")
    with pytest.raises(SourceError, match=r"b\.tif: got uint32"):
        threads().map_image(tmp_path / "b.tif")
    np.save(tmp_path / "c.npy", np.asfortranarray(image))
    with pytest.raises(SourceError, match="Fortran"):
        threads().map_image(tmp_path / "c.npy")
    (tmp_path / "d.zarr").mkdir()
    with pytest.raises(SourceError, match=r"d\.zarr: cannot be read"):
        threads().map_image(tmp_path / "d.zarr")
