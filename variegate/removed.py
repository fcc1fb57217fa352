"""Public names that were removed, each with what to use instead: the error of a program that still uses one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

REMOVED: dict[str, str] = {
    # variegate.NAME, variegate.CLASS.METHOD
    "Augmenter.capture": "call the Augmenter itself, which queues its kernels without waiting for the GPU",
    "Loader.observe": "call loader.stats(), which has the seconds, samples and bytes of each stage so far",
    "Loader.set_weights": "give vg.Mixture a schedule {epoch: weights}; weights change between epochs only",
    "diagnose": "call vg.doctor(source, transform, batch_size=64), which measures a loader and advises",
    # transforms.NAME, also as the type of a description
    "transforms.FDA": "use ColorJitter, or adapt the images to the references before they are read",
    "transforms.HistogramMatching": "use ColorJitter, or match the images to the references before they are read",
    "transforms.PixelDistributionAdaptation": "use ColorJitter, or adapt the images before they are read",
    # policies.NAME
    # command NAME, command NAME --OPTION
    "command augment --changed": "changed files are refused; restore them, or start over with --no-resume",
    "command pack --changed": "changed files are refused; restore them, or start over with --no-resume",
    "command clean --exclude-list": "name the list with --out FILE",
    "command clean --resume": "clean writes a list in one go; variegate pack SRC DST --exclude FILE makes the copy",
    "command clean --no-resume": "clean writes a list in one go; variegate pack SRC DST --exclude FILE makes the copy",
    "command clean --threads": "clean copies nothing; variegate pack SRC DST --exclude FILE makes the copy",
    "command bench": "use variegate doctor SRC, which shows the same rates",
    "command simulate": "run python -m benchmarks.simulate in a checkout; results: docs/results/simulation.md",
    "command doctor --cache": "the report says what a cache in memory would gain",
    "command doctor --cache-side": "the report says what smaller images would gain",
    "command doctor --model-ms": "use --consume with images per second: 1000 * batch size / milliseconds",
    "command doctor --wire": "divide the rate of your model by the whole loader's: so many machines are needed",
    "command train --report": 'call vg.attribution("OUT") after the training',
}
"""What replaces a removed name, as the end of a sentence that begins with the name."""


def removed_command(arguments: Sequence[str]) -> str | None:
    """Return the sentence for a removed command or option in a command line; None if there is none."""
    command = f"command {arguments[0]}" if arguments else ""
    options = (f"{command} {argument.partition('=')[0]}" for argument in arguments[1:])
    return next(filter(None, map(removal_message, (command, *options))), None)


def removal_message(name: str) -> str | None:
    """The sentence for a removed name; None for any other name."""
    replacement = REMOVED.get(name)
    return None if replacement is None else f"{name} was removed: {replacement}"


class RemovedMethods:
    """Base of public classes with removed methods: using one raises AttributeError with the sentence."""

    def __getattr__(self, name: str) -> NoReturn:
        class_name = type(self).__name__
        message = removal_message(f"{class_name}.{name}")
        raise AttributeError(message or f"{class_name!r} object has no attribute {name!r}")
