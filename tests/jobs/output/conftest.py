"""Storages of every kind, empty before and after; and a cache folder of its own for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tests.jobs.output.file_server import FileServer
from variegate.data.storage import Storage, open_storage


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("VARIEGATE_CACHE", str(folder))
    return folder


@pytest.fixture
def remote() -> Iterator[None]:
    """What is in memory of this process alone, under memory:// and shelf://."""
    _empty()
    yield
    _empty()


def _empty() -> None:
    for system in (MemoryFileSystem, FileServer):
        system.store.clear()
        system.pseudo_dirs[:] = [""]


@pytest.fixture(params=["local", "memory", "shelf"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, remote: None) -> Storage:
    """A folder that is not there yet: on this machine, in an object store, on a file server."""
    return open_storage(tmp_path / "out" if request.param == "local" else f"{request.param}://bucket/out")
