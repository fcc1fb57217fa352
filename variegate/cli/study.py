"""``variegate train SRC --study``."""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from variegate.cli.console import (
    FAILED,
    StageProgress,
    emit_json,
    fail,
    interrupt_sets,
    note,
    plot_or_note,
    say,
    stdout,
    table_of,
    warnings_as_notes,
)
from variegate.options.study import StudyOptions
from variegate.options.training import TrainOptions

if TYPE_CHECKING:
    from rich.table import Table

    from variegate.apps.train.study.report import Study

STUDY_NAME = "study.json"


def study_training(src: Any, options: TrainOptions, how: StudyOptions, as_json: bool) -> None:
    """Time the step with each feed, and say, draw and write what came out."""
    from variegate.apps.train.checkpoints import STUDY_FOLDER, check_out
    from variegate.apps.train.study import report
    from variegate.io.addresses import check_is_local
    from variegate.io.durable import write_atomically
    from variegate.loader import TooManyErrors

    check_is_local("out", options.out)
    check_out(options.out)
    study = _study_of(how)
    stop, folder = threading.Event(), options.out / STUDY_FOLDER
    try:
        with _Progress(as_json) as progress, interrupt_sets(stop), warnings_as_notes(progress.console):
            found = study(src, options, how.study_seconds, on_progress=progress, stop=stop)
    except TooManyErrors as error:
        raise fail(error, FAILED, as_json) from error
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, Any] = found.to_dict()
    write_atomically(folder / STUDY_NAME, (json.dumps(written, indent=2) + "\n").encode())
    throughput, waiting = folder / report.THROUGHPUT_NAME, folder / report.WAITING_NAME
    plots = {"throughput": plot_or_note(lambda: report.draw_throughput(found, throughput), throughput)}
    # Without matplotlib there is neither, which is said once.
    plots["waiting"] = plots["throughput"] and plot_or_note(lambda: report.draw_waiting(found, waiting), waiting)
    if as_json:
        emit_json("done", **written, plots=plots, out=str(folder))
        return
    for line in report.fact_lines(found):
        say(line)
    stdout().print(_table(found), crop=False)
    for name, why in found.missing.items():
        say(f"{name}: not timed, {why}")
    note(*found.notes)
    say(report.summary(found))
    say(f"written: {folder}")


def _table(found: Study) -> Table:
    """Headings may be folded, no number may, however narrow the terminal is."""
    from variegate.apps.train.study.report import headings, rows

    table = table_of(headings(found))
    for cells in rows(found):
        table.add_row(*cells)
        for column, text in zip(table.columns, cells, strict=True):
            column.min_width = max(column.min_width or 0, len(text))
    return table


def _study_of(how: StudyOptions) -> Callable[..., Any]:
    """Of a training, or of Keras' ``fit``. Raises ValueError, ImportError."""
    if how.keras is None:
        from variegate.apps.train.study import study

        return study
    # Before Keras and TensorFlow are loaded, which say much on standard error.
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        from variegate.apps.train.keras_study import study as study_fit
    except ImportError as error:
        advice = "pip install 'variegate[keras]' tensorflow"
        raise ImportError(f"--keras needs Keras and TensorFlow ({error}): {advice}") from error
    # As it ends, Python looks through all objects again and again: with TensorFlow's, for 4 to 17 s.
    atexit.register(gc.freeze)
    module, _, name = how.keras.partition(":")
    accepted = "package.module:factory, which is called with (height, width, channels) and the number of classes"
    try:
        make_model = getattr(importlib.import_module(module), name)
    except Exception as error:  # a module is anybody's code
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"keras: got {how.keras!r} ({said}); accepted: {accepted}") from error
    return lambda src, options, seconds, **more: study_fit(src, make_model, options, seconds, **more)


class _Progress(StageProgress):
    """A bar; nothing with ``--json``, which prints one object."""

    def __init__(self, as_json: bool) -> None:
        super().__init__(as_json)
        self._as_json = False

    def __call__(self, what: str, done: int, total: int) -> None:
        super().__call__(f"timing with {what}", done, total)
