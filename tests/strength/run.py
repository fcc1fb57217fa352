"""Plant each defect in a copy of the repository, and see whether the tests notice.

    python -m tests.strength.run [NAME-SUBSTRING ...] [--jobs 2] [--whole] [--out FILE.jsonl]

A defect counts as caught only if the test that failed first passes without it. The exit status is 1 where a defect
survived, or was written for code that is no longer there.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.strength.all_defects import DEFECTS
from tests.strength.defect import Defect, StaleDefect, planted
from tests.strength.slot import Outcome, Slot, copy_clean

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER_SECONDS = 300.0
WHOLE_SECONDS = 3600.0
# The defects' own test fails on every defect, as the code that it looks for is gone.
WHOLE = ("-m", "not slow", "--numprocesses", "auto", "--dist", "loadgroup", "--ignore", "tests/strength")

CAUGHT, HUNG, SURVIVED, STALE, UNSOUND = "caught", "caught by hang", "SURVIVED", "STALE", "UNSOUND"


@dataclass(frozen=True)
class Verdict:
    """What became of one defect. ``test`` is what noticed it, or was running when the time was over."""

    name: str
    status: str
    test: str
    seconds: float

    def __str__(self) -> str:
        by = f" by {self.test}" if self.status in (CAUGHT, HUNG) else f": {self.test}" if self.test else ""
        return f"{self.name}  {self.status}{by}  {self.seconds:.0f} s"


def judge(defect: Defect, slot: Slot, whole: bool) -> Verdict:
    """Run the defect's tests, and where they pass the whole suite if ``whole``."""
    begin = time.monotonic()
    try:
        path, text = planted(defect, ROOT)
    except StaleDefect as error:
        return Verdict(defect.name, STALE, str(error), time.monotonic() - begin)
    slot.restore()
    slot.plant(path.relative_to(ROOT), text)
    outcome = slot.run_tests(["-n", "0", *defect.tests], FOLDER_SECONDS)
    if outcome.code == 0 and whole:
        outcome = slot.run_tests(list(WHOLE), WHOLE_SECONDS)
    status, test = _told(outcome, slot)
    return Verdict(defect.name, status, test, time.monotonic() - begin)


def _told(outcome: Outcome, slot: Slot) -> tuple[str, str]:
    if outcome.code == 0:
        return SURVIVED, ""
    if outcome.code is None:
        return HUNG, outcome.last_begun or "the collection"
    # A process that crashed has no failure; it was busy with the test that began last.
    test = outcome.failed or outcome.uncollected or outcome.last_begun
    if test is None:
        return UNSOUND, f"pytest ended with {outcome.code} before it began a test"
    slot.restore()
    wanted = ["--collect-only"] if outcome.failed is None and outcome.uncollected is not None else []
    if slot.run_tests(["-n", "0", *wanted, test], FOLDER_SECONDS).code != 0:
        return UNSOUND, f"{test} fails without the defect too"
    return CAUGHT, test


@contextmanager
def _slots(jobs: int) -> Iterator[queue.Queue[Slot]]:
    with tempfile.TemporaryDirectory(prefix="variegate-strength-", ignore_cleanup_errors=True) as folder:
        copy_clean(ROOT, Path(folder, "clean"))
        slots = [Slot(Path(folder, "clean"), Path(folder, f"slot{number}")) for number in range(jobs)]
        free: queue.Queue[Slot] = queue.Queue()
        for slot in slots:
            free.put(slot)
        try:
            yield free
        finally:
            for slot in slots:
                slot.close()


def run(defects: list[Defect], jobs: int, whole: bool, out: Path | None) -> list[Verdict]:
    """Judge all ``defects``, ``jobs`` at a time, and tell of each as it is done."""
    verdicts: list[Verdict] = []
    # The slots are closed first, so that nobody waits for what runs in them after Ctrl-C.
    with ThreadPoolExecutor(jobs) as pool, _slots(jobs) as free:

        def work(defect: Defect) -> None:
            slot = free.get()
            try:
                verdict = judge(defect, slot, whole)
            finally:
                free.put(slot)
            verdicts.append(verdict)
            print(verdict, flush=True)
            if out is not None:
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(verdict)) + "\n")

        futures = [pool.submit(work, defect) for defect in defects]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return verdicts


def main() -> int:
    """Read the command line -> the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.strength.run", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME-SUBSTRING", help="only defects whose names hold one of these")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (default: 2)")
    parser.add_argument("--whole", action="store_true", help="run the whole suite on defects that their tests let pass")
    parser.add_argument("--out", type=Path, metavar="FILE.jsonl", help="append a line of JSON for each defect")
    options = parser.parse_args()
    chosen = [d for d in DEFECTS if not options.names or any(name in d.name for name in options.names)]
    if not chosen or options.jobs < 1:
        parser.error(f"no defect's name holds any of {options.names}" if not chosen else "--jobs: at least 1")
    begin = time.monotonic()
    verdicts = run(chosen, options.jobs, options.whole, options.out)
    counts = Counter(verdict.status for verdict in verdicts)
    told = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    print(f"{len(verdicts)} defects: {told}; {time.monotonic() - begin:.0f} s")
    return 0 if set(counts) <= {CAUGHT, HUNG} else 1


if __name__ == "__main__":
    sys.exit(main())
