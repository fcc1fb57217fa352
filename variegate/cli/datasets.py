"""Commands on data sets: ``variegate check``, ``variegate clean`` and ``variegate pack``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from variegate.cli import console
from variegate.cli.augment import earlier_facts, none_could_be_read, print_start, rate_fact, run_expansion
from variegate.cli.console import CommandError, emit_json, note, print_key_values, print_line
from variegate.cli.options import CommandOptions, NewFolder, SourceOptions
from variegate.cli.render import rendering
from variegate.io.amounts import format_size, pluralize
from variegate.options import Opt
from variegate.options.datasets import CheckingOptions, CleaningOptions, PackingOptions

if TYPE_CHECKING:
    from variegate.apps.check.cleaning import Cleaned
    from variegate.apps.check.findings import CheckResult
    from variegate.jobs.pack import Packing

_EXAMPLES = 3


@dataclass(frozen=True, kw_only=True)
class CheckOptions(CheckingOptions, SourceOptions, CommandOptions):
    test: Annotated[
        str | None,
        Opt("Test data set. Its images that are also in SRC are reported as leaks.", "Images", metavar="SRC2"),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.out is None and not self.as_json:
            object.__setattr__(self, "out", Path("findings.parquet"))


def check(options: CheckOptions) -> None:
    """Find corrupt, duplicate, leaked and unusual images in a data set.

    Each image is read and decoded once, on all cores. Findings are images that do not decode, are blank or blurred,
    have an unusual size, or occur twice. They are also test images (--test) in SRC, and imbalanced classes.

    The exit code is 1 if a finding is serious. To resume an interrupted check, run the same command again.
    `variegate clean` lists the images of the findings that you choose, to leave them out.

    Examples:
        variegate check photos --report report.html
        variegate check train --test test --near-distance 4
    """
    from variegate.apps.check.checking import Checking

    checking = Checking(options.place, options.test, options)
    with rendering(options.as_json) as render:
        try:
            result = checking.run(render, render.stop)
        except KeyboardInterrupt:
            message = f"interrupted: checked {checking.checked:,} of {pluralize(checking.total, 'image')}"
            raise CommandError(f"{message}; to resume, run the same command again", console.INTERRUPTED) from None
    if options.as_json:
        console.print_json(_described(result))
    else:
        console.note(*result.notes)
        _print_checked(result, options.src)
    if result.is_serious:
        raise typer.Exit(console.FAILED)


def _described(result: CheckResult) -> dict[str, Any]:
    rate = result.images_per_second
    columns = ("file", "finding", "measure", "group", "why", "split")
    return {
        "images": result.images,
        "splits": result.splits,
        # Without indices: names are what lists and other programs know images by.
        "findings": [{name: getattr(one, name) for name in columns} for one in result.findings],
        "counts": result.counts,
        "classes": result.classes,
        "depths": result.depths,
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


def _print_checked(result: CheckResult, src: str) -> None:
    from variegate.apps.check.findings import FINDING_KINDS

    if result.findings:
        rows = []
        for name, count in result.counts.items():
            found = [one for one in result.findings if one.finding == name]
            examples = [
                one.why if one.file is None else one.file if one.split == "train" else f"{one.file} ({one.split})"
                for one in found[:_EXAMPLES]
            ]
            serious = "serious" if FINDING_KINDS[name].is_serious else ""
            text = "; ".join([*examples, *["..."] * (len(found) > _EXAMPLES)])
            rows.append((name, f"{count:,}", serious, text))
        console.stdout().print(console.ConsoleTable(("finding", "count", "", "examples"), rows, left=("", "examples")))
    else:
        print_line("no findings")
    print_key_values(_facts(result))
    if result.suggested_drop and result.out is not None:
        table_file = shlex.quote(result.out)
        print_line(
            f"next: variegate clean {shlex.quote(src)} --from {table_file} --drop {','.join(result.suggested_drop)}"
        )


def _facts(result: CheckResult) -> Iterator[tuple[str, str]]:
    from variegate.apps.check.findings import BYTE, SPLIT_TITLES

    each = [f"{count:,} ({SPLIT_TITLES.get(split, split)})" for split, count in result.splits.items()]
    yield "images", ", ".join(each) if len(each) > 1 else f"{result.images:,}"
    sizes = result.class_sizes
    if len(sizes) > 1:
        most = max(sizes, key=sizes.__getitem__)
        fewest = min(sizes, key=sizes.__getitem__)
        largest = pluralize(sizes[most], "image")
        is_balanced = sizes[most] == sizes[fewest]
        each_size = f"{largest} each" if is_balanced else f"{sizes[fewest]:,} ({fewest}) to {largest} ({most})"
        yield "classes", f"{len(sizes):,}, of {each_size}"
    if depths := {depth: count for depth, count in result.depths.items() if list(result.depths) != [BYTE]}:
        yield "depth", ", ".join(f"{count:,} {depth}" for depth, count in depths.items())
    if result.mean is not None and result.std is not None:
        yield "mean", ", ".join(f"{one:.4f}" for one in result.mean)
        yield "std", ", ".join(f"{one:.4f}" for one in result.std)
    if result.resumed:
        yield "before", f"{result.resumed:,} (by an earlier run)"
    if (rate := result.images_per_second) is not None:
        yield "images/s", f"{rate:,.1f} ({result.pass_seconds:.1f} s)"
    yield from ((name, path) for name, path in (("where", result.out), ("report", result.report)) if path is not None)


@dataclass(frozen=True, kw_only=True)
class CleanOptions(CleaningOptions, SourceOptions, CommandOptions):
    pass


def clean(options: CleanOptions) -> None:
    """List the images to exclude, by the findings of `check`.

    The list has a line per image, with its name and the reasons. Every command reads it as `--exclude FILE`, so that
    `variegate pack SRC DST --exclude FILE` makes a copy without these images. SRC is not changed. One image of each
    group of duplicates stays: the one with the most pixels, then the most bytes, then the first.

    Examples:
        variegate clean photos --from findings.parquet
        variegate clean photos --from findings.parquet --drop corrupt,duplicates
    """
    if options.findings is None:
        raise ValueError("--from: is missing; accepted: the findings.parquet that variegate check wrote")
    from variegate.apps.check.cleaning import open_checked, write_list
    from variegate.apps.check.selection import parse_drop

    kinds = parse_drop(options.drop) if options.drop.strip() else ()
    found, opened = open_checked(options.place, options.findings, options.split)
    if not kinds:
        named = ", ".join(f"{name} ({count:,})" for name, count in found.counts().items())
        choices = f"{found.place} has: {named}; accepted: such names separated by commas, or all"
        nothing = f"and {found.place} has no findings that can be dropped"
        raise CommandError(f"--drop: is missing; {choices if named else nothing}", console.BAD_INPUT)
    cleaned = write_list(options.place, opened, found, kinds, options.out)
    _print_cleaned(cleaned, options)


def _print_cleaned(cleaned: Cleaned, options: CleanOptions) -> None:
    num_left_out = len(cleaned.left_out)
    num_kept = cleaned.images - num_left_out
    out = str(cleaned.out)
    if options.as_json:
        counts = cleaned.counts
        emit_json("done", images=cleaned.images, kept=num_kept, left_out=num_left_out, counts=counts, out=out)
        return
    note(*cleaned.notes)
    for kind, count in cleaned.counts.items():
        examples = [image for image in cleaned.left_out if kind in image.findings][:_EXAMPLES]
        names = [
            f"{image.file} ({image.kept} is kept)" if image.kept and kind != "leaks" else image.file
            for image in examples
        ]
        more = f" and {count - _EXAMPLES:,} more" if count > _EXAMPLES else ""
        print_line(f"{kind}: {count:,} left out, {', '.join(names)}{more}")
    print_key_values(
        [
            ("images", f"{cleaned.images:,}"),
            ("left out", f"{num_left_out:,}"),
            ("kept", f"{num_kept:,}"),
            ("list", out),
        ]
    )
    print_line(f"next: variegate pack {shlex.quote(options.src)} DST --exclude {shlex.quote(out)}")


@dataclass(frozen=True, kw_only=True)
class PackOptions(PackingOptions, SourceOptions, CommandOptions):
    dst: NewFolder


def pack(options: PackOptions) -> None:
    """Pack a data set into shards that load faster.

    Images are shrunk, re-encoded or stored as raw pixels, on all devices. DST also receives the mean and standard
    deviation for Normalize("dataset"), and an index of the JPEGs for Loader(index="auto"). `variegate verify DST`
    compares its files with checksums. To resume an interrupted run, run the same command again.

    Examples:
        variegate pack photos packed --size 256
        variegate pack photos packed --exclude excluded.txt --keep-jpeg
        variegate pack scans packed --format raw --depth uint16
    """
    from variegate.io.addresses import redact_url
    from variegate.jobs.pack import open_packing

    packing = open_packing(options.place, options.dst, options)
    if not options.as_json:
        note(*packing.plan.source.notes())
    print_start(packing, options.as_json)
    run_expansion(packing, options.as_json)
    if not packing.packed.images:
        reason = none_could_be_read(packing.report.files, packing.packed.skipped)
        raise CommandError(f"{redact_url(options.src)}: {reason}")
    _print_packed(packing, options.as_json)


def _print_packed(packing: Packing, as_json: bool) -> None:
    from variegate.io.addresses import redact_url

    packed = packing.packed
    report = packing.report
    where = redact_url(str(packing.destination))
    found = packed.statistics
    statistics = {} if found is None else {"mean": found.mean, "std": found.std}
    if as_json:
        emit_json(
            "done",
            files=report.files,
            images=packed.images,
            skipped=len(packed.skipped),
            resumed=report.resumed,
            repaired=report.repaired,
            kept=packed.kept,
            shards=packed.shards,
            bytes_before=packed.bytes_before,
            bytes_after=packed.bytes_after,
            index_bytes=packed.index_bytes,
            saved=round(packed.saved, 4),
            **statistics,
            seconds=round(report.seconds, 3),
            destination=where,
        )
        return
    facts = [("images", f"{packed.images:,} in {pluralize(packed.shards, 'shard')}")]
    facts += earlier_facts(report)
    if packed.skipped:
        facts.append(("skipped", f"{len(packed.skipped):,}"))
    if packed.kept:
        encoded = packed.images - packed.kept
        facts.append(
            ("kept", f"{pluralize(packed.kept, 'JPEG file')} unchanged; {pluralize(encoded, 'other image')} encoded")
        )
    saved = f"{packed.saved:.1%} saved" if packed.saved >= 0 else f"{-packed.saved:.1%} more"
    facts.append(("bytes", f"{format_size(packed.bytes_before)} -> {format_size(packed.bytes_after)} ({saved})"))
    if packed.index_bytes:
        facts.append(
            ("index", f"{format_size(packed.index_bytes)} ({packed.index_bytes / packed.bytes_after:.1%} of that)")
        )
    facts += [(name, ", ".join(f"{one:.4f}" for one in values)) for name, values in statistics.items()]
    facts += rate_fact(report)
    print_key_values([*facts, ("where", where)])
