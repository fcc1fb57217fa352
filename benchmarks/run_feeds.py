"""``python -m benchmarks.run_feeds SRC [--keras package.module:factory] [options of train]``: is data the limit?

The study of ``variegate train --study`` with peers beside Variegate's loader, where this Python has them: torch's
DataLoader with torchvision, and DALI. With ``--keras`` it is the ``fit`` of a model, and the peer tf.data with Keras'
layers.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import typer

from variegate.cli.console import BAD_INPUT, fail
from variegate.cli.options import CommandOptions, SourceOptions, UsageError, from_options, usage_message
from variegate.cli.train import run_study
from variegate.formats.kinds import LABELLED_IMAGES_HELP
from variegate.options import option, part_of, same_option
from variegate.options.training import StudyOptions, TrainOptions
from variegate.threads import wait_briefly


@dataclass(frozen=True, kw_only=True)
class FeedsOptions(TrainOptions, SourceOptions, CommandOptions):
    src: str = same_option(SourceOptions, "src", help=LABELLED_IMAGES_HELP)
    study_seconds: float = same_option(StudyOptions, "study_seconds")
    keras: str | None = option(
        None,
        "A model of Keras on TensorFlow instead, made by factory(shape, classes). Its fit is timed under "
        "MirroredStrategy, fed by one batch repeated, by Variegate, and by tf.data with Keras' layers.",
        "Measurement",
        metavar="package.module:factory",
    )

    def __post_init__(self) -> None:
        TrainOptions.__post_init__(self)
        StudyOptions(study_seconds=self.study_seconds)


def feeds(options: FeedsOptions) -> None:
    """Time the step of a training, or the fit of a model of Keras, with Variegate's feed and with those of its peers.

    Writes OUT/study, as variegate train --study does.
    """
    wait_briefly()
    timed = partial(_study_of(options.keras), options.place)
    chosen = part_of(TrainOptions, options)
    run_study(partial(timed, options=chosen, seconds=options.study_seconds), options.out, options.as_json)


def _study_of(keras: str | None) -> Callable[..., Any]:
    """The study of a training, or of Keras' ``fit``. Raises ValueError, ImportError."""
    if keras is None:
        from benchmarks.training.peers import open_peers
        from variegate.apps.train.study import study

        return partial(study, open_others=open_peers)
    # Before Keras and TensorFlow are loaded, which say much on standard error.
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        from benchmarks.training.keras_study import study as study_fit
    except ImportError as error:
        advice = "pip install 'variegate[keras]' tensorflow"
        raise ImportError(f"--keras needs Keras and TensorFlow ({error}): {advice}") from error
    # As it ends, Python looks through all objects again and again: with TensorFlow's, for 4 to 17 s.
    atexit.register(gc.freeze)
    module, _, name = keras.partition(":")
    accepted = "package.module:factory, which is called with (height, width, channels) and the number of classes"
    try:
        make_model = getattr(importlib.import_module(module), name)
    except Exception as error:  # a module is anybody's code
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"keras: got {keras!r} ({said}); accepted: {accepted}") from error
    return partial(study_fit, make_model=make_model)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes: 1 where something failed, 2 for bad input, 130 when interrupted."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(from_options(feeds))
    typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = typer.main.get_command(app).main(typed, prog_name="run_feeds", standalone_mode=False)
    except UsageError as error:
        return int(fail(usage_message(error, typed), BAD_INPUT, "--json" in typed).exit_code)
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
