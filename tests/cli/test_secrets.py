"""Every command with addresses that fail, and some that do not: no secret is in anything that is printed or kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from PIL import Image

from tests.data.tars import tar_bytes
from tests.data.web import serving
from tests.images import photo
from variegate.cli import main

# In every place of an address, with what clients send as it is, and what they encode.
HIDDEN = "SECRET"
TAILS = ("", "?X-Amz-Signature=SECRET%2F1&x=SECRET", "#SECRET", ";jsessionid=SECRET", "?SECRET")
USERS = ("", "me:SECRET@", "SECRET@", "me:SECRET%40%2F@", "me:SE/SECRET?a#b:@")
COMMANDS = (
    ("augment", "{}", "out", "--workers", "thread"),
    ("augment", "photos", "{}", "--workers", "thread"),
    ("augment", "photos", "out", "--policy", "{}"),
    ("augment", "photos", "out", "--workers", "thread", "--address", "ray://{}"),
    ("replay", "{}", "0"),
    ("preview", "{}"),
    ("preview", "photos", "--policy", "{}"),
    ("doctor", "{}"),
    ("search", "{}"),
    ("search", "photos", "--backend", "local", "--address", "{}"),
    ("evaluate", "{}"),
    ("evaluate", "photos", "--policies", "{}"),
)


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VARIEGATE_CACHE", str(tmp_path / "cache"))
    for name in ("cat/1.jpg", "dog/2.jpg"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True)
        Image.fromarray(photo(16, 16)).save(tmp_path / "photos" / name)
    return tmp_path / "photos"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving({}) as (address, _):
        yield address


@pytest.fixture
def store() -> Iterator[None]:
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def said_by(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(arguments)
    captured = capfd.readouterr()
    return code, captured.out + captured.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_fails_is_told_without_secrets(
    command: tuple[str, ...], photos: Path, server: str, store: None, capfd: pytest.CaptureFixture[str]
) -> None:
    places = ("https://127.0.0.1:9/a.tar", "nowhere://h/a.tar", "memory://h/b", f"{server}/403/a.tar")
    tried = 0
    for number, place in enumerate(places):
        for user, tail in zip(USERS, TAILS[number:] + TAILS[:number], strict=True):
            # Every place and every hiding is tried both ways, by half of the commands' addresses each.
            if user + tail:
                json_too = ["--json"] if (tried + len(command)) % 2 else []
                address = place.replace("//", f"//{user}") + tail
                code, said = said_by([part.format(address) for part in command] + json_too, capfd)
                is_written = command[:3] == ("augment", "photos", "{}") and place.startswith("memory")
                assert code in (1, 2) or is_written, said
                assert HIDDEN not in said, f"{address}: {said}"
                assert "Traceback" not in said
                tried += 1
    assert tried >= 18
    kept = [path for path in photos.parent.rglob("*") if path.is_file() and path.suffix in (".json", ".png", ".log")]
    assert not any(HIDDEN.encode() in path.read_bytes() for path in kept)


@pytest.mark.parametrize("layout", ["folder", "webdataset"])
def test_what_succeeds_keeps_no_secrets(
    layout: str, photos: Path, store: None, capfd: pytest.CaptureFixture[str]
) -> None:
    files = MemoryFileSystem()
    place = "memory://me:SECRET@data/photos"
    files.put(str(photos), "/me:SECRET@data/photos", recursive=True)
    files.pipe_file("/me:SECRET@data/photos/cat/bad.jpg", b"no image")
    out = "memory://me:SECRET@data/out"
    run = ["augment", place, out, "--policy", "none", "--workers", "thread", "--layout", layout]
    for more in (["--json"], []):
        code, said = said_by([*run, *more], capfd)
        assert code == 0, said
        assert HIDDEN not in said
        assert "memory://data/out" in said
    written = [path for path in MemoryFileSystem.store if path.startswith("/me:SECRET@data/out/")]
    assert len(written) >= 3
    assert not any(HIDDEN.encode() in files.cat_file(path) for path in written)
    settings = json.loads(files.cat_file("/me:SECRET@data/out/variegate.json"))
    assert settings["source"] == "memory://data/photos"
    code, said = said_by([*run, "--seed", "1"], capfd)
    assert (code, HIDDEN in said) == (2, False)
    code, said = said_by(["replay", out, "0", "--source", place, "--out", "again.jpg"], capfd)
    assert (code, HIDDEN in said) == (0, False), said
    code, said = said_by(["replay", out, "0", "--out", "more.jpg"], capfd)  # whose place has no password any more
    assert (code, HIDDEN in said) == (2, False), said


def test_shards_of_a_server_that_breaks_off(photos: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tar_bytes([("1.jpg", (photos / "cat/1.jpg").read_bytes())])
    with serving({"a.tar": data}) as (address, _):
        for place in ("cut/a.tar", "500/a.tar"):
            signed = f"{address.replace('//', '//me:SECRET@')}/{place}?sig=SECRET"
            code, said = said_by(["augment", signed, "out", "--workers", "thread", "--policy", "none"], capfd)
            assert HIDDEN not in said
            assert "127.0.0.1" in said
            assert code != 0


def test_an_address_where_a_file_of_this_machine_is_meant(photos: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["preview", "photos", "--out", "https://me:SECRET@host/p.png"],
        ["doctor", "photos", "--train", "--plot", "https://me:SECRET@host/no/p.png"],
        ["demo", "https://me:SECRET@host/demo", "--copies", "0"],
    ):
        _, said = said_by(arguments, capfd)
        assert HIDDEN not in said, said
    assert os.path.isdir(photos)
