"""``python -m benchmarks.run search | w6``: compare searched policies with policies that need no search.

``search``: scikit-learn's digits, patches of scikit-image's textures, and CIFAR-10 at 16 pixels. PBA searches on the
images of SRC; a race then has as much time. Both results and every free policy train ten times, paired, and are scored
on images that neither search has seen (TEST). ``w6``: the search of the PBA paper on CIFAR-10 (16 members, 200 epochs
on 4,000 images, WRN-28-2). Then WRN-40-2 trains on all images with the learned schedule and other policies. Made for a
GPU.

All steps are commands of Variegate, which resume. Images and constants are set here, before any result is known.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from benchmarks import machine

Images = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]
FREE = (
    "none,flip,crop,flip+crop,flip+crop+cutout,randaugment-1-5+flip+crop,randaugment-2-9+flip+crop,"
    "trivialaugment+flip+crop,adaptive:entropy+flip+crop"
)
W6_FREE = (
    "flip+crop+cutout,randaugment+flip+crop+cutout,trivialaugment+flip+crop+cutout,"
    "cifar10+flip+crop+cutout,pba-cifar10+flip+crop+cutout"
)
REPEATS = 10
MEMBERS = 16
SEED = 2026
# Epochs of a PBA search, as a multiple of a training's: a race of the same time then has about three rounds.
SEARCHED = 3


class DataSet(NamedTuple):
    """``make``: the images of SRC and of TEST, with labels."""

    make: Callable[[Path], tuple[Images, Images]]
    images: int
    tested: int
    epochs: int


def digits(_: Path) -> tuple[Images, Images]:
    """8x8 pixels, gray: the first half of the data set, and the second."""
    from sklearn.datasets import load_digits

    found: Any = load_digits()
    pixels = np.round(found.images * 255 / 16).astype(np.uint8)
    labels = found.target
    return (pixels[:900], labels[:900]), (pixels[900:], labels[900:])


def textures(_: Path) -> tuple[Images, Images]:
    """16x16 pixels, gray: brick, grass and gravel; SRC from the left halves of the pictures, TEST from the right."""
    from skimage import data

    pictures: Any = data
    side = 16
    halves = []
    for first in (0, 256):
        patches = []
        labels = []
        for label, picture in enumerate((pictures.brick(), pictures.grass(), pictures.gravel())):
            half = picture[:, first : first + 256]
            cut = half.reshape(512 // side, side, 256 // side, side).swapaxes(1, 2).reshape(-1, side, side)
            patches.append(cut)
            labels.append(np.full(len(cut), label))
        halves.append((np.concatenate(patches), np.concatenate(labels)))
    return halves[0], halves[1]


def cifar10(folder: Path) -> tuple[Images, Images]:
    """16x16 pixels, color, each the mean of four: from the training images, and from the test images."""
    import pyarrow.parquet as pq

    parts = []
    for name in ("train", "test"):
        table = pq.read_table(folder / f"cifar10-{name}.parquet")
        taken = table.take(np.random.default_rng(SEED).permutation(table.num_rows)[:5000])
        rows = taken.column(0).to_pylist()
        pixels = np.stack([np.asarray(Image.open(io.BytesIO(row["bytes"]), formats=["PNG"])) for row in rows])
        means = pixels.reshape(-1, 16, 2, 16, 2, 3).mean((2, 4))
        parts.append((np.round(means).astype(np.uint8), np.asarray(taken.column(1).to_pylist())))
    return parts[0], parts[1]


SETS = {
    "digits": DataSet(digits, 300, 800, 30),
    "textures": DataSet(textures, 120, 900, 40),
    "cifar10": DataSet(cifar10, 300, 1000, 20),
}


def write(images: Images, count: int, folder: Path) -> None:
    """Class folders of ``count`` images, as many of each class as of any other."""
    pixels, labels = images
    classes = np.unique(labels)
    order = np.random.default_rng(SEED).permutation(len(labels))
    for label in classes:
        home = folder / str(label)
        home.mkdir(parents=True, exist_ok=True)
        for row in order[labels[order] == label][: count // len(classes)].tolist():
            Image.fromarray(pixels[row]).save(home / f"{row:05d}.png")


def run(arguments: Sequence[object], options: str) -> float:
    """Run a command of Variegate -> its seconds. ``options``: those without spaces in their values."""
    words = [*map(str, arguments), *options.split()]
    print("variegate", *words, flush=True)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "variegate", *words], check=True)
    return time.perf_counter() - began


def measure(name: str, data: Path, out: Path) -> dict[str, Any]:
    chosen = SETS[name]
    folder = out / name
    src = folder / "src"
    test = folder / "test"
    costs = folder / "costs.json"
    if not test.exists():
        source, held_out = chosen.make(data)
        write(source, chosen.images, src)
        write(held_out, chosen.tested, test)
    common = "--model wrn-10-1 --devices cpu --seed 1"
    seconds: dict[str, float] = json.loads(costs.read_text()) if costs.exists() else {}
    if "pba" not in seconds:
        population = f"--method pba --population {MEMBERS} --repeats 0 --epochs {SEARCHED * chosen.epochs}"
        seconds["pba"] = run(["search", src, "--out", folder / "pba"], f"{population} {common}")
        costs.write_text(json.dumps(seconds))
    common += f" --epochs {chosen.epochs}"
    budget = f"--budget {max(1, round(seconds['pba']))}s"
    seconds["race"] = run(["search", src, "--out", folder / "race"], f"{budget} {common}")
    race = json.loads((folder / "race" / "race.json").read_text())
    # Magnitudes that adapt are not in a policy's file; the row of that name is then the race's.
    raced = "" if "adaptive" in race["winner"] else f",{folder / 'race' / 'policy.json'}"
    rows = f"{FREE}{raced},{folder / 'pba' / 'schedule.json'}"
    evaluate = ["evaluate", src, "--test", test, "--policies", rows, "--out", folder / "evaluate.png"]
    run(evaluate, f"--repeats {REPEATS} {common}")
    evaluation = json.loads((folder / "evaluate.json").read_text())
    return {
        "images": chosen.images,
        "tested": chosen.tested,
        "seconds": seconds,
        "evaluation": evaluation,
        "race": race,
    }


def measure_w6(data: Path, out: Path, epochs: int, limit: int) -> dict[str, Any]:
    """Search and train; fewer epochs and images show that it runs."""
    train, test = (data / f"cifar10-{name}.parquet" for name in ("train", "test"))
    population = f"--method pba --population {MEMBERS} --train {min(4000, limit)} --epochs {epochs} --model wrn-28-2"
    fixed = "--around fixed --padding 4 --cutout 16 --repeats 0"
    seconds = run(["search", train, "--out", out / "w6"], f"{population} {fixed}")
    rows = f"{W6_FREE},{out / 'w6' / 'schedule.json'}"
    final = f"--repeats 1 --model wrn-40-2 --epochs {epochs} --train {limit} --padding 4 --cutout 16"
    run(["evaluate", train, "--test", test, "--policies", rows, "--out", out / "w6.png"], final)
    print(f"search: {seconds:,.0f} s; the paper's took 5 h on a Titan XP, asked: 600 s")
    return {
        "search_seconds": seconds,
        "evaluation": json.loads((out / "w6.json").read_text()),
    }


def main(name: str, arguments: Sequence[str], command: str) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.run {name}", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/search"))
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("../shared/data"),
        help="folder of CIFAR-10's Parquet files",
    )
    parser.add_argument(
        "--sets",
        default=",".join(SETS),
        help="data sets of search, with commas (%(default)s)",
    )
    parser.add_argument("--epochs", type=int, default=200, help="of w6 (200)")
    parser.add_argument("--limit", type=int, default=50_000, help="images of w6 (50000)")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    about: dict[str, Any] = {"machine": machine.describe(), "command": command}
    if name == "w6":
        record = about | measure_w6(options.data, options.out, options.epochs, options.limit)
        (options.out / "w6-record.json").write_text(json.dumps(record, indent=1) + "\n")
        return 0
    for key in options.sets.split(","):
        record = about | measure(key, options.data, options.out)
        (options.out / f"{key}.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0
