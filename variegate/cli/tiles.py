"""``variegate augment --tile``: images that may be larger than memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from variegate.cli.console import (
    FAILED,
    INTERRUPTED,
    CountingBar,
    emit_json,
    fail,
    interrupt_sets,
    note,
    print_facts,
    say,
    stderr,
    warnings_as_notes,
)
from variegate.cli.options import device_list

if TYPE_CHECKING:
    from variegate.cli.augment import AugmentOptions
    from variegate.jobs.tiles.folder import FolderRun

# What says how files of ordinary images are written, and read.
_IDLE = (
    *("layout", "shard_size", "format", "quality", "address", "index", "ordered", "changed", "exclude"),
    *("annotations", "min_area", "min_visibility", "mask_fill"),
)
_JSON_EVERY = 1.0


def augment_tiles(options: AugmentOptions) -> None:
    """Raises ValueError for options that do nothing here."""
    from variegate.jobs.arguments import build_transform, idle_note, parse_size
    from variegate.jobs.engine import Engine
    from variegate.jobs.jobs import EngineError
    from variegate.jobs.tiles.folder import FolderRun

    assert options.tile is not None
    for name in _IDLE:
        if (value := getattr(options, name)) != getattr(type(options), name):
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(f"{flag}: got {value!r} with --tile, where it does nothing; leave it out")
    if options.workers == "ray":
        raise ValueError("--workers: got 'ray' with --tile; accepted: process or thread")
    transform = build_transform(options.policy, parse_size(options.size))
    engine = Engine(
        device_list(options.devices), options.workers, options.allocation, options.steal, num_threads=options.threads
    )
    run = FolderRun(
        options.src, options.dst, transform, engine, options.tile, options.copies, options.seed, options.epoch,
        options.on_error, options.resume,
    )  # fmt: skip
    as_json = options.as_json
    if as_json:
        emit_json("start", files=len(run.names), total=run.total, devices=list(engine.devices))
    else:
        note(idle_note(options.policy, options.epoch))
    error: Exception | None = None
    with CountingBar(as_json) as bar, interrupt_sets(run.stop), warnings_as_notes(stderr()):
        run.on_progress = _View(run, bar, as_json)
        try:
            run.run()
        except (EngineError, OSError) as caught:
            error = caught
    for name, reason in () if as_json else run.skipped:
        say(f"skipped {name}: {reason}", stderr())
    if error is not None:
        raise fail(error, FAILED, as_json) from error
    _print_summary(run, as_json)
    if run.is_interrupted:
        rest = f"interrupted: {run.done:,} of {run.total:,} images are written and kept; the same command goes on"
        raise fail(rest, INTERRUPTED, as_json)
    if run.done == 0:
        raise fail(f"{options.src}: none of its {len(run.names):,} images could be read", FAILED, as_json)


class _View:
    def __init__(self, run: FolderRun, bar: CountingBar, as_json: bool) -> None:
        self._bar, self._as_json, self._shown = bar, as_json, time.monotonic()
        self._task = bar.add_task("tiles", total=None)
        self._skipped = 0

    def __call__(self, run: FolderRun) -> None:
        if self._as_json:
            for name, reason in run.skipped[self._skipped :]:
                emit_json("skipped", source=name, reason=reason)
            self._skipped = len(run.skipped)
        image = run.image
        now = time.monotonic()
        if image is None or now - self._shown < (_JSON_EVERY if self._as_json else 0.1):
            return
        self._shown = now
        if self._as_json:
            emit_json(
                "progress", written=run.done - run.resumed, resumed=run.resumed, total=run.total, tiles=image.done,
                tiles_total=image.total,
            )  # fmt: skip
        else:
            what = f"image {min(run.done + 1, run.total):,} of {run.total:,}, tiles"
            self._bar.update(self._task, description=what, completed=image.done, total=image.total)


def _print_summary(run: FolderRun, as_json: bool) -> None:
    written = run.done - run.resumed
    rate = run.pixels / run.seconds / 1e6 if run.seconds else 0.0
    if as_json:
        emit_json(
            "interrupted" if run.is_interrupted else "done", files=len(run.names), written=written,
            resumed=run.resumed, skipped=len(run.skipped), seconds=round(run.seconds, 3),
            megapixels_per_second=round(rate, 1), destination=run.destination,
        )  # fmt: skip
        return
    facts = [("files in", f"{len(run.names):,}"), ("written", f"{written:,}")]
    if run.resumed:
        facts.append(("before", f"{run.resumed:,} (by an earlier run)"))
    facts.append(("skipped", f"{len(run.skipped):,}"))
    if written:
        facts.append(("megapixels/s", f"{rate:,.1f} ({run.seconds:.1f} s)"))
    print_facts([*facts, ("where", run.destination)])
