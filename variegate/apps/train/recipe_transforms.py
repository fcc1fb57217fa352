"""Transforms of ``train`` besides the policy: crops, flips, erasing, mixing, and sizes that grow."""

from __future__ import annotations

from variegate.ops.compose import Cond, RandomChoice
from variegate.ops.crop import AlternatingHorizontalFlip, RandomCrop, RandomHorizontalFlip
from variegate.ops.erase import Cutout, RandomErasing
from variegate.ops.mix import CutMix, MixUp
from variegate.ops.resize import RandomResizedCrop, Resize
from variegate.options.training import TrainOptions
from variegate.transforms import Transform

Size = tuple[int, int]

# Sizes grow in such steps, so that a network that halves them several times sees whole numbers, and libraries few
# shapes; and within this share of the epochs, the rest of which is for the size that counts.
_LARGE, _LARGE_STEP, _SMALL_STEP = 128, 32, 4
_GROWING_SHARE = 0.8


def kept_size_steps(options: TrainOptions, size: Size, fill: tuple[int, int, int]) -> list[Transform]:
    """After the policy, of images that keep their (height, width). ``fill``: of a cutout."""
    padding = min(size) // 8 if options.padding is None else options.padding
    steps: list[Transform] = []
    if padding:
        steps.append(RandomCrop(size, padding=padding, padding_mode=options.padding_mode))
    steps += _flips(options)
    if options.cutout:
        steps.append(Cutout(options.cutout, fill=fill))
    stages = sizes_of(options, size)
    if len(stages) > 1:
        steps.append(_by_epoch([(begin, Resize(smaller)) for begin, smaller in stages[:-1]], stages[-1][0]))
    return steps


def cropping_steps(options: TrainOptions, size: Size) -> list[Transform]:
    """Before the policy, of images that are cut to (height, width)."""
    stages = sizes_of(options, size)
    crops: list[tuple[int, Transform]] = [(begin, RandomResizedCrop(one)) for begin, one in stages]
    return [crops[0][1] if len(crops) == 1 else _by_epoch(crops), *_flips(options)]


def unused_where_cropped(options: TrainOptions) -> list[str]:
    """Options that were given, and are for images that keep their size alone."""
    given = {"--padding": options.padding is not None, "--cutout": options.cutout > 0}
    given["--padding-mode"] = options.padding_mode != TrainOptions.padding_mode
    return [name for name, is_given in given.items() if is_given]


def mixing_steps(options: TrainOptions) -> list[Transform]:
    """After all that is done to one image alone."""
    mixers: list[Transform] = [
        *([MixUp(options.mixup)] if options.mixup else []),
        *([CutMix(options.cutmix)] if options.cutmix else []),
    ]
    return mixers if len(mixers) < 2 else [RandomChoice(mixers)]


def last_steps(options: TrainOptions) -> list[Transform]:
    """After the normalisation."""
    return [RandomErasing(options.random_erasing)] if options.random_erasing else []


def sizes_of(options: TrainOptions, size: Size) -> list[tuple[int, Size]]:
    """(epoch, (height, width)) from that epoch on, by the options alone; the last is ``size``. Raises ValueError."""
    start, longest = options.progressive, max(size)
    if start is None:
        return [(0, size)]
    if start >= longest:
        raise ValueError(f"progressive: got {start} with images of {longest} pixels; accepted: from 4 to below that")
    step = _LARGE_STEP if longest >= _LARGE else _SMALL_STEP
    stages: list[tuple[int, Size]] = []
    for epoch in range(options.epochs):
        share = min(1.0, epoch / (_GROWING_SHARE * (options.epochs - 1))) if options.epochs > 1 else 1.0
        side = min(longest, max(step, step * round((start + share * (longest - start)) / step)))
        height, width = (max(step, step * round(one * side / longest / step)) for one in size)
        found = size if share == 1.0 or side == longest else (min(height, size[0]), min(width, size[1]))
        if not stages or stages[-1][1] != found:
            stages.append((epoch, found))
    return stages


def _flips(options: TrainOptions) -> list[Transform]:
    if not options.flip:
        return []
    return [AlternatingHorizontalFlip() if options.alternate_flip else RandomHorizontalFlip()]


def _by_epoch(stages: list[tuple[int, Transform]], end: int | None = None) -> Transform:
    """Each of these from its epoch on, until the next; none from ``end`` on."""
    ends = [*(begin for begin, _ in stages[1:]), end]
    return Cond("epoch", [(begin, until, step) for (begin, step), until in zip(stages, ends, strict=True)])
