"""``python -m benchmarks.run_search [--out build/search]``: what a race and a PBA search find, beside free policies.

Three small data sets: scikit-learn's digits, patches of scikit-image's textures, and CIFAR-10 at 16 pixels. On the
images of SRC, PBA searches first; then a race has the processor seconds that PBA took. Both results and every free
policy then train ten times, paired, and are scored on images that neither search has seen (TEST). Each step resumes.
The images and all constants are set here, before any result is known.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

import variegate as vg
from benchmarks import machine

Images = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]
FREE = (
    *("none", "flip", "crop", "flip+crop", "flip+crop+cutout", "randaugment-1-5+flip+crop"),
    *("randaugment-2-9+flip+crop", "trivialaugment+flip+crop", "adaptive:entropy+flip+crop"),
)
REPEATS, MEMBERS, SEED = 10, 16, 2026
# Of a PBA search in those of a training: then a race with its seconds has about three rounds.
SEARCHED = 3


class DataSet(NamedTuple):
    """``make``: all images of SRC's kind, and of TEST's, with labels."""

    make: Callable[[Path], tuple[Images, Images]]
    images: int
    tested: int
    epochs: int


def digits(_: Path) -> tuple[Images, Images]:
    """8x8 pixels, gray: the first half of the data set, and the second."""
    from sklearn.datasets import load_digits

    found: Any = load_digits()
    pixels, labels = np.round(found.images * 255 / 16).astype(np.uint8), found.target
    return (pixels[:900], labels[:900]), (pixels[900:], labels[900:])


def textures(_: Path) -> tuple[Images, Images]:
    """16x16 pixels, gray: brick, grass and gravel; SRC from the left halves of the pictures, TEST from the right."""
    from skimage import data

    pictures: Any = data
    side, parts = 16, []
    for left in (True, False):
        patches, labels = [], []
        for label, picture in enumerate((pictures.brick(), pictures.grass(), pictures.gravel())):
            half = picture[:, :256] if left else picture[:, 256:]
            cut = half.reshape(512 // side, side, 256 // side, side).swapaxes(1, 2).reshape(-1, side, side)
            patches.append(cut)
            labels.append(np.full(len(cut), label))
        parts.append((np.concatenate(patches), np.concatenate(labels)))
    return parts[0], parts[1]


def cifar10(folder: Path) -> tuple[Images, Images]:
    """16x16 pixels, color, each the mean of four: from the training images, and from the test images."""
    return _parquet(folder / "cifar10-train.parquet"), _parquet(folder / "cifar10-test.parquet")


def _parquet(path: Path) -> Images:
    import io

    import pyarrow.parquet as pq

    table = pq.read_table(path)
    rows = np.random.default_rng(SEED).permutation(table.num_rows)[:5000]
    taken = table.take(rows)
    pixels = [np.asarray(Image.open(io.BytesIO(row["bytes"]), formats=["PNG"])) for row in taken.column(0).to_pylist()]
    means = np.stack(pixels).reshape(-1, 16, 2, 16, 2, 3).mean((2, 4))
    return np.round(means).astype(np.uint8), np.asarray(taken.column(1).to_pylist())


SETS = {
    "digits": DataSet(digits, 300, 800, 30),
    "textures": DataSet(textures, 120, 900, 40),
    "cifar10": DataSet(cifar10, 300, 1000, 20),
}


def write(images: Images, number: int, folder: Path) -> None:
    """Class folders of ``number`` images, as many of each class as of any other."""
    pixels, labels = images
    classes, order = np.unique(labels), np.random.default_rng(SEED).permutation(len(labels))
    for label in classes:
        chosen = order[labels[order] == label][: number // len(classes)]
        place = folder / str(label)
        place.mkdir(parents=True, exist_ok=True)
        for row in chosen.tolist():
            Image.fromarray(pixels[row]).save(place / f"{row:05d}.png")


def run(arguments: list[str]) -> float:
    """Run a command of Variegate -> its processor seconds."""
    print("variegate", *arguments, flush=True)
    before = _spent()
    subprocess.run([sys.executable, "-m", "variegate", *arguments], check=True)
    return _spent() - before


def race(src: Path, out: Path, epochs: int, seconds: float) -> float:
    """Race for so many processor seconds -> those of its trainings. A budget is of the clock: so the race is stopped,
    and then ends by a budget that is over."""
    options: dict[str, Any] = {"model": "wrn-10-1", "devices": "cpu", "epochs": epochs, "seed": 1}
    spent, stop = 0.0, Event()

    def count(one: Any) -> None:
        nonlocal spent
        spent += one.processor
        print(f"round {one.round}: {one.candidate} {one.score:.2%}, {spent:.0f} of {seconds:.0f} s", flush=True)
        if spent >= seconds:
            stop.set()

    vg.race(str(src), out=out, on_training=count, stop=stop, **options)
    result = vg.race(str(src), out=out, budget=0.001, **options)
    print(result.verdict, flush=True)
    return result.processor


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(name: str, data: Path, out: Path) -> dict[str, Any]:
    chosen, folder = SETS[name], out / name
    src, test = folder / "src", folder / "test"
    if not test.exists():
        source, held_out = chosen.make(data)
        write(source, chosen.images, src)
        write(held_out, chosen.tested, test)
    common = ["--model", "wrn-10-1", "--devices", "cpu", "--seed", "1"]
    training = [*common, "--epochs", str(chosen.epochs)]
    record: dict[str, Any] = {"images": chosen.images, "tested": chosen.tested, "epochs": chosen.epochs}
    costs = folder / "costs.json"
    record["costs"] = json.loads(costs.read_text()) if costs.exists() else {}
    if "pba" not in record["costs"]:
        population = ["--population", str(MEMBERS), "--repeats", "0", "--out", str(folder / "pba")]
        population += ["--epochs", str(SEARCHED * chosen.epochs)]
        record["costs"]["pba"] = run(["search", str(src), "--method", "pba", *population, *common])
        costs.write_text(json.dumps(record["costs"]))
    if "race" not in record["costs"]:
        record["costs"]["race"] = race(src, folder / "race", chosen.epochs, record["costs"]["pba"])
        costs.write_text(json.dumps(record["costs"]))
    race_result = json.loads((folder / "race" / "race.json").read_text())
    # Magnitudes that adapt are not in a policy's file; the row of that name is then the race's.
    found = [] if "adaptive" in race_result["winner"] else [str(folder / "race" / "policy.json")]
    rows = [*FREE, *found, str(folder / "pba" / "schedule.json")]
    evaluate = ["evaluate", str(src), "--test", str(test), "--policies", ",".join(rows), "--repeats", str(REPEATS)]
    run([*evaluate, "--out", str(folder / "evaluate.png"), *training])
    record["evaluation"] = json.loads((folder / "evaluate.json").read_text())
    return {**record, "race": race_result}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_search", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/search"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of CIFAR-10's Parquet files")
    parser.add_argument("--sets", default=",".join(SETS), help="data sets, separated by commas (%(default)s)")
    options = parser.parse_args()
    for name in options.sets.split(","):
        record = {"machine": machine.describe(), **measure(name, options.data, options.out)}
        (options.out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
