"""``variegate check SRC``."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from variegate.cli.console import (
    FAILED,
    INTERRUPTED,
    CountingBar,
    cell,
    fail,
    interrupt_sets,
    note,
    print_facts,
    print_json,
    say,
    stdout,
    table_of,
    warnings_as_notes,
)
from variegate.cli.options import CommandOptions, ExcludeOptions
from variegate.formats.kinds import IMAGES_HELP
from variegate.options import option, same_option
from variegate.options.checking import CheckingOptions

if TYPE_CHECKING:
    from variegate.apps.curate.findings import DataFinding
    from variegate.apps.curate.result import CheckResult

_EXAMPLES = 3


@dataclass(frozen=True, kw_only=True)
class CheckOptions(CheckingOptions, ExcludeOptions, CommandOptions):
    src: str = option(..., IMAGES_HELP, "Arguments", metavar="SRC")
    test: str | None = option(
        None, "Images that a model will be tested with; those of SRC among them are leaks.", "Images", metavar="SRC2"
    )
    out: Path | None = same_option(CheckingOptions, "out", default=Path("findings.parquet"))


def check(options: CheckOptions) -> None:
    """Find what would hurt a training: images that do not decode, are blank, blurred, of an odd size, or there twice;
    classes that are out of balance; test images among those of the training.

    Every image is read and decoded once, on all cores. The exit code is 1 where something serious is found. After an
    interruption of any kind the same command goes on. `variegate clean` leaves out what you choose.
    """
    from variegate.apps.curate.checking import Checking

    stop = threading.Event()
    checking = Checking(options.place, options.test, options)
    with CountingBar(options.as_json) as bar, interrupt_sets(stop), warnings_as_notes(bar.console):
        task = bar.add_task("checking", total=None)
        done = [0, 0]

        def show(what: str, count: int, total: int) -> None:
            if what == "checking":
                done[:] = count, total
            bar.update(task, description=what, completed=count, total=total or None)

        try:
            result = checking.run(show, stop)
        except KeyboardInterrupt:
            of = f" of {done[1]:,}" if done[1] else ""
            message = f"interrupted: {done[0]:,}{of} images are checked; the same command goes on"
            raise fail(message, INTERRUPTED, options.as_json) from None
    if options.as_json:
        print_json(_object(result))
    else:
        note(*result.notes)
        _print(result, options)
    if result.is_serious:
        raise typer.Exit(FAILED)


def _object(result: CheckResult) -> dict[str, Any]:
    rate = result.images_per_second
    return {
        "images": result.images,
        "splits": result.splits,
        "findings": [_fields(one) for one in result.findings],
        "counts": result.counts,
        "classes": result.classes,
        "mean": result.mean,
        "std": result.std,
        "thresholds": asdict(result.thresholds),
        "notes": result.notes,
        "resumed": result.resumed,
        "seconds": round(result.seconds, 3),
        "images_per_second": None if rate is None else round(rate, 1),
        "out": result.out,
        "report": result.report,
    }


def _fields(one: DataFinding) -> dict[str, Any]:
    """The index is left out: names are what lists and other programs know images by."""
    return {
        **{"file": one.file, "finding": one.finding, "measure": one.measure, "group": one.group, "why": one.why},
        "split": one.split,
    }


def _print(result: CheckResult, options: CheckOptions) -> None:
    from variegate.apps.curate.findings import FINDING_KINDS

    if result.findings:
        table = table_of(("finding", "number", "", "for example"))
        table.columns[2].justify = table.columns[3].justify = "left"
        for name, count in result.counts.items():
            examples = [one for one in result.findings if one.finding == name]
            serious = "serious" if FINDING_KINDS[name].is_serious else ""
            table.add_row(name, f"{count:,}", serious, cell("; ".join(_examples(examples))))
        stdout().print(table)
    else:
        say("nothing was found")
    print_facts(list(_facts(result)))
    found = {one.finding for one in result.findings if one.file is not None and one.split == "train"}
    dropped = sorted(filter(_is_dropped, found), key=_seriousness)
    if dropped and result.out is not None:
        src, table_file = shlex.quote(options.src), shlex.quote(result.out)
        say(f"next: variegate clean {src} DST --from {table_file} --drop {','.join(dropped)}")


def _is_dropped(name: str) -> bool:
    """What few data sets want to keep; dark or tiny images may be what a model is to learn from."""
    from variegate.apps.curate.findings import FINDING_KINDS

    return FINDING_KINDS[name].is_serious or name == "duplicates"


def _seriousness(name: str) -> tuple[bool, int]:
    from variegate.apps.curate.findings import FINDING_KINDS

    return not FINDING_KINDS[name].is_serious, list(FINDING_KINDS).index(name)


def _examples(findings: Sequence[DataFinding]) -> Iterator[str]:
    for one in findings[:_EXAMPLES]:
        yield one.why if one.file is None else one.file if one.split == "train" else f"{one.file} ({one.split})"
    if len(findings) > _EXAMPLES:
        yield "..."


def _facts(result: CheckResult) -> Iterator[tuple[str, str]]:
    from variegate.apps.curate.findings import BESIDE

    splits = result.splits
    each = [f"{count:,} ({BESIDE.get(split, split)})" for split, count in splits.items()]
    yield "images", ", ".join(each) if len(each) > 1 else f"{result.images:,}"
    sizes = result.class_sizes
    if len(sizes) > 1:
        yield "classes", _classes(sizes)
    if result.mean is not None and result.std is not None:
        yield "mean", ", ".join(f"{one:.4f}" for one in result.mean)
        yield "std", ", ".join(f"{one:.4f}" for one in result.std)
    if result.resumed:
        yield "before", f"{result.resumed:,} (by an earlier run)"
    if (rate := result.images_per_second) is not None:
        yield "images/s", f"{rate:,.1f} ({result.pass_seconds:.1f} s)"
    if result.out is not None:
        yield "where", result.out
    if result.report is not None:
        yield "report", result.report


def _classes(sizes: dict[str, int]) -> str:
    most, fewest = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    if sizes[most] == sizes[fewest]:
        return f"{len(sizes):,}, of {sizes[most]:,} images each"
    return f"{len(sizes):,}, of {sizes[fewest]:,} ({fewest}) to {sizes[most]:,} images ({most})"
