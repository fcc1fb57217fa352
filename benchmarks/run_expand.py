"""``python -m benchmarks.run_expand [--devices 2] [--out docs/results]``: W5, expansion over k devices against one.

JPEG files in class folders -> RandomResizedCrop(224), flip, RandAugment(2, 9) -> JPEG files, each written, synced and
in the manifest. Every device is a process with one thread. Both sides run in turn, after a check that they write the
same bytes; the start of the processes is not part of the rate.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.inputs import DEFAULT_TAR, read_jpegs
from variegate import transforms as T
from variegate.formats.folder import open_folder
from variegate.jobs.augment import Expansion, Plan, Report
from variegate.jobs.engine import Engine

TARGET = 0.95  # of k


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_expand", description=__doc__)
    parser.add_argument("--devices", type=int, default=2, help="k, cpu:0 to cpu:k-1 (2)")
    parser.add_argument("--layout", default="folder", choices=("folder", "webdataset", "parquet"))
    parser.add_argument("--copies", type=int, default=8, help="of every photo (8)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each side (3)")
    parser.add_argument("--images", type=Path, default=DEFAULT_TAR, help=f"a tar of JPEG files ({DEFAULT_TAR})")
    parser.add_argument("--out", type=Path, default=None, help="a folder for the record as JSON")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 where the check failed; speed itself never fails a run."""
    given = sys.argv[1:] if arguments is None else arguments
    options = parse(given)
    record: dict[str, Any] = {"work": "w5", "machine": machine.describe(), "layout": options.layout}
    record["command"] = " ".join(["python -m benchmarks.run_expand", *given])
    with tempfile.TemporaryDirectory() as folder:
        photos, record["inputs"] = lay(Path(folder), options.images)
        sides = (1, options.devices)
        found = {k: expand(photos, Path(folder) / f"check{k}", k, options, copies=1)[1] for k in sides}
        record["check"] = f"{len(found[1]):,} files of 1 and of {options.devices} devices are the same to the byte"
        if found[1] != found[options.devices]:
            print("FAILED: the devices wrote other files, so no speed is reported", file=sys.stderr)
            return 1
        rates: dict[int, list[float]] = {k: [] for k in sides}
        for repeat in range(options.repeats):
            for k in sides:
                report, _ = expand(photos, Path(folder) / f"out{k}-{repeat}", k, options, options.copies)
                rates[k].append(report.rate)
                print(f"{k} device(s): {report.rate:,.0f} images/s", file=sys.stderr)
    medians = {k: statistics.median(rates[k]) for k in sides}
    ratio = medians[options.devices] / medians[1]
    record |= {"images_per_second": rates, "ratio": ratio, "asked": TARGET * options.devices}
    print(f"W5, {options.layout}: {record['inputs']}, {options.copies} copies; {record['check']}")
    for k in sides:
        print(f"  {k} device(s): {medians[k]:,.0f} images/s ({min(rates[k]):,.0f} - {max(rates[k]):,.0f})")
    met = "met" if ratio >= record["asked"] else "missed"
    print(f"  {ratio:.2f}x of one device, asked {record['asked']:.2f}x: {met}")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"w5-{options.layout}.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0


def lay(folder: Path, images: Path) -> tuple[Path, str]:
    jpegs, what = read_jpegs(images)
    for number, data in enumerate(jpegs):
        path = folder / "photos" / f"class{number % 10}" / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / "photos", what


def expand(
    photos: Path, out: Path, devices: int, options: argparse.Namespace, copies: int
) -> tuple[Report, dict[str, str]]:
    transform = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.RandAugment(2, 9)])
    plan = Plan(open_folder(photos), transform, copies, layout=options.layout, place="photos")
    engine = Engine([f"cpu:{n}" for n in range(devices)], "process", ordered=False, num_threads=1)
    report = Expansion(plan, out, engine, on_error="raise").run()
    names = sorted(path for path in out.rglob("*") if path.is_file())
    return report, {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in names}


if __name__ == "__main__":
    sys.exit(main())
