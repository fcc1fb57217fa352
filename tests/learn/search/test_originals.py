"""Images that changed under their names since a search began, and the colour that its policies fill with."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from PIL import Image

from tests.learn.search.runs import small_run
from variegate.data.base import SourceError
from variegate.learn.driver import LocalSearch
from variegate.learn.history import Settings, read_log, schedule_of
from variegate.learn.images import BaselineAugmentation, load_images, split
from variegate.learn.policy import SearchSpace
from variegate.learn.run import SearchRun
from variegate.options.fit import FitOptions
from variegate.policies import load_policy
from variegate.policies.schedule import schedule_from_dict


def lay(folder: Path, gray: bool = False) -> Path:
    rng = np.random.default_rng(0)
    for number in range(24):
        pixels = rng.integers(0, 200, (8, 8) if gray else (8, 8, 3)).astype(np.uint8)
        path = folder / "ab"[number % 2] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return folder


def search_of(folder: Path) -> SearchRun:
    images = load_images(folder, device="cpu")
    train, validation = split(images, 16, None, seed=0)
    settings = Settings(2, SearchSpace(("Rotate", "Cutout"), space="pba-relative"), interval=1, epochs=2)
    baseline = BaselineAugmentation.of(train, padding=0, flip=False, cutout=0)
    return SearchRun(
        settings, FitOptions(epochs=2, batch_size=8), "wrn-10-1", baseline, train, validation, str(folder), "names"
    )


def stopped(run: SearchRun, out: Path) -> None:
    stop = Event()
    assert LocalSearch(run, out, ["cpu"]).run(lambda progress: stop.set() if progress.rows else None, stop) is None


def test_an_image_replaced_under_its_name_is_named(tmp_path: Path) -> None:
    folder, out = lay(tmp_path / "photos"), tmp_path / "out"
    stopped(search_of(folder), out)
    victim = folder / "a" / "04.png"
    old = victim.read_bytes(), victim.stat()
    pixels = np.asarray(Image.open(victim)).copy()
    pixels[0, 0, 0] ^= 1  # too little for the mean of all images, to its six digits, in many a data set
    Image.fromarray(pixels).save(victim)
    with pytest.raises(SourceError, match=r"out: holds a search with images .*; choose another folder"):
        LocalSearch(search_of(folder), out, ["cpu"]).run()
    before = (out / "images.jsonl").read_bytes()
    victim.write_bytes(old[0])
    os.utime(victim, (0, 0))  # the same picture, whatever its date
    (folder / "b" / "05.png").unlink()
    with pytest.raises(SourceError, match=r"out: holds a search with --(train|validation)"):
        LocalSearch(search_of(folder), out, ["cpu"]).run()
    assert (out / "images.jsonl").read_bytes() == before
    lay(folder)
    assert LocalSearch(search_of(folder), out, ["cpu"]).run() is not None


@pytest.mark.parametrize("gray", [False, True])
def test_policies_fill_with_the_mean_of_the_training_images(tmp_path: Path, gray: bool) -> None:
    folder, out = lay(tmp_path / "photos", gray), tmp_path / "out"
    run = search_of(folder)
    pixels = run.train.pixels.numpy().reshape(-1, 3)
    mean = [round(level) for level in pixels.mean(0).tolist()]
    assert not gray or len(set(mean)) == 1
    assert list(run.settings.space.fill or ()) == mean
    found = LocalSearch(run, out, ["cpu"]).run()
    assert found is not None
    assert list(found.fill or ()) == mean
    assert json.loads((out / "schedule.json").read_text())["fill"] == mean
    assert json.loads((out / "search.json").read_text())["population"]["space"]["fill"] == mean
    # Off the log alone it comes to the same; and the same pixels wherever the file is taken.
    assert schedule_of(read_log(out / "population.jsonl"), source=found.source) == found
    shutil.copy(out / "schedule.json", tmp_path / "elsewhere.json")
    assert load_policy(tmp_path / "elsewhere.json") == load_policy(out / "schedule.json")
    described = found.to_dict()
    assert schedule_from_dict({k: v for k, v in described.items() if k != "fill"}) == replace(found, fill=None)


def test_a_fill_of_ones_own_is_kept_and_one_channel_is_a_colour() -> None:
    run = small_run(space=SearchSpace(space="pba-relative", fill=(1, 2, 3)))
    assert run.settings.space.fill == (1, 2, 3)
    assert SearchSpace.from_dict(run.settings.space.to_dict()) == run.settings.space
    assert SearchSpace.from_dict({"space": "pba", "operations": ["Rotate"], "copies": 1}).fill is None
    assert BaselineAugmentation((8, 8), (0.2,), (0.1,)).fill == (51, 51, 51)
    with pytest.raises(ValueError, match=r"fill: got \(1, 2\); accepted: three integers"):
        SearchSpace(fill=(1, 2))  # type: ignore[arg-type]
