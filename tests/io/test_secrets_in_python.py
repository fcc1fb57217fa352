"""Addresses with secrets given to classes and functions: in no message, no repr and nothing that lasts."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from PIL import Image

import variegate as vg
from tests.images import photo
from variegate.data.base import Source, SourceError
from variegate.data.opening import open_source
from variegate.data.reading import reason_for
from variegate.data.storage import WriteError, open_storage
from variegate.errors import DecodeError, PolicyError
from variegate.io.location import Location
from variegate.jobs.augment.plan import Plan
from variegate.jobs.augment.run import Expansion
from variegate.jobs.engine import Engine
from variegate.loader.batch import Failure
from variegate.ops.output import Identity

URL = "https://me:SECRET%2F1@127.0.0.1:9/a.tar?sig=SECRET#SECRET"


@pytest.fixture
def files() -> Any:
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    files = MemoryFileSystem()
    image = Image.fromarray(photo(8, 8))
    with files.open("/me:SECRET@data/photos/cat/1#a.png", "wb") as file:
        image.save(file, "PNG")
    yield files
    MemoryFileSystem.store.clear()


def test_sources(files: MemoryFileSystem) -> None:
    source = open_source("memory://me:SECRET@data/photos")
    assert repr(source) == "Samples(memory://data/photos: 1 sample, 1 class)"
    assert str(source.name(0)) == "memory://data/photos/cat/1#a.png"  # type: ignore[union-attr]
    assert repr(open_source(URL)) == "TarShards(https://127.0.0.1:9/a.tar: 1 shard)"
    for spec in ([URL, 3], {URL: 1}, [URL, "https://x:SECRET@h/b.jpg"]):
        with pytest.raises((TypeError, ValueError)) as caught:
            open_source(spec)
        assert "SECRET" not in str(caught.value)


def test_plans_and_what_runs_them(files: MemoryFileSystem) -> None:
    place = "memory://me:SECRET@data/photos"
    source = open_source(place)
    assert isinstance(source, Source)
    plan = Plan(source, Identity(), place=place)
    assert plan.settings("cpu")["source"] == "memory://data/photos"
    expansion = Expansion(plan, "memory://me:SECRET@data/out", Engine(["cpu:0"], "thread"))
    assert "SECRET" not in repr(plan) + repr(expansion)
    expansion.run()
    assert "SECRET" not in json.dumps(json.loads(files.cat_file("/me:SECRET@data/out/variegate.json")))
    storage = open_storage("memory://me:SECRET@data/out")
    assert "SECRET" not in repr(storage) + storage.shown + storage.place_of("a.jpg")


@pytest.mark.parametrize("address", ["ray://me:SECRET@127.0.0.1:9", "me:SECRET@127.0.0.1:9"])
def test_the_address_of_a_cluster(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"address: got '(ray://)?127\.0\.0\.1:9' with workers='thread'"):
        Engine(["cpu:0"], "thread", address=address)
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # which other tests may have done in this process
    with pytest.raises(ConnectionError, match=r"address: got '(ray://)?127\.0\.0\.1:9', where no Ray cluster answers"):
        Engine(["cpu:0"], "ray", address=address)


def test_policies() -> None:
    for policy in ("https://me:SECRET@host/p.json", Path("https://me:SECRET@host/p.json")):
        with pytest.raises((PolicyError, FileNotFoundError)) as caught:
            vg.load_policy(policy)
        assert "SECRET" not in str(caught.value)
        assert "host/p.json" in str(caught.value)


def test_errors_say_it_safely_whoever_made_them() -> None:
    for error in (
        DecodeError(URL, f"cannot be read: '{URL}' \x1b[1m"),
        SourceError(f"{URL}: no such file \x1b[1m"),
        PolicyError(URL, "\x1b[1m", f"no {URL}"),
        WriteError(5, f"cannot be written \x1b[1m ({URL})", URL),
        Failure(URL, "\x1b[1m", "a reason", 0, 0),
    ):
        said = str(error)
        assert "SECRET" not in said
        assert "\x1b" not in said
        assert r"\x1b" in said
        assert "https://127.0.0.1:9/a.tar" in said
    kept = pickle.loads(pickle.dumps(SourceError("a\x1b: b")))
    assert (str(kept), kept.reason("a\x1b")) == (r"a\x1b: b", "b")


@pytest.mark.parametrize(
    "said",
    [
        "Cannot connect to https://me:SECRET%2F1@127.0.0.1:9/a.tar?sig=SECRET ssl:default",
        "401, message='no', url='https://me:SECRET%2F1@127.0.0.1:9/a.tar?sig=SECRET'",
        "login of me with SECRET/1 failed",
        "the signature SECRET does not match",
    ],
)
def test_errors_of_packages(said: str) -> None:
    """As aiohttp, s3fs and others put it."""
    for error in (RuntimeError(said), OSError(said), ValueError(said), OSError(5, said), ImportError(said)):
        assert "SECRET" not in reason_for(error, Location.parse(URL))


def test_a_dead_server_with_everything_in_its_address() -> None:
    with pytest.raises(SourceError, match=r"^https://127.0.0.1:9/a\.tar: "):
        open_source(URL).shard(0)
    with pytest.raises(DecodeError, match=r"^https://127.0.0.1:9/a\.tar: "):
        open_source(URL, on_error="skip").read(0)
    with pytest.raises(SourceError) as caught:
        open_source(URL, stream=False)
    assert "SECRET" not in str(caught.value) + repr(caught.value) + str(caught.value.__cause__)
    with pytest.raises(SourceError) as caught:
        open_source(URL.replace(".tar", ".parquet"))
    assert "SECRET" not in str(caught.value) + repr(caught.value) + str(caught.value.__cause__)


def test_labels_and_arrays_have_short_reprs_too() -> None:
    assert repr(open_source(np.zeros((2, 4, 4, 3), np.uint8))) == "Samples((2, 4, 4, 3): 2 samples)"
