"""``variegate augment SRC DST``, and the progress of every command that expands a data set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from variegate.cli.console import INTERRUPTED, CommandError, ConsoleTable, emit_json, note, print_key_values
from variegate.cli.options import ImportOptions, NewFolder, SourceOptions
from variegate.cli.render import COMMON_LOOKS, Bar, Look, Looks, rendering
from variegate.io.amounts import pluralize
from variegate.options.datasets import ExpansionOptions

if TYPE_CHECKING:
    from variegate.jobs.augment import Expansion, ExpansionProgress, Report
    from variegate.workers.scheduler import DeviceSnapshot

_MOST_DEVICES = 16


@dataclass(frozen=True, kw_only=True)
class AugmentOptions(ExpansionOptions, SourceOptions, ImportOptions):
    dst: NewFolder


def augment(options: AugmentOptions) -> None:
    """Write augmented copies of a data set.

    Runs on all devices of this machine, or on a Ray cluster. DST receives the images, manifest.parquet (operations,
    arguments and checksum of each image) and variegate.json (the settings). Boxes, masks and key points (--annotations)
    are written in the layout of SRC.

    The output depends on SRC, the policy, the size, the seed and the epoch, but not on devices, workers or threads.
    To resume an interrupted run, run the same command again; the resulting files are the same. After a finished run,
    it writes deleted or truncated files again. `variegate verify DST` finds damage inside files.

    Examples:
        variegate augment photos out --copies 4 --size 224
        variegate augment photos out --policy imagenet --devices cuda:0,cuda:1
    """
    from variegate.io.addresses import redact_url
    from variegate.jobs.arguments import policy_notes
    from variegate.jobs.augment.opening import open_expansion

    expansion = open_expansion(options.place, options.dst, options)
    source = expansion.plan.source
    if not options.as_json:
        note(*source.notes(), *policy_notes(options.policy, options.size, options.epoch))
    print_start(expansion, options.as_json)
    run_expansion(expansion, options.as_json)
    print_report(expansion.report, str(expansion.destination), options.as_json)
    if expansion.report.written + expansion.report.resumed == 0:
        raise CommandError(f"{redact_url(options.src)}: {none_could_be_read(len(source), expansion.report.skipped)}")


def none_could_be_read(num_images: int, skipped: list[tuple[str, str]]) -> str:
    """``skipped``: names and reasons."""
    reasons = list(dict.fromkeys(reason for _, reason in skipped))
    why = f": {reasons[0]}" if reasons else ""
    if len(reasons) > 1:
        why = f", for {len(reasons):,} reasons; the first{why}"
    return f"could read 0 of {pluralize(num_images, 'image')}{why}; no image was written"


def run_expansion(expansion: Expansion, as_json: bool) -> None:
    """Run with progress. Raises CommandError if the run did not finish, with the count of images written."""
    from variegate.errors import DecodeError
    from variegate.io.addresses import redact_url
    from variegate.workers.protocol import EngineError

    report = expansion.report
    error: DecodeError | EngineError | OSError | None = None
    with rendering(as_json, _looks()) as render:
        expansion.stop = render.stop
        expansion.on_event = render
        try:
            expansion.run()
        except (DecodeError, EngineError, OSError) as caught:
            error = caught
    done = report.written + report.resumed
    if as_json and (report.is_interrupted or (error is not None and done)):
        print_report(report, str(expansion.destination), as_json)
    if error is not None:
        kept = f"; kept {pluralize(report.written, 'written image')}" if report.written else ""
        hint = " (--on-error skip skips such files)" if isinstance(error, DecodeError) else ""
        again = " (to resume, run the same command again)" if kept and not hint else ""
        raise CommandError(f"{error}{kept}{hint}{again}") from error
    if report.is_interrupted:
        counts = f"{redact_url(str(expansion.destination))} has {done:,} of {pluralize(report.total, 'image')}"
        raise CommandError(f"interrupted: {counts}; to resume, run the same command again", INTERRUPTED)


def print_start(expansion: Expansion, as_json: bool) -> None:
    if as_json:
        source = expansion.plan.source
        counts = {"files": len(source), "classes": len(source.classes), "total": expansion.report.total}
        emit_json("start", **counts, devices=list(expansion.engine.devices))


def print_report(report: Report, destination: str, as_json: bool) -> None:
    from variegate.io.addresses import redact_url

    where = redact_url(destination)
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
    print_key_values(
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
    """Counts of outputs from an earlier run, and of outputs written again."""
    if report.resumed:
        yield "before", f"{report.resumed:,} (by an earlier run)"
    if report.repaired:
        yield "repaired", f"{report.repaired:,} (were missing or had another size)"


def rate_fact(report: Report) -> Iterable[tuple[str, str]]:
    if report.written and report.seconds:
        yield "images/s", f"{report.rate:,.1f} ({report.seconds:.1f} s)"


def _looks() -> Looks:
    from variegate.jobs.augment import ExpansionProgress

    return {**COMMON_LOOKS, ExpansionProgress: Look(bar=_bar, json=_progress_fields, json_seconds=1.0)}


def _bar(event: ExpansionProgress) -> Bar:
    done = event.total - event.remaining
    details = []
    if event.written:
        details.append(f"{event.rate:,.0f} images/s")
    if event.skipped:
        details.append(f"{event.skipped:,} quarantined")
    title = event.verb if event.written else "starting"
    return Bar(title, done, event.total, "  ".join(details), _device_table(event.devices))


def _progress_fields(event: ExpansionProgress) -> dict[str, Any]:
    return {
        "event": "progress",
        "written": event.written,
        "resumed": event.resumed,
        "total": event.total,
        "images_per_second": round(event.rate, 1),
        "eta_seconds": round(event.remaining / event.rate, 1) if event.rate > 0 else None,
        "quarantined": event.skipped,
        "devices": [device._asdict() | {"rate": round(device.rate, 1)} for device in event.devices],
    }


def _device_table(devices: Sequence[DeviceSnapshot]) -> ConsoleTable | None:
    if not devices:
        return None
    headings = ("device", "images/s", "images", "in flight", "queue", "stolen", "lost")
    rows = [_device_row(device) for device in devices[:_MOST_DEVICES]]
    if len(devices) > _MOST_DEVICES:
        rows.append((f"and {len(devices) - _MOST_DEVICES:,} more", *[""] * (len(headings) - 1)))
    return ConsoleTable(headings, rows, wide_only=("queue", "stolen", "lost"))


def _device_row(device: DeviceSnapshot) -> tuple[str, ...]:
    name = device.name if device.state == "ready" else f"{device.name} ({device.state})"
    rate = f"{device.rate:,.0f}" if device.rate else ""
    counts = (device.done, device.in_flight, device.queued, device.steals, device.losses)
    return name, rate, *(f"{count:,}" for count in counts)
