"""``python -m tests.soak.kill_augment --kills 50``: kill -9 at random moments, of the parent and of workers in turn.

After every other kill the same command runs again, and files and manifest are compared, byte by byte, with those of a
run that nobody killed. Linux only. Ends with exit code 1 at the first difference.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.soak.kills import TARGETS, Kills
from variegate.apps.demo import write_photos


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--copies", type=int, default=40, help="of each of 36 photos")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layout", default="folder", choices=("folder", "webdataset", "parquet"))
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        photos = Path(folder) / "photos"
        write_photos(photos)
        options = ["--copies", str(given.copies), "--size", "128", "--layout", given.layout, "--shard-size", "100"]
        kills = Kills(photos, Path(folder), [*options, "--devices", "cpu:0,cpu:1"], given.seed)
        print(
            f"{given.layout}: a run takes {kills.seconds:.1f} s after its start, {len(kills.expected)} files",
            flush=True,
        )
        number = 0
        while sum(kills.killed.values()) < given.kills:
            kills.kill(TARGETS[number % 2])
            number += 1
            print(f"killed {kills.killed}, compared {kills.compared}", flush=True)
        kills.complete()
        print(f"{kills.compared} destinations, all the same as without kills")


if __name__ == "__main__":
    main()
