"""``python -m benchmarks.run expand``: W5, a data set expanded over k devices, compared with one device.

JPEG files in class folders -> RandomResizedCrop(224), flip, RandAugment(2, 9) -> JPEG files, each written, synced and
in the manifest. Every device is a process with one thread. Both sides run in turn, after a check that they write the
same bytes; the start of the processes is not part of the rate.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.inputs import read_jpegs, write_photos
from benchmarks.run import add_images
from variegate import transforms as T
from variegate.data.folder import open_folder
from variegate.jobs.augment import Expansion, Plan
from variegate.jobs.engine import Engine

TARGET = 0.95  # of k


def main(name: str, arguments: Sequence[str], command: str) -> int:
    """Exit code 1 if the check failed; speed itself never fails a run."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.run {name}", description=__doc__)
    parser.add_argument("--devices", type=int, default=2, help="k, cpu:0 to cpu:k-1 (2)")
    parser.add_argument("--layout", default="folder", choices=("folder", "webdataset", "parquet"))
    parser.add_argument("--copies", type=int, default=8, help="of every photo (8)")
    parser.add_argument("--repeats", type=int, default=3, help="measured runs of each side (3)")
    add_images(parser)
    parser.add_argument("--out", type=Path, help="a folder for the record as JSON")
    options = parser.parse_args(arguments)
    record: dict[str, Any] = {
        "work": "w5",
        "machine": machine.describe(),
        "layout": options.layout,
        "command": command,
    }
    sides = (1, options.devices)
    rates: dict[int, list[float]] = {k: [] for k in sides}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        jpegs, record["inputs"] = read_jpegs(options.images)
        write_photos(jpegs, folder / "photos")
        digests = [expand(folder, f"check{k}", k, options.layout, copies=1)[1] for k in sides]
        if digests[0] != digests[1]:
            print("FAILED: the devices wrote other files, so no speed is reported")
            return 1
        for repeat in range(options.repeats):
            for k in sides:
                rates[k].append(expand(folder, f"out{k}-{repeat}", k, options.layout, options.copies)[0])
    record["check"] = f"{len(digests[0]):,} files of 1 and of {options.devices} devices are the same to the byte"
    medians = {k: statistics.median(rates[k]) for k in sides}
    ratio = medians[options.devices] / medians[1]
    asked = TARGET * options.devices
    record |= {"images_per_second": rates, "ratio": ratio, "asked": asked}
    print(f"W5, {options.layout}: {record['inputs']}, {options.copies} copies; {record['check']}")
    for k in sides:
        print(f"  {k} device(s): {medians[k]:,.0f} images/s ({min(rates[k]):,.0f} - {max(rates[k]):,.0f})")
    print(f"  {ratio:.2f}x of one device, asked {asked:.2f}x: {'met' if ratio >= asked else 'missed'}")
    if options.out is not None:
        report.write(record, options.out, f"w5-{options.layout}")
    return 0


def expand(folder: Path, name: str, devices: int, layout: Any, copies: int) -> tuple[float, dict[str, str]]:
    """-> images per second, and a checksum of every file."""
    transform = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.RandAugment(2, 9)])
    plan = Plan(open_folder(folder / "photos"), transform, copies, layout=layout, place="photos")
    engine = Engine([f"cpu:{n}" for n in range(devices)], "process", ordered=False, num_threads=1)
    out = folder / name
    rate = Expansion(plan, out, engine, on_error="raise").run().rate
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return rate, {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
