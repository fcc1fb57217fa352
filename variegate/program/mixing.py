"""Mixes of several samples (MixUp, CutMix, Mosaic), and their conversion to a ``Blend`` after sampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.arrays import Float32Array, Int32Array, IntArray
from variegate.program.ops import Interpolation, Op
from variegate.program.program import MAX_SIDE, Blend, Mixed, empty_instructions

if TYPE_CHECKING:
    from variegate.program.sampling import Rows, Sampling


# Added to weighted sums of samples, so that truncation rounds to nearest and mixing does not darken images. AugMix sums
# are truncated, as in torchvision.
_ROUNDED = 0.5


# (sampling, rows of partners [P], outputs [P], boxes [P, 4]) -> forks of these rows, and their boxes in the outputs.
Place = Callable[["Sampling", "Rows", IntArray, IntArray], tuple["Rows", IntArray]]


class Mix(NamedTuple):
    """S outputs that one transform mixes from Q parts. Parts of the samples themselves precede parts of partners.

    ``place`` forks the rows of partners and transforms them, for example to paste them resized.
    """

    name: str
    samples: IntArray  # [S], image indices in the batch
    shares: Float32Array  # [S, 1 + K]: share of the sample itself, then of its partners
    of: IntArray  # [Q]: index into ``samples``
    column: IntArray  # [Q]: 0 for the sample itself, else 1 + the partner's column
    weight: Float32Array  # [Q]
    box: IntArray  # [Q, 4]: top, left, bottom, right
    place: Place | None = None
    feather: int = -1  # ``Blend.feather`` of partners that show only their objects; -1: none
    min_visibility: float = 0.0  # see ``Mixed``


class Entries(NamedTuple):
    """Fields of E entries of a ``Blend``. ``mix``: index of the entry's mix, -1 for none."""

    target: Any
    row: Any
    weight: Any
    box: Any
    is_custom: Any
    mix: Any


def mixed_by(mixes: Sequence[Mix], samples: IntArray) -> str:
    """Return the name of the first mix that includes one or more of ``samples``; "" if no mix does."""
    return next((mix.name for mix in mixes if np.isin(samples, mix.samples).any()), "")


def entries_of(mixes: Sequence[Mix], partners: IntArray, source: IntArray, weight: Float32Array) -> Entries:
    """Convert mixes to blend entries, including an entry for each unmixed output.

    ``partners``: [outputs, K]. ``source``: each row's image. ``weight``: each row's share of that image, not 1 for
    AugMix.
    """
    alone = np.ones(len(partners), np.bool_)
    for mix in mixes:
        alone[mix.samples] = False
    rest = np.flatnonzero(alone)
    whole = np.tile(np.array([0, 0, MAX_SIDE, MAX_SIDE], np.int64), (len(rest), 1))
    # ``Entries.row`` holds images here; each is expanded to the rows of its image below.
    parts = [Entries(rest, rest, np.ones(len(rest)), whole, np.ones(len(rest)), np.full(len(rest), -1))]
    for number, mix in enumerate(mixes):
        samples = mix.samples[mix.of]
        image = np.where(mix.column == 0, samples, partners[samples, np.maximum(mix.column - 1, 0)])
        parts.append(Entries(samples, image, mix.weight, mix.box, mix.column == 0, np.full(len(samples), number)))
    every = Entries(*map(np.concatenate, zip(*parts, strict=True)))
    image = every.row
    # A sample with several rows (AugMix) has an entry per row.
    order = np.argsort(source, kind="stable")
    counts = np.bincount(source, minlength=int(image.max(initial=0)) + 1)
    first = np.cumsum(counts) - counts
    part = np.repeat(np.arange(len(image)), counts[image])
    within = np.arange(len(part)) - np.repeat(np.cumsum(counts[image]) - counts[image], counts[image])
    row = order[first[image][part] + within]
    return Entries(
        every.target[part].astype(np.int32),
        row.astype(np.int32),
        every.weight.astype(np.float32)[part] * weight[row],
        every.box[part].astype(np.int32),
        every.is_custom[part].astype(np.bool_),
        every.mix[part],
    )


def check_sizes(mixes: Sequence[Mix], entries: Entries, shapes: IntArray) -> None:
    """Raise ValueError if images to be mixed differ in size or channels. ``shapes``: of rows, [R, 3]."""
    differs = (shapes[entries.row] != shapes[entries.target]).any(axis=1)
    if not differs.any():
        return
    at = int(differs.argmax())
    own, other = ("{}x{} (channels: {})".format(*shapes[row].tolist()) for row in (entries.target[at], entries.row[at]))
    raise ValueError(
        f"{mixes[int(entries.mix[at])].name}: got an image {own}, to be mixed with one {other}; accepted: images that "
        "are alike by then, as a crop or Resize makes them; gray ones among gray ones"
    )


def outputs_among(sampling: Sampling, rows: Rows, mixer: str) -> Rows:
    """Return the images of ``rows`` that are outputs, for ``mixer`` to mix with their partners.

    Raises ValueError if partners are unknown, or if an image is mixed already.
    """
    if sampling.partners is None:
        raise ValueError(
            f"{mixer}: mixes an image with others, and none are known here; accepted: a Loader, which finds them in "
            'its data set, or an Augmenter called with a batch and partners="batch"'
        )
    samples = np.unique(sampling.source[rows])
    samples = samples[samples < len(sampling.partners)]
    if before := mixed_by(sampling.mixes, samples):
        raise ValueError(f"{mixer} after {before}: an image is mixed once; accepted: RandomChoice of the two")
    return samples.astype(np.intp)


def join_mixes(sampling: Sampling, weights: Float32Array | None) -> tuple[Blend, Mixed, Rows]:
    """Return the blend of outputs, the mixture, and the rows in use.

    ``weights``: weights of the first rows if images have several rows. Raises ValueError if sizes or channels differ.
    """
    assert sampling.partners is not None
    mixes = sampling.mixes
    partners = sampling.partners
    weight = np.ones(len(sampling.source), np.float32)
    if weights is not None:
        weight[: len(weights)] = weights
    entries = entries_of(mixes, partners, sampling.source, weight)
    feather = np.full(len(entries.row), -1)
    seen = np.ones(len(entries.row), np.bool_)
    for number, mix in enumerate(mixes):
        at = np.flatnonzero((entries.mix == number) & ~entries.is_custom)
        feather[at] = mix.feather
        if mix.place is not None:
            placed = mix.place(sampling, entries.row[at].astype(np.intp), entries.target[at], entries.box[at])
            entries.row[at], entries.box[at] = placed
            seen[at] = (placed[1][:, :2] < placed[1][:, 2:]).all(axis=1)
    if not seen.all():
        entries = Entries(*(values[seen] for values in entries))
        feather = feather[seen]
    check_sizes(mixes, entries, np.concatenate([sampling.size, sampling.shape[:, 2:]], axis=1))
    used = np.unique(entries.row).astype(np.intp)
    row = np.searchsorted(used, entries.row).astype(np.int32)
    names: list[str | None] = [None] * len(partners)
    start = np.zeros(len(partners), np.float32)
    shares = np.zeros((len(partners), 1 + partners.shape[1]), np.float32)
    shares[:, 0] = 1.0
    visible = np.zeros(len(partners), np.float32)
    for mix in mixes:
        start[mix.samples] = _ROUNDED
        shares[mix.samples, : mix.shares.shape[1]] = mix.shares
        visible[mix.samples] = mix.min_visibility
        for sample in mix.samples.tolist():
            names[sample] = mix.name
    blend = Blend(entries.target, entries.weight, row, entries.box, start, feather)
    return blend, Mixed(partners, shares, tuple(names), visible), used


def paste_resized(sampling: Sampling, rows: Rows, outputs: IntArray, boxes: IntArray) -> tuple[Rows, IntArray]:
    """Fork ``rows`` and resize each full image into its box (top, left, bottom, right) of the output."""
    height, width = sampling.size[rows].T
    whole = np.stack([np.zeros_like(height), np.zeros_like(width), height, width, np.zeros_like(width)], axis=1)
    return paste_parts(sampling, rows, whole, sampling.size[outputs], boxes), boxes


def paste_parts(
    sampling: Sampling, rows: Rows, parts: npt.NDArray[np.number], size: Int32Array, boxes: IntArray
) -> Rows:
    """Fork ``rows`` and resize a part of each image into its box of the output.

    ``parts``: top, left, height, width, 1 if mirrored. ``size``: height and width of the outputs. ``boxes``: top, left,
    bottom, right.
    """
    forks = sampling.fork(rows, 1)[0]
    opcode = sampling.instructions["opcode"]
    args = sampling.instructions["args"]
    while True:  # remove trailing erasures of the normalized output: they apply to the output, not to the pasted image
        last = np.maximum(sampling.length[forks] - 1, 0)
        is_late = (sampling.length[forks] > 0) & (opcode[forks, last] == Op.ERASE) & (args[forks, last, 7] != 0.0)
        if not is_late.any():
            break
        sampling.length[forks[is_late]] -= 1
        for name, cleared in empty_instructions(int(is_late.sum()), 1).items():
            sampling.instructions[name][forks[is_late], last[is_late]] = cleared[:, 0]
    top, left, bottom, right = boxes.T
    inner = np.stack([bottom - top, right - left], axis=1).astype(np.int32)
    resize = (*parts[:, :4].T, inner[:, 0], inner[:, 1], parts[:, 4])
    sampling.append(forks, Op.RESIZED_CROP, resize, Interpolation.BILINEAR, size=inner)
    sampling.append(forks, Op.PAD, (left, top, size[:, 1] - right, size[:, 0] - bottom), size=size)
    return forks
