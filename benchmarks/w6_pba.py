"""``python -m benchmarks.w6_pba [--out docs/results]``: W6, Population Based Augmentation on CIFAR-10.

The paper's search (16 members, 200 epochs on 4,000 images, WRN-28-2 as its code trains), timed against the 5 hours it
took on a Titan XP; then WRN-40-2 on all 50,000 images with flip, crop and cutout alone, RandAugment, TrivialAugment,
AutoAugment, the published schedule and the one that was learnt: the test error of each. Made for a GPU; options shorten
it to see that it runs, and cut it in parts (``--policies ""`` only searches, ``--schedule`` only trains).
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine
from variegate.apps.search import SearchSpace, Settings
from variegate.apps.search.compare import Comparison, Summary, cells, compare, verdicts
from variegate.apps.search.driver import LocalSearch, Progress, search_devices
from variegate.apps.search.evaluate import Evaluation, Subsets
from variegate.apps.search.run import SCHEDULE_NAME, SearchRun
from variegate.apps.train.images import BaselineAugmentation, LabelledImages, load_images, split
from variegate.options.search import Hyperparameters

DATA = Path("../shared/data")
AROUND = "+flip+crop+cutout"
POLICIES = (
    AROUND[1:],
    *(name + AROUND for name in ("randaugment", "trivialaugment", "cifar10", "pba-cifar10", "learnt")),
)
PAPER_SECONDS, TARGET_SECONDS = 5 * 3600.0, 600.0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.w6_pba", description=__doc__)
    parser.add_argument("--train", type=Path, default=DATA / "cifar10-train.parquet")
    parser.add_argument("--test", type=Path, default=DATA / "cifar10-test.parquet")
    parser.add_argument("--devices", default="auto", help="auto, or a list with commas")
    parser.add_argument("--members", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=200, help="of the search and of the trainings after it")
    parser.add_argument("--images", type=int, default=4000, help="that the members train on")
    parser.add_argument(
        "--limit", type=int, default=None, help="use so many of the images to train on after the search"
    )
    parser.add_argument("--model", default="wrn-28-2", help="of the members")
    parser.add_argument("--final-model", default="wrn-40-2")
    parser.add_argument("--repeats", type=int, default=1, help="trainings with each policy")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--precision", default="float32", help="of all trainings: float32 or bfloat16")
    parser.add_argument("--no-capture", action="store_true", help="do not record training steps as CUDA graphs")
    parser.add_argument("--schedule", type=Path, default=None, help="learnt before: train with it, do not search")
    parser.add_argument(
        "--policies", default=",".join(POLICIES), help="to train with after the search; empty: only search"
    )
    parser.add_argument("--out", type=Path, default=None, help="a folder for the record as JSON, and the schedule")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    options = parse(given)
    devices = search_devices(options.devices if options.devices == "auto" else options.devices.split(","))
    record: dict[str, Any] = {"work": "w6", "machine": machine.describe(), "devices": devices}
    record["command"] = " ".join(["python -m benchmarks.w6_pba", *given])
    out: Path | None = options.out
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    train = load_images(str(options.train), device=devices[0])
    with tempfile.TemporaryDirectory() as temporary:
        learnt: Path = options.schedule or Path(temporary) / SCHEDULE_NAME
        if options.schedule is None:
            record["search_seconds"] = search(train, devices, options, learnt)
            record["schedule"] = json.loads(learnt.read_text())
            if out is not None:  # before hours of training
                (out / "w6-schedule.json").write_bytes(learnt.read_bytes())
        if options.policies:
            record["policies"] = final_trainings(train, devices, options, str(learnt))
    if out is not None:
        (out / "w6.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0


def search(train: LabelledImages, devices: list[str], options: argparse.Namespace, learnt: Path) -> float:
    """Search, write the schedule -> seconds."""
    searched, validated = split(train, options.images, None, options.seed)
    run = SearchRun(
        Settings(options.members, SearchSpace(), options.seed, epochs=options.epochs),
        Hyperparameters(options.epochs, precision=options.precision),
        options.model,
        BaselineAugmentation.of(searched, padding=4, flip=True, cutout=16),
        searched,
        validated,
        "cifar10",
    )
    folder = learnt.parent / "search"
    made = LocalSearch(run, folder, devices[: options.members], capture=not options.no_capture)
    started = time.perf_counter()
    assert made.run(tell) is not None
    seconds = time.perf_counter() - started
    shutil.copyfile(folder / SCHEDULE_NAME, learnt)
    print(f"search: {seconds:,.0f} s")
    if (options.members, options.epochs, options.images, options.model) == (16, 200, 4000, "wrn-28-2"):
        print(f"  {PAPER_SECONDS / seconds:.1f}x as fast as the paper's 5 h on a Titan XP")
        print(f"  asked: {TARGET_SECONDS:,.0f} s: {'met' if seconds <= TARGET_SECONDS else 'missed'}")
    return seconds


def final_trainings(
    train: LabelledImages, devices: list[str], options: argparse.Namespace, learnt: str
) -> list[dict[str, Any]]:
    """Train the final model with each policy, print the table -> its lines."""
    test = load_images(str(options.test), device=devices[0])
    final = train if options.limit is None else split(train, options.limit, 0, options.seed)[0]
    names = [
        name.replace("learnt", learnt, 1) if name.startswith("learnt") else name for name in options.policies.split(",")
    ]
    evaluation = Evaluation(
        Subsets(final, len(final), test, options.seed),
        options.final_model,
        Hyperparameters(options.epochs, precision=options.precision),
        functools.partial(BaselineAugmentation.of, padding=4, flip=True, cutout=16),
        names,
        options.repeats,
        options.seed,
        devices,
        not options.no_capture,
    )
    trials = evaluation.run(lambda trial: print(trial, file=sys.stderr))
    found = compare(trials, evaluation.policies, evaluation.subsets.scored)
    print("\n".join([*markdown(found), *verdicts(found)]))
    return [described(one) for one in found.summaries]


def markdown(comparison: Comparison) -> Iterator[str]:
    """The table, for pages."""
    to = f"to {comparison.reference}, 95 % interval" if comparison.reference else "difference"
    yield f"| policy | accuracy, mean | spread | {to} | each | seconds a training |"
    yield "|---|--:|--:|--:|---|--:|"
    for one in comparison.summaries:
        mean, spread, difference = cells(one, comparison)
        yield f"| {one.policy} | {mean} | {spread} | {difference} | {in_percent(one.accuracies)} | {one.seconds:.1f} |"


def in_percent(accuracies: Sequence[float]) -> str:
    return ", ".join(f"{100 * accuracy:.2f}" for accuracy in accuracies)


def described(one: Summary) -> dict[str, Any]:
    """As JSON has it, which knows no NaN: a single training has no spread."""
    spread = None if math.isnan(one.spread) else one.spread
    return {**one._asdict(), "spread": spread, "test_error": 100 * (1 - one.mean)}


def tell(progress: Progress) -> None:
    if progress.rows:
        print(f"step {progress.step} of {progress.steps}: best accuracy {progress.best:.4f}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
