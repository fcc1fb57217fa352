"""Only the kinds of files that are meant to be read are opened, whatever a file is called."""

from __future__ import annotations

import ast
import os
import stat
from pathlib import Path
from subprocess import CalledProcessError

import pillow_heif
import pillow_jxl  # noqa: F401
import pytest
from PIL import EpsImagePlugin, Image

import variegate as vg
from tests.decode.jpegs import jpeg
from variegate import transforms as T
from variegate.cli import main
from variegate.data.kinds import IMAGE_EXTENSIONS
from variegate.data.objects.dataset import open_dataset
from variegate.decode import FORMATS, read_image
from variegate.errors import DecodeError

ROOT = Path(__file__).resolve().parents[2]
EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 20 20
%%EndComments
0 0 20 20 rectfill
%%EOF
"""
ACCEPTED = "accepted: JPEG, PNG, WebP, GIF, BMP, TIFF, PPM, AVIF, HEIC, JPEG XL"


def opening_calls(path: Path) -> list[ast.Call]:
    text = path.read_text(encoding="utf-8")
    if "Image.open" not in text:
        return []
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call.func).endswith("Image.open")]


def test_every_opening_says_which_formats() -> None:
    files = [path for folder in ("variegate", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")]
    found = [(path, call) for path in files for call in opening_calls(path)]
    assert found
    wrong = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path, call in found
        if "formats" not in {keyword.arg for keyword in call.keywords}
    ]
    assert wrong == []
    assert [path for path in files if "ImageFile.Parser" in path.read_text(encoding="utf-8")] == []


def test_formats_are_those_of_the_extensions() -> None:
    Image.init()
    pillow_heif.register_heif_opener()
    registered = Image.registered_extensions()
    pillows = [extension for extension in IMAGE_EXTENSIONS if extension != ".dcm"]
    assert {registered[extension] for extension in pillows} == set(FORMATS)


@pytest.fixture
def traced_ghostscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``gs`` that leaves a trace -> the trace."""
    trace, script = tmp_path / "trace", tmp_path / "bin" / "gs"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\necho started >> '{trace}'\ntest $1 = --version\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)  # where Pillow keeps what it has found
    return trace


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="the stand-in for Ghostscript is a shell script")
def test_ghostscript_is_not_started(
    traced_ghostscript: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "a.jpg").write_bytes(jpeg())
    (photos / "b.jpg").write_bytes(EPS)
    reason = rf"its contents are EPS, whatever its name; {ACCEPTED}"
    for read in (
        lambda: read_image(photos / "b.jpg"),
        lambda: read_image(EPS),
        lambda: vg.Augmenter(T.CenterCrop(8)).decode_and_run([EPS]),
        lambda: list(vg.Loader(photos, T.CenterCrop(8), device="cpu")),
        lambda: list(vg.Loader(photos, T.CenterCrop(8), device="cpu", cache="host", cache_side=16)),
        lambda: list(vg.Loader(open_dataset([(EPS, 0)]), T.CenterCrop(8), device="cpu")),
    ):
        with pytest.raises(DecodeError, match=reason):
            read()
    options = ("--policy", "none", "--on-error", "skip", "--workers", "thread")
    assert main(["augment", str(photos), str(tmp_path / "out"), *options]) == 0
    assert reason in capsys.readouterr().err
    assert not traced_ghostscript.exists()
    # The stand-in would have been started.
    with pytest.raises((OSError, CalledProcessError)), Image.open(photos / "b.jpg") as image:
        image.load()
    assert traced_ghostscript.exists()


def test_a_cut_header_names_its_kind() -> None:
    with pytest.raises(DecodeError, match=r"^a: damaged or truncated: it begins as AVIF but its header cannot be read"):
        read_image(b"\0\0\0\x20ftypavif" + bytes(8), "a")


@pytest.mark.parametrize(
    ("kind", "start"),
    [
        ("EPS", b"%!PS-Adobe-3.0 EPSF-3.0"), ("EPS", b"\xc5\xd0\xd3\xc6"), ("PSD", b"8BPS\0\1"), ("PDF", b"%PDF-1.7"),
        ("MP4", b"\0\0\0\x20ftypisom"), ("ICO", b"\0\0\1\0\1\0"),
        ("JPEG 2000", b"\0\0\0\x0cjP  \r\n\x87\n"), ("WMF", b"\xd7\xcd\xc6\x9a"), ("SVG", b"<svg xmlns="),
    ],
)  # fmt: skip
def test_kinds_that_are_not_read_are_named(kind: str, start: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        read_image(start + bytes(200), "photo.jpg")
    assert str(caught.value) == f"photo.jpg: its contents are {kind}, whatever its name; {ACCEPTED}"
