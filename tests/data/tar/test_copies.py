"""Local copies of remote shards: seen when they are complete, bounded, renewed when the shard changes."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import variegate as vg
from tests.data.tars import encoded, labelled, read_all, tar_bytes, write_tar
from tests.data.web import serving
from variegate.data.base import SourceError
from variegate.data.reading import version_of
from variegate.data.tar.copies import ShardCopies
from variegate.io.location import Location
from variegate.io.lock import exclusive_lock

SAMPLES = 8


def put_shards(memory: Any, number: int) -> list[Location]:
    for shard in range(number):
        memory.pipe(f"/s/{shard}.tar", tar_bytes(labelled(SAMPLES, SAMPLES * shard)))
    return [Location.parse(f"memory://s/{shard}.tar") for shard in range(number)]


def names(folder: Path) -> list[str]:
    return sorted(path.name.partition("-")[2] for path in (folder / "shards").glob("[!.]*"))


def test_only_the_least_recently_used_are_removed(memory: Any, cache: Path) -> None:
    shards = put_shards(memory, 4)
    size = version_of(shards[0]).size
    copies = ShardCopies(limit=3 * size)
    for number, shard in enumerate((*shards[:3], shards[0], shards[3])):
        copies.fetch(shard, version_of(shard))
        for copy in (cache / "shards").glob(f"*-{shard.name}"):
            os.utime(copy, (number, number))
    assert names(cache) == ["0.tar", "2.tar", "3.tar"]
    with pytest.raises(SourceError, match=rf"0\.tar: cache_limit={size - 1:,} has no room for it; accepted: more than"):
        ShardCopies(cache / "small", size - 1).fetch(shards[0], version_of(shards[0]))


def test_a_shard_that_was_replaced_is_fetched_again(memory: Any, cache: Path) -> None:
    (shard,) = put_shards(memory, 1)
    assert read_all(vg.open_source(shard))[0] == (encoded(0), 0)
    memory.pipe("/s/0.tar", tar_bytes(labelled(SAMPLES, 3)))
    for stream in (False, True):
        assert read_all(vg.open_source(shard, stream=stream))[0] == (encoded(3), 3)


def test_the_limit_holds_while_many_read(cache: Path) -> None:
    """Readers of more shards than there is room for, each of them right, and never more bytes than allowed."""
    files = {f"{shard}.tar": tar_bytes(labelled(SAMPLES, SAMPLES * shard)) for shard in range(6)}
    limit = 2 * max(map(len, files.values())) + 100
    folder = cache / "shards"
    is_done = Event()
    most = 0

    def watch() -> None:
        nonlocal most
        while not is_done.is_set():
            # Copies grow, get their names and go under this lock.
            with suppress(FileNotFoundError), exclusive_lock(folder / ".lock"):
                there = [entry for entry in os.scandir(folder) if not entry.name.endswith(".lock")]
                most = max(most, sum(entry.stat().st_size for entry in there))
            time.sleep(0.001)

    # Not memory://, whose readers of a file share one place in it.
    with serving(files) as (address, _):
        place = f"{address}/{{0..5}}.tar"
        source = vg.open_source(place, cache_limit=limit)

        def read(number: int) -> bool:
            shard = number % len(files)
            index = shard << 32 | number % SAMPLES
            reader = vg.open_source(place, cache_limit=limit) if number % 7 == 0 else source
            expected = shard * SAMPLES + number % SAMPLES
            return reader.read(index) == (encoded(expected % 8), expected % 10)

        watcher = Thread(target=watch)
        watcher.start()
        try:
            with ThreadPoolExecutor(8) as pool:
                assert all(pool.map(read, range(200)))
        finally:
            is_done.set()
            watcher.join()
    assert 0 < most <= limit
    assert not list(cache.rglob("*.part"))
    assert not list(folder.glob("*-*.lock"))


FETCH = """
import sys
from variegate.data.reading import version_of
from variegate.data.tar.copies import ShardCopies
from variegate.io.location import Location
from variegate.io.lock import exclusive_lock
shard = Location.parse(sys.argv[1])
ShardCopies().fetch(shard, version_of(shard))
"""


def start_fetching(address: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", FETCH, address])


@pytest.mark.process
def test_a_killed_download_leaves_nothing_to_be_seen(cache: Path) -> None:
    data = tar_bytes([(f"{i}.jpg", os.urandom(200_000)) for i in range(60)])
    with serving({"a.tar": data}) as (address, _):
        child = start_fetching(f"{address}/stalled/a.tar")
        deadline = time.monotonic() + 60
        while not (parts := list(cache.rglob("*.part"))) or parts[0].stat().st_size == 0:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert names(cache) == []
        (part,) = cache.rglob("*.part")
        shard = Location.parse(f"{address}/a.tar")
        ShardCopies().fetch(shard, version_of(shard))
        assert part.exists(), "it may be of a download that is running"
        long_ago = time.time() - 1000
        os.utime(part, (long_ago, long_ago))
        other = Location.parse(f"{address}/whole/a.tar")
        ShardCopies().fetch(other, version_of(other))
        assert not part.exists()
        assert names(cache) == ["a.tar", "a.tar"]


@pytest.mark.process
def test_processes_download_a_shard_once(cache: Path) -> None:
    with serving({"a.tar": tar_bytes([(f"{i}.jpg", os.urandom(200_000)) for i in range(30)])}) as (address, requests):
        children = [start_fetching(f"{address}/a.tar") for _ in range(3)]
        assert [child.wait() for child in children] == [0, 0, 0]
        assert requests.count("GET /a.tar") == 1
    assert names(cache) == ["a.tar"]


def test_indexes_beside_remote_shards_tell_the_counts(tmp_path: Path, cache: Path) -> None:
    shards = [write_tar(tmp_path / f"{number}.tar", labelled(5 + number)) for number in range(3)]
    vg.open_source(shards)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with serving(files) as (address, requests):
        source = vg.open_source(f"{address}/{{0..2}}.tar")
        assert source.count() == 18
        assert not any(request.startswith("GET") and request.endswith(".tar") for request in requests)
        assert len(read_all(source)) == 18
        # What does not fit the shard is not believed.
        files["0.tar"] = tar_bytes(labelled(9))
        changed = vg.open_source(f"{address}/0.tar")
        assert changed.count() is None
        assert len(read_all(changed)) == 9
        assert changed.count() == 9
        files["1.tar.index"] = bytes(len(files["1.tar"]) + (2 << 20))
        files["1.tar"] = tar_bytes(labelled(40))
        assert vg.open_source(f"{address}/1.tar").count() is None


@pytest.mark.parametrize("kind", ["plain", "gzip"])
def test_a_server_that_does_not_report_sizes(kind: str, cache: Path) -> None:
    data = tar_bytes(labelled(5))
    with serving({"a.tar": gzip.compress(data) if kind == "gzip" else data}) as (address, requests):
        for stream in (False, True):
            source = vg.open_source(f"{address}/unsized/a.tar", stream=stream)
            assert read_all(source) == [(encoded(i), i) for i in range(5)]
        for copy in (cache / "shards").iterdir():
            copy.unlink()
        requests.clear()
        assert source.read(0) == (encoded(0), 0)
        assert not any("bytes=" in request for request in requests), "of such a file, no range is asked for"
