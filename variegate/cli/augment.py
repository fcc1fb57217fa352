"""``variegate augment SRC DST``, and the progress of every command that expands a data set."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rich.console import RenderableType

from variegate.cli.console import (
    INTERRUPTED,
    CommandError,
    CountingBar,
    emit_json,
    note,
    print_facts,
    say,
    table_of,
    working,
)
from variegate.cli.options import MOST_EPOCH, PolicyOptions, SourceOptions, device_list
from variegate.options import option
from variegate.options.datasets import DeviceOptions, ResumeOptions, TargetOptions

if TYPE_CHECKING:
    from variegate.jobs.augment import Expansion, Report
    from variegate.targets.settings import Targets
    from variegate.workers.scheduler import DeviceSnapshot

_SHOW_EVERY = 0.25
_JSON_EVERY = 1.0
_MOST_DEVICES = 16


@dataclass(frozen=True, kw_only=True)
class AugmentOptions(ResumeOptions, DeviceOptions, TargetOptions, SourceOptions, PolicyOptions):
    dst: str = option(
        ..., "Output folder or URL, created if missing. It must not be inside SRC.", "Arguments", metavar="DST"
    )
    copies: int = option(1, "Augmented copies of each image.", "Augmentation", low=1)
    seed: int = option(0, "Seed for the augmentation.", "Augmentation", low=0)
    epoch: int = option(
        0,
        "Epoch to augment for: it changes the augmentation, and selects the policy of a schedule.",
        "Augmentation",
        low=0,
        high=MOST_EPOCH,
    )
    layout: Literal["auto", "folder", "webdataset", "parquet"] = option(
        "auto",
        "Output layout: class folders, .tar shards (webdataset) or .parquet shards. auto keeps the layout of "
        "annotated data and writes class folders otherwise.",
        "Output",
    )
    shard_size: int = option(1000, "Approximate number of images per shard.", "Output", low=1)
    format: Literal["jpg", "png", "webp", "tif", "npy"] = option(
        "jpg", "Image file format. tif and npy hold any number of channels.", "Output"
    )
    quality: int = option(95, "JPEG or WebP quality.", "Output", low=1, high=100)
    channels: int | None = option(
        None,
        "Channels that every file must have: 4 reads alpha, other numbers TIFF or NumPy files.",
        "Images",
        low=1,
        high=32,
    )
    index: str = option(
        "auto",
        "Read crops of JPEGs through an index if --copies is 1: the one that variegate index wrote, if any (auto), "
        "none, or a file.",
        "Devices",
        metavar="auto|none|FILE",
    )
    ordered: bool = option(False, "Write images in the order of SRC. Shards are always in order.", "Running")


def augment(options: AugmentOptions) -> None:
    """Write augmented copies of a data set.

    Runs on all devices of this machine, or on a Ray cluster. DST receives the images, manifest.parquet (operations,
    arguments and checksum of each image) and variegate.json (the settings). Boxes, masks and key points (--annotations)
    are written in the layout of SRC.

    The output depends on SRC, the policy, the size, the seed and the epoch, but not on devices, workers or threads.
    To resume an interrupted run, run the same command again; the resulting files are the same. After a finished run,
    it writes deleted or truncated files again. `variegate verify DST` finds damage inside files.
    """
    from variegate.io.addresses import shown
    from variegate.jobs.arguments import absolute_place, build_transform, open_by_index, parse_size, policy_notes

    transform = build_transform(options.policy, parse_size(options.size))
    source = open_by_index(options.place, options.on_error, options.annotations)
    # Only now what takes longest.
    from variegate.jobs.augment import Expansion, check_apart, plan_for
    from variegate.jobs.engine import Engine

    check_apart(options.src, options.dst)
    plan = plan_for(
        source,
        transform,
        options.copies,
        options.seed,
        options.epoch,
        layout=options.layout,
        format=options.format,
        quality=options.quality,
        shard_size=options.shard_size,
        annotations=options.annotations,
        channels=options.channels,
        place=absolute_place(options.src),
        targets=targets_of(options),
    )
    engine = Engine(
        device_list(options.devices),
        options.workers,
        options.allocation,
        options.steal,
        options.ordered,
        num_threads=options.threads,
        address=options.address,
    )
    index = None if options.index.lower() == "none" else options.index
    expansion = Expansion(plan, options.dst, engine, options.on_error, options.resume, index=index)
    if not options.as_json:
        note(*source.notes(), *policy_notes(options.policy, options.size, options.epoch))
    run_expansion(expansion, options.as_json, is_announced=True)
    if expansion.report.written + expansion.report.resumed == 0:
        raise CommandError(
            f"{shown(options.src)}: none of its {len(source):,} images could be read; nothing was written"
        )


def targets_of(options: TargetOptions) -> Targets | None:
    """Settings of targets; None where all are defaults."""
    from variegate.targets.settings import Targets

    found = Targets(min_area=options.min_area, min_visibility=options.min_visibility, mask_fill=options.mask_fill)
    return None if found == Targets() else found


def run_expansion(expansion: Expansion, as_json: bool, summary: bool = True, is_announced: bool = False) -> None:
    """Run with progress and print the summary. Raises CommandError where it did not finish."""
    from variegate.errors import DecodeError
    from variegate.workers.protocol import EngineError

    report = expansion.report
    if as_json and is_announced:
        source = expansion.plan.source
        counts = {"files": len(source), "classes": len(source.classes), "total": report.total}
        emit_json("start", **counts, devices=list(expansion.engine.devices))
    error: DecodeError | EngineError | OSError | None = None
    view = ExpansionView(expansion, as_json)
    with working(view, expansion.stop):
        expansion.on_progress = view
        try:
            expansion.run()
        except (DecodeError, EngineError, OSError) as caught:
            error = caught
    done = report.written + report.resumed
    if (summary and error is None) or done or report.is_interrupted:
        _print_summary(report, str(expansion.destination), as_json)
    if error is not None:
        kept = f"; the {report.written:,} images written are kept" if report.written else ""
        hint = " (--on-error skip skips such files)" if isinstance(error, DecodeError) else ""
        again = " (to resume, run the same command again)" if kept and not hint else ""
        raise CommandError(f"{error}{kept}{hint}{again}") from error
    if report.is_interrupted:
        raise _interruption(done, report.total)


def _interruption(done: int, total: int) -> CommandError:
    rest = f"interrupted: {done:,} of {total:,} images are written; to resume, run the same command again"
    return CommandError(rest, INTERRUPTED)


def _print_summary(report: Report, destination: str, as_json: bool) -> None:
    from variegate.io.addresses import shown

    where = shown(destination)
    if as_json:
        emit_json(
            "interrupted" if report.is_interrupted else "done",
            files=report.files,
            written=report.written,
            resumed=report.resumed,
            repaired=report.repaired,
            skipped=len(report.skipped),
            seconds=round(report.seconds, 3),
            images_per_second=round(report.rate, 1),
            destination=where,
        )
        return
    before = f" (and {report.missing:,} by an earlier run)" if report.missing and not report.skipped else ""
    print_facts(
        [
            ("files in", f"{report.files:,}"),
            ("written", f"{report.written:,}"),
            *earlier_facts(report),
            ("skipped", f"{len(report.skipped):,}{before}"),
            *rate_fact(report),
            ("where", where),
        ]
    )


def earlier_facts(report: Report) -> Iterable[tuple[str, str]]:
    """Counts of outputs that an earlier run wrote, and of those that were made again."""
    if report.resumed:
        yield "before", f"{report.resumed:,} (by an earlier run)"
    if report.repaired:
        yield "repaired", f"{report.repaired:,} (were missing or had another size)"


def rate_fact(report: Report) -> Iterable[tuple[str, str]]:
    if report.written and report.seconds:
        yield "images/s", f"{report.rate:,.1f} ({report.seconds:.1f} s)"


class ExpansionView(CountingBar):
    """Progress of an expansion, called with its report: a bar and a table of devices, or lines of JSON."""

    def __init__(self, expansion: Expansion, as_json: bool) -> None:
        self._per_item = expansion.plan.num_outputs / expansion.plan.num_items
        self._as_json = as_json
        self._verb = expansion.verb
        self._devices: list[DeviceSnapshot] = []
        self._skipped_shown = 0
        self._shown = time.monotonic()
        fields = {"rate": "", "quarantined": ""}
        templates = [f"{{task.fields[{name}]}}" for name in fields]
        super().__init__(as_json, "starting", *templates, total=expansion.report.total, **fields)

    def __call__(self, report: Report) -> None:
        for name, reason in report.skipped[self._skipped_shown :]:
            if self._as_json:
                emit_json("skipped", source=name, reason=reason)
            else:
                say(f"skipped {name}: {reason}", self.console)
        self._skipped_shown = len(report.skipped)
        now = time.monotonic()
        if now - self._shown < (_JSON_EVERY if self._as_json else _SHOW_EVERY):
            return
        self._shown = now
        if self._as_json:
            emit_json("progress", **self._facts(report))
        elif not self.disable:
            if report.snapshot is not None:
                self._devices = report.snapshot.devices
            self.show(
                report.written + report.resumed + report.missing,
                description=self._verb if report.written else "starting",
                rate=f"{report.rate:,.0f} images/s" if report.written else "",
                quarantined=f"{len(report.skipped):,} quarantined" if report.skipped else "",
            )

    def _facts(self, report: Report) -> dict[str, Any]:
        left = report.total - report.written - report.resumed - report.missing
        return {
            "written": report.written,
            "resumed": report.resumed,
            "total": report.total,
            "images_per_second": round(report.rate, 1),
            "eta_seconds": round(left / report.rate, 1) if report.rate > 0 else None,
            "quarantined": len(report.skipped),
            "devices": [
                device._asdict()
                | {"rate": round(device.rate * self._per_item, 1), "done": round(device.done * self._per_item)}
                for device in (report.snapshot.devices if report.snapshot is not None else ())
            ],
        }

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        if not self._devices:
            return
        table = table_of(("device", "images/s", "queue", "in flight", "images", "stolen", "lost"))
        for device in self._devices[:_MOST_DEVICES]:
            name = device.name if device.state == "ready" else f"{device.name} ({device.state})"
            rate = f"{device.rate * self._per_item:,.0f}" if device.rate else ""
            done = round(device.done * self._per_item)
            counts = (device.queued, device.in_flight, done, device.steals, device.losses)
            table.add_row(name, rate, *(f"{count:,}" for count in counts))
        if len(self._devices) > _MOST_DEVICES:
            table.add_row(f"and {len(self._devices) - _MOST_DEVICES:,} more")
        yield table
