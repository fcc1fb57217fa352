"""Removed public names with their replacements, for the error of a program that still uses one."""

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
    "transforms.Function": "use vg.pipeline, whose function calls those of transforms.functional",
    "transforms.Measure": "use vg.pipeline, whose image has its size at any stage",
    "transforms.TracedPipeline": "use vg.pipeline, whose function runs for each sample and is named in files",
    "transforms.HistogramMatching": "use ColorJitter, or match the images to the references before they are read",
    "transforms.PixelDistributionAdaptation": "use ColorJitter, or adapt the images before they are read",
    # policies.NAME
    # command NAME, command NAME --OPTION
    "command warm": "nothing is compiled when Variegate starts; leave the call out",
    "command augment --changed": "changed files are refused; restore them, or start over with --no-resume",
    "command augment --tile": "call vg.Engine(...).map_image(image, transform, out=path) for each large image",
    "command pack --changed": "changed files are refused; restore them, or start over with --no-resume",
    "command pack --measure": "compare the rates of variegate doctor SRC and variegate doctor DST",
    "command pack --no-measure": "pack measures nothing; variegate doctor DST shows the rate of a loader",
    "command clean --exclude-list": "name the list with --out FILE",
    "command clean --resume": "clean writes a list in one go; variegate pack SRC DST --exclude FILE makes the copy",
    "command clean --no-resume": "clean writes a list in one go; variegate pack SRC DST --exclude FILE makes the copy",
    "command clean --threads": "clean copies nothing; variegate pack SRC DST --exclude FILE makes the copy",
    "command bench": "use variegate doctor SRC, which shows the same rates",
    "command simulate": "run python -m benchmarks.simulate in a checkout; results: docs/results/engine.md",
    "command doctor --device": "use --devices",
    "command train --device": "use --devices",
    "command doctor --cache": "the report says what a cache in memory would gain",
    "command doctor --cache-side": "the report says what smaller images would gain",
    "command doctor --model-ms": "use --consume with images per second: 1000 * batch size / milliseconds",
    "command doctor --wire": "divide the rate of your model by the whole loader's: so many machines are needed",
    "command evaluate --capture": "training steps are no longer recorded as CUDA graphs",
    "command evaluate --no-capture": "training steps are no longer recorded as CUDA graphs",
    "command search --capture": "training steps are no longer recorded as CUDA graphs",
    "command search --no-capture": "training steps are no longer recorded as CUDA graphs",
    "command train --adapt-from": "use vg.Loader(..., conditions=RecordedMagnitudes('OUT')) in a training of your own",
    "command train --adapt-step": "use --adapt entropy, which needs no such number",
    "command train --adapt-target": "use --adapt entropy, which needs no such number",
    "command train --alternate-flip": "use T.AlternatingHorizontalFlip in a policy file",
    "command train --copies": "use more --epochs, or vg.Loader(..., copies=N) in a training of your own",
    "command train --cutout": "name the side in the policy, as in --policy flip+crop+cutout8",
    "command train --decay-norms": "use --optimizer sgd, which decays all weights",
    "command train --drop-path": "use --model package.module:factory, which makes the model with its stochastic depth",
    "command train --entropy-loss": "use a training of your own with vg.Loader, and the entropy in its loss",
    "command train --flip": "mirror images by the part flip, as in --policy flip+crop",
    "command train --index": "pack small copies once (variegate pack --size), or use vg.Loader(..., index=...)",
    "command train --keep": "the latest two checkpoints are kept",
    "command train --loss": "cross-entropy is the loss; use a training of your own with vg.Loader for another",
    "command train --lr-base-size": "give the learning rate of the total batch size as --lr",
    "command train --lr-scale": "give the learning rate of the total batch size as --lr",
    "command train --no-alternate-flip": "images are mirrored at random, by the part flip of the policy",
    "command train --no-decay-norms": "use --optimizer adamw, which decays neither biases nor norms",
    "command train --no-flip": "leave the part flip out of the policy, as in --policy crop",
    "command train --padding": "name the pixels in the policy, as in --policy flip+crop4",
    "command train --padding-mode": "use T.RandomCrop(..., padding_mode=...) in a policy file",
    "command train --progressive": "train at one --size",
    "command train --report": 'call vg.attribution("OUT") after the training',
    "command train --score-every": "the model is scored after each epoch",
    "command train --shard": "use a model that fits into the memory of one device, or FSDP in a training of your own",
    "command train --study": "use variegate doctor SRC --train, which times the step with and without the loader",
    "command train --study-seconds": "use variegate doctor SRC --train",
    "command train --timeout": "ranks wait 600 seconds for each other",
    "command train --tta": "average the scores over views in your own code with vg.load_model",
}
"""What replaces a removed name, as the end of a sentence that begins with the name."""


def removed_command(arguments: Sequence[str]) -> str | None:
    """Return the sentence for a removed command or option in a command line, or None."""
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
