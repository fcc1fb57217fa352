"""``vg.PIXEL_VERSION`` is in all that is resumed or replayed; another version is refused, and no version means 1."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import variegate as vg
from tests.jobs.augment.samples import digest, expansion, lay_photos
from tests.learn.search.runs import small_run
from tests.learn.train.digits import digits, options
from variegate import transforms as T
from variegate.data.storage import open_storage
from variegate.jobs.augment.replay import replay
from variegate.jobs.output.manifest import read_manifest, write_manifest
from variegate.jobs.pack import pack
from variegate.learn.checkpoints import ResumeError
from variegate.learn.driver import LocalSearch
from variegate.learn.trainer import train

NOW = vg.PIXEL_VERSION
MADE = f"and this version of Variegate makes pixel version {NOW}; install the version that"
REFUSED = f"written with pixel version {NOW + 1}, {MADE}"
# Files without a version are of version 1.
OLD = f"written with pixel version 1, {MADE}"


def change(file: Path, pixels: int | None) -> None:
    """Another version, or none, in a file of settings."""
    settings = json.loads(file.read_text())
    assert settings.pop("pixels") == vg.PIXEL_VERSION
    file.write_text(json.dumps(settings if pixels is None else settings | {"pixels": pixels}, indent=2) + "\n")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return lay_photos(tmp_path / "photos")


def test_it_is_an_integer_from_1_on() -> None:
    assert type(vg.PIXEL_VERSION) is int
    assert vg.PIXEL_VERSION == 2, "docs/stability.md: a row in its table, and an entry in CHANGELOG.md"


def test_an_expansion_is_resumed_with_the_same_version_alone(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out).run()
    assert read_manifest(out).settings["pixels"] == vg.PIXEL_VERSION
    change(out / "variegate.json", NOW + 1)
    before = digest(out)
    with pytest.raises(ValueError, match=rf"out: {REFUSED} wrote it, or start over in another folder"):
        expansion(photos, out).run()
    assert digest(out) == before


def test_an_expansion_without_a_version_is_of_the_first(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out).run()
    change(out / "variegate.json", None)
    with pytest.raises(ValueError, match=OLD):
        expansion(photos, out).run()


def test_a_replay_is_refused(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(photos, out).run()
    manifest = read_manifest(out)
    rows, settings, storage = list(manifest.rows()), manifest.settings, open_storage(out)
    write_manifest(storage, rows, settings | {"pixels": NOW + 1})
    with pytest.raises(ValueError, match=rf"manifest\.parquet: {REFUSED} wrote it, or run variegate augment again"):
        replay(out, 0)
    write_manifest(storage, rows, {name: value for name, value in settings.items() if name != "pixels"})
    with pytest.raises(ValueError, match=OLD):
        replay(out, 0)


def test_a_packed_data_set_has_it(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pack(photos, out, devices=["cpu:0"], workers="thread")
    change(out / "variegate.json", NOW + 1)
    with pytest.raises(ValueError, match=REFUSED):
        pack(photos, out, devices=["cpu:0"], workers="thread")


def test_a_state_of_a_loader_has_it() -> None:
    def loader() -> vg.Loader:
        images = np.zeros((8, 4, 4, 3), np.uint8)
        return vg.Loader((images, np.arange(8)), T.RandomHorizontalFlip(), batch_size=2, device="cpu")

    first = loader()
    next(iter(first))
    state = first.state_dict()
    assert state.pop("pixels") == vg.PIXEL_VERSION
    with pytest.raises(ValueError, match=rf"state_dict: {REFUSED} wrote it, or begin the epoch again without it"):
        loader().load_state_dict({**state, "pixels": NOW + 1})
    with pytest.raises(ValueError, match=OLD):
        loader().load_state_dict(state)
    other = loader()
    other.load_state_dict({**state, "pixels": NOW})
    assert other.state_dict() == first.state_dict()


def test_a_training_has_it(tmp_path: Path) -> None:
    source, _ = digits(64)
    train(source, options(tmp_path, epochs=1))
    change(tmp_path / "train.json", NOW + 1)
    with pytest.raises(ResumeError, match=rf"{tmp_path.name}: {REFUSED} wrote it, or start over in another folder"):
        train(source, options(tmp_path, epochs=1))
    settings = json.loads((tmp_path / "train.json").read_text())
    del settings["pixels"]
    (tmp_path / "train.json").write_text(json.dumps(settings))
    with pytest.raises(ResumeError, match=OLD):
        train(source, options(tmp_path, epochs=1))
    (tmp_path / "train.json").write_text(json.dumps({**settings, "pixels": NOW}))
    (facts,) = sorted((tmp_path / "checkpoints").glob("*/facts.json"))[-1:]
    known = json.loads(facts.read_text())
    assert known["loader"]["pixels"] == known["run"]["pixels"] == NOW
    train(source, options(tmp_path, epochs=1))


def test_a_search_has_it(tmp_path: Path) -> None:
    run = small_run(interval=1, epochs=1)
    LocalSearch(run, tmp_path, ["cpu"]).run()
    settings = (tmp_path / "search.json").read_bytes()
    change(tmp_path / "search.json", NOW + 1)
    with pytest.raises(ValueError, match=REFUSED):
        LocalSearch(run, tmp_path, ["cpu"]).run()
    (tmp_path / "search.json").write_bytes(settings)
    LocalSearch(run, tmp_path, ["cpu"]).run()
    change(tmp_path / "search.json", None)
    with pytest.raises(ValueError, match=OLD):
        LocalSearch(run, tmp_path, ["cpu"]).run()
