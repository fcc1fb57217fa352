"""``variegate pack SRC DST``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from variegate.cli.augment import earlier_facts, rate_fact, run_expansion
from variegate.cli.console import CommandError, emit_json, note, print_facts
from variegate.cli.options import CommandOptions, SourceOptions
from variegate.options import option
from variegate.options.datasets import PackingOptions

if TYPE_CHECKING:
    from variegate.jobs.pack import Packing
    from variegate.jobs.pack.run import Speedup


@dataclass(frozen=True, kw_only=True)
class PackOptions(PackingOptions, SourceOptions, CommandOptions):
    dst: str = option(
        ..., "The folder to write to, or a URL. It is made if missing; not inside SRC.", "Arguments", metavar="DST"
    )


def pack(options: PackOptions) -> None:
    """Pack a data set into shards that a loader reads faster, on all devices: reduced, encoded anew, or as raw pixels.

    Beside the shards it writes the mean and standard deviation of the pixels, which Normalize("dataset") takes, an
    index of the JPEGs, which Loader(index="auto") finds, and a manifest with checksums, which `variegate verify DST`
    compares. After an interruption of any kind the same command goes on, and ends with the same files.
    """
    from variegate.io.addresses import shown
    from variegate.jobs.pack import packing_of, speedup_of

    packing = packing_of(options.place, options.dst, options)
    if not options.as_json:
        note(*packing.plan.source.notes())
    run_expansion(packing, options.as_json, summary=False, is_announced=True)
    if not packing.packed.images:
        none = f"none of its {packing.report.files:,} images could be read; nothing was written"
        raise CommandError(f"{shown(options.src)}: {none}")
    if options.measure and not options.as_json:
        note("comparing how fast a loader reads SRC and DST: up to half a minute, which --no-measure leaves out")
    _print_packed(packing, speedup_of(packing, options.threads) if options.measure else None, options.as_json)


def _print_packed(packing: Packing, speedup: Speedup | None, as_json: bool) -> None:
    from variegate.io.addresses import shown

    packed, report, where = packing.packed, packing.report, shown(str(packing.destination))
    found = packed.statistics
    assert found is not None
    if as_json:
        measured: dict[str, Any] = {} if speedup is None else speedup._asdict() | {"ratio": speedup.ratio}
        numbers = ("kept", "shards", "bytes_before", "bytes_after", "index_bytes")
        emit_json(
            "done",
            **{"files": report.files, "images": packed.images, "skipped": len(packed.skipped)},
            **{"resumed": report.resumed, "repaired": report.repaired},
            **{name: getattr(packed, name) for name in numbers},
            **{"saved": round(packed.saved, 4), "mean": found.mean, "std": found.std},
            **{"seconds": round(report.seconds, 3), "destination": where},
            speedup={name: round(value, 2) for name, value in measured.items()} or None,
        )
        return
    facts = [("images", f"{packed.images:,} in {packed.shards:,} shard{'s' * (packed.shards > 1)}")]
    facts += earlier_facts(report)
    if packed.skipped:
        facts.append(("skipped", f"{len(packed.skipped):,}"))
    if packed.kept:
        encoded = packed.images - packed.kept
        facts.append(("kept", f"{packed.kept:,} JPEG files as they were; {encoded:,} of other kinds encoded"))
    saved = f"{packed.saved:.1%} saved" if packed.saved >= 0 else f"{-packed.saved:.1%} more"
    facts.append(("bytes", f"{_bytes(packed.bytes_before)} -> {_bytes(packed.bytes_after)} ({saved})"))
    if packed.index_bytes:
        facts.append(("index", f"{_bytes(packed.index_bytes)} ({packed.index_bytes / packed.bytes_after:.1%} of that)"))
    facts += [(name, ", ".join(f"{one:.4f}" for one in getattr(found, name))) for name in ("mean", "std")]
    facts += rate_fact(report)
    if speedup is not None:
        threads = f"{speedup.threads} thread{'s' * (speedup.threads > 1)}"
        rates = f"{speedup.before:,.0f} -> {speedup.after:,.0f} images/s: {speedup.ratio:.1f}x as fast"
        facts.append(("loader", f"{rates} (random crops, {threads})"))
    print_facts([*facts, ("where", where)])


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,} bytes"
