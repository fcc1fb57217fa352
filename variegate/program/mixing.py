"""Mixes of several samples into one output, and the blend that they become once all rows are sampled."""

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


# Sums of several samples' levels are rounded to the nearest, half a level up, so that a mix is as bright as its parts.
# (AugMix's are truncated, as torchvision's are.)
_ROUNDED = 0.5


# (sampling, rows of partners [P], outputs [P], boxes [P, 4]) -> forks of these rows and where these are to be seen.
Place = Callable[["Sampling", "Rows", IntArray, IntArray], tuple["Rows", IntArray]]


class Mix(NamedTuple):
    """S outputs that one transform mixes, of Q parts, own ones first. ``place``: how partners' pictures are changed for
    it. ``feather``: of ``Blend``, where partners show their objects alone."""

    name: str
    samples: IntArray  # [S], images of the batch
    shares: Float32Array  # [S, 1 + K]
    of: IntArray  # [Q]
    column: IntArray  # [Q]: 0 for the sample itself
    weight: Float32Array  # [Q]
    box: IntArray  # [Q, 4]: top, left, bottom, right
    place: Place | None = None
    feather: int = -1
    min_visibility: float = 0.0


class Entries(NamedTuple):
    """As of a ``Blend``, E of them; ``mix``: which of the mixes one comes from, -1 for none."""

    target: Any
    row: Any
    weight: Any
    box: Any
    is_custom: Any
    mix: Any


def mixed_by(mixes: Sequence[Mix], samples: IntArray) -> str:
    """The name of a mix that some of these samples are in already; "" if there is none."""
    return next((mix.name for mix in mixes if np.isin(samples, mix.samples).any()), "")


def entries_of(mixes: Sequence[Mix], partners: IntArray, source: IntArray, weight: Float32Array) -> Entries:
    """``partners``: [outputs, K]; ``source``, ``weight``: of every row, its image and its share of that image."""
    alone = np.ones(len(partners), np.bool_)
    for mix in mixes:
        alone[mix.samples] = False
    rest = np.flatnonzero(alone)
    whole = np.tile(np.array([0, 0, MAX_SIDE, MAX_SIDE], np.int64), (len(rest), 1))
    # With images in the place of their rows.
    parts = [Entries(rest, rest, np.ones(len(rest)), whole, np.ones(len(rest)), np.full(len(rest), -1))]
    for number, mix in enumerate(mixes):
        samples = mix.samples[mix.of]
        image = np.where(mix.column == 0, samples, partners[samples, np.maximum(mix.column - 1, 0)])
        parts.append(Entries(samples, image, mix.weight, mix.box, mix.column == 0, np.full(len(samples), number)))
    every = Entries(*map(np.concatenate, zip(*parts, strict=True)))
    image = every.row
    # A sample of several rows (AugMix) has an entry for each of them.
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
    """Raises ValueError where pictures that are to be mixed differ in size or channels. ``shapes``: of rows, [R, 3]."""
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
    """The outputs among the samples of ``rows``, which ``mixer`` is to mix with their partners."""
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
    """The blend of outputs, the mixture, and the rows in use. ``weights``: of the first rows, where images have
    several."""
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
    """Forks of ``rows`` that show the whole picture within ``boxes`` (top, left, bottom, right) of outputs."""
    height, width = sampling.size[rows].T
    whole = np.stack([np.zeros_like(height), np.zeros_like(width), height, width, np.zeros_like(width)], axis=1)
    return paste_parts(sampling, rows, whole, sampling.size[outputs], boxes), boxes


def paste_parts(
    sampling: Sampling, rows: Rows, parts: npt.NDArray[np.number], size: Int32Array, boxes: IntArray
) -> Rows:
    """Forks of ``rows`` with ``parts`` of their pictures (top, left, height, width, 1 if mirrored) within ``boxes`` of
    outputs."""
    forks = sampling.fork(rows, 1)[0]
    opcode = sampling.instructions["opcode"]
    args = sampling.instructions["args"]
    while True:  # what is erased of the normalized output is not in the picture
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
