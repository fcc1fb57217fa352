"""Caches: later epochs do not decode, pixels do not depend on what is held, damage is noticed."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.children import run_python
from tests.images import photo
from tests.loader.loading import CROPPED, load, pixels
from tests.loader.samples import MemorySource, jpeg
from variegate.decode import read_image
from variegate.io.lock import FileLock
from variegate.loader import cache as disk_cache
from variegate.loader.cache import DiskCache, NodeCache
from variegate.loader.reading import decode_picture


def cached(where: Any, number: int = 9, transform: Any = CROPPED, **options: Any) -> tuple[Any, MemorySource]:
    source = MemorySource(number)
    # Nothing is read ahead, so that reads can be counted.
    return load(source, transform, cache=where, **({"prefetch": 0} | options)), source


@pytest.mark.parametrize("kind", ["host", "device", "disk"])
def test_later_epochs_read_nothing(kind: str, tmp_path: Path) -> None:
    loader, source = cached(tmp_path if kind == "disk" else kind)
    first = pixels(loader)
    assert sorted(source.reads) == list(range(9))
    pixels(loader)
    assert len(source.reads) == 9
    loader.set_epoch(0)
    assert pixels(loader) == first
    assert loader.cache is not None
    assert loader.cache.nbytes == sum(read_image(jpeg(i)).nbytes for i in range(9))


@pytest.mark.parametrize("kind", ["host", "disk"])
@pytest.mark.parametrize("side", [None, 30])
def test_pixels_do_not_depend_on_what_there_is_room_for(kind: str, side: int | None, tmp_path: Path) -> None:
    found = []
    for budget in (1, 20_000, None):
        loader, _ = cached(tmp_path / str(budget) if kind == "disk" else kind, cache_bytes=budget, cache_side=side)
        found.append([pixels(loader), pixels(loader)])
        assert loader.cache is not None
        assert budget is None or loader.cache.nbytes <= budget
    assert found[0] == found[1] == found[2]


def test_a_cache_holds_whole_pictures_with_their_labels() -> None:
    loader, _ = cached("host", transform=None)
    for _ in range(2):
        for batch in loader:
            for sample_id, image, label in zip(batch.ids.tolist(), batch.images, batch.labels, strict=True):
                np.testing.assert_array_equal(image.numpy().transpose(1, 2, 0), read_image(jpeg(sample_id - 1000)))
                assert label == (sample_id - 1000) % 2


@pytest.mark.process
def test_a_second_process_reads_what_the_first_one_left(tmp_path: Path) -> None:
    program = (
        "from tests.loader.test_cache import *\n"
        f"loader, source = cached({str(tmp_path)!r}); pixels(loader); print(len(source.reads))"
    )
    assert [run_python(program).stdout for _ in range(2)] == ["9\n", "0\n"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files as Linux lists them")
def test_what_another_process_adds_again_and_again_opens_a_file_once(tmp_path: Path) -> None:
    writer, reader = (DiskCache(tmp_path, "a") for _ in range(2))
    counts = []
    for number in range(20):
        writer.put(number, photo(4, 5), number)
        reader.use_added()
        assert reader.get(number) is not None
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[-1] == counts[0]


def test_pixels_that_a_data_set_decodes_are_cached_and_reduced() -> None:
    asked: list[int] = []

    class Photos:
        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> Any:
            asked.append(index)
            return Image.fromarray(photo(60, 80)), index

    loader = load(Photos(), None, cache="host", cache_side=30, prefetch=0)
    for _ in range(3):
        assert {tuple(batch.images.shape[2:]) for batch in loader} == {(30, 40)}
    assert sorted(asked) == list(range(6))
    assert loader.cache is not None
    assert loader.cache.nbytes == 6 * 30 * 40 * 3


def test_pixels_in_memory_are_not_kept_twice() -> None:
    images = np.stack([photo(20, 30)] * 5)
    loader = load((images, np.arange(5)), None, cache="host")
    list(loader)
    assert loader.cache is not None
    assert loader.cache.nbytes == 0


def test_the_processes_of_a_machine_share_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.loader.cache.available_memory", lambda: 2 * 8 * 10_000)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    loader, _ = cached("host", number=40)
    list(loader)
    assert loader.cache is not None
    assert 0 < loader.cache.nbytes <= 10_000


def test_another_data_set_or_side_makes_a_folder_of_its_own(tmp_path: Path) -> None:
    others: list[dict[str, Any]] = [{}, {"number": 5}, {"cache_side": 20}]
    others += [{"depth": "uint16"}, {"depth": "float32"}, {"channels": 3}]
    for options in others:
        loader, source = cached(tmp_path, **options)
        pixels(loader)
        assert len(set(source.reads)) == options.get("number", 9)
    assert len(list(tmp_path.iterdir())) == len(others)


def filled(folder: Path, number: int = 4) -> dict[int, Any]:
    cache = DiskCache(folder, "key")
    for index in range(number):
        cache.put(index, photo(20, 10 + index), index)
    return {index: photo(20, 10 + index) for index in range(number)}


def parts(folder: Path, suffix: str) -> Path:
    return next(folder.glob(f"*/*.{suffix}"))


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_disk_cache_gives_back_what_it_got(tmp_path: Path, kind: Any) -> None:
    expected: dict[int, Any] = filled(tmp_path)
    expected[5] = (np.random.default_rng(1).random((7, 8, 3)) * 255).astype(kind)
    DiskCache(tmp_path, "key").put(5, expected[5], 5)
    cache = DiskCache(tmp_path, "key")
    cache.put(9, photo(5, 6), 0.25)
    for index, picture in expected.items():
        found = cache.get(index)
        assert found is not None
        np.testing.assert_array_equal(found[0], picture)
        assert found[0].dtype == picture.dtype
        assert found[1] == index
    found = cache.get(9)
    assert found is not None
    assert found[1] == 0.25
    assert cache.get(77) is None


@pytest.mark.parametrize("cut", [0, 1, 51, 52, 53, 103, 190])
def test_an_index_cut_off_anywhere_keeps_its_whole_records(cut: int, tmp_path: Path) -> None:
    expected = filled(tmp_path)
    index = parts(tmp_path, "index")
    record = index.stat().st_size // 4
    os.truncate(index, cut)
    cache = DiskCache(tmp_path, "key")
    assert len(cache) == cut // record
    for number in range(len(cache)):
        found = cache.get(number)
        assert found is not None
        np.testing.assert_array_equal(found[0], expected[number])


def test_pixels_that_are_missing_or_wrong_are_not_believed(tmp_path: Path) -> None:
    filled(tmp_path)
    data = parts(tmp_path, "pixels")
    content = bytearray(data.read_bytes())
    content[700] ^= 1  # of picture 1
    data.write_bytes(content[:-1])  # of picture 3
    cache = DiskCache(tmp_path, "key")
    assert [cache.get(index) is not None for index in range(4)] == [True, False, True, False]


def test_a_record_with_one_flipped_bit_is_as_good_as_none(tmp_path: Path) -> None:
    expected = filled(tmp_path)
    index = parts(tmp_path, "index")
    content = index.read_bytes()
    for bit in range(len(content) // 4 * 8):  # of the first record
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        index.write_bytes(changed)
        cache = DiskCache(tmp_path, "key")
        assert cache.get(0) is None, f"bit {bit}"
        for number in range(1, 4):
            found = cache.get(number)
            assert found is None or (found[0] == expected[number]).all()
    assert found is not None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("offset", 1 << 63),
        ("offset", (1 << 64) - 1),
        ("offset", 1 << 40),
        ("height", (1 << 32) - 1),
        ("height", 0),
        ("channels", 2),
        ("depth", 2),
        ("depth", 3),
    ],
)
def test_records_of_no_picture_are_none_whatever_their_checksum(field: str, value: int, tmp_path: Path) -> None:
    filled(tmp_path)
    index = parts(tmp_path, "index")
    records = np.frombuffer(index.read_bytes(), disk_cache._RECORD).copy()
    records[field][0] = value
    index.write_bytes(records.tobytes())
    cache = DiskCache(tmp_path, "key")
    assert [cache.get(number) is not None for number in range(4)] == [False, True, True, True]


def test_disk_cache_within_its_budget_over_several_runs(tmp_path: Path) -> None:
    size = photo(20, 20).nbytes
    for run in range(3):
        cache = DiskCache(tmp_path, "key", max_bytes=2 * size)
        for index in range(4):
            cache.put(10 * run + index, photo(20, 20), 0)
        assert cache.nbytes == 2 * size


def test_a_full_disk_ends_caching_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    loader, source = cached(tmp_path)
    with pytest.warns(UserWarning, match="No space left on device; nothing more is cached in this run"):
        assert len(pixels(loader)) == 9
    assert len(pixels(loader)) == 9
    assert len(source.reads) == 18


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cache: .*file/deeper: cannot be made .*accepted: a folder to write to"):
        cached(tmp_path / "file" / "deeper")


def test_labels_that_a_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cache: got a label of type ndarray; a cache on disk accepts integers"):
        DiskCache(tmp_path, "key").put(0, photo(5, 5), np.zeros(3))


@pytest.mark.parametrize("side", [24, 30, 40, 47])
@pytest.mark.parametrize("index", [4, 5])  # a PNG and a JPEG
def test_reduced_pictures_have_the_shorter_side_and_look_the_same(side: int, index: int) -> None:
    whole = read_image(jpeg(index))
    reduced = decode_picture(jpeg(index), "name", side, None)
    height, width = whole.shape[:2]
    if side >= min(height, width):
        np.testing.assert_array_equal(reduced, whole)
        return
    assert min(reduced.shape[:2]) == side
    assert reduced.shape[0] / reduced.shape[1] == pytest.approx(height / width, rel=0.03)
    plain = np.asarray(Image.fromarray(whole).resize(reduced.shape[1::-1], Image.Resampling.BILINEAR))
    # A DCT scale before the resize is another low-pass filter than the resize alone.
    assert np.abs(plain.astype(int) - reduced).mean() < 3.0


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("disk", r"'disk'; accepted: 'host', 'device', None, or a folder to keep pixels on disk, such as './disk'$"),
        ("hots", r"such as './hots'; did you mean 'host'\?$"),
        ("Device", r"such as './Device'; did you mean 'device'\?$"),
        ("s3://bucket/pixels", "or a folder to keep pixels on disk, of this machine$"),
    ],
)
def test_a_word_that_is_none_of_the_caches_makes_no_folder(
    where: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=rf"^cache: got .*{told}"):
        cached(where)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["./disk", "a/disk", "~/disk", Path("disk")])
def test_what_looks_like_a_path_is_a_folder(where: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    cached(where)
    assert [path.parent.name for path in tmp_path.rglob("pixels-*")] == ["disk"]
    assert not (tmp_path / "~").exists()


needs_memory = pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no /dev/shm")


@needs_memory
def test_a_shared_cache_removes_no_folder_but_those_of_unused_caches() -> None:
    """With TMPDIR=/dev/shm, other folders lie beside those of caches."""
    user = os.getuid()
    others = [Path(tempfile.mkdtemp(prefix=prefix, dir="/dev/shm")) for prefix in (f"variegate-{user}-", "variegate-")]
    try:
        name = f"test-{os.getpid()}"
        cache = NodeCache(name, "key", 1000)
        assert all(other.is_dir() for other in others)
        folder = cache._root.parent
        assert folder.is_dir()
        del cache
        assert not folder.exists()
    finally:
        for other in others:
            other.rmdir()


@needs_memory
def test_a_shared_cache_that_begins_is_not_taken_for_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another begins between the first step of a cache and its lock."""
    name = f"test-{os.getpid()}"
    removed: list[str] = []
    threads: list[threading.Thread] = []
    remove = shutil.rmtree
    acquire = FileLock.acquire

    def remove_and_note(path: Path, **options: Any) -> None:
        removed.append(path.name)
        remove(path, **options)

    def begin_another_first(lock: FileLock, *given: Any) -> None:
        if f"{name}/" in lock.path and not threads:
            threads.append(threading.Thread(target=NodeCache, args=(f"other-{name}", "key", 1000)))
            threads[0].start()
            threads[0].join(0.3)
        acquire(lock, *given)

    monkeypatch.setattr(shutil, "rmtree", remove_and_note)
    monkeypatch.setattr(FileLock, "acquire", begin_another_first)
    cache = NodeCache(name, "key", 1000)
    threads[0].join()
    assert not any(folder.endswith(name) and not folder.startswith("other") for folder in removed)
    assert cache._root.is_dir()
