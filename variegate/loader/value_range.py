"""The note on floats beyond black and white: operations on values clip them to 0..1, which leaves little of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from variegate.arrays import ImageArray
from variegate.data.samples import Samples
from variegate.data.sharded import AnySource
from variegate.decode.depth import note_once
from variegate.decode.dicom import Dicom
from variegate.errors import DecodeError
from variegate.loader.reading import decode_picture
from variegate.policies.views import MultiView
from variegate.program.depth import Depth
from variegate.program.draws.record import record_of
from variegate.program.draws.recorder import Emission
from variegate.program.ops import SPECS, Kind, Op
from variegate.program.program import Output
from variegate.program.sampling import CHOICE
from variegate.transforms import Transform

# Share of white by which values may exceed black and white without a note, as a resize makes them.
_TOLERANCE = 0.1
# Titles of instructions that clip to black and white, and of those after which nothing is beyond them.
_CLIPPING = {spec.name for spec in SPECS.values() if spec.kind in (Kind.VALUE, Kind.STATISTIC)} | {CHOICE}
_WINDOWS = {SPECS[op].name for op in (Op.WINDOW, Op.PERCENTILE_STRETCH)}


def range_note(low: float, high: float) -> str | None:
    """A note if values of float32 images exceed black..white."""
    if low >= -_TOLERANCE and high <= 1 + _TOLERANCE:
        return None
    reason = f"values are from {low:g} to {high:g}, and operations on values clip to 0..1"
    return f"{reason}; --window for DICOM files, or T.Window as the first operation of a policy, makes a range 0..1"


def warn_of_clipping(
    transform: Transform,
    source: AnySource,
    depth: Depth | None,
    channels: int | None = None,
    dicom: Dicom | None = None,
) -> None:
    """Warn if a transform clips the values of a data set's first image of floats. Other arguments are a Loader's.

    Says nothing of an unreadable image, which is reported when it is loaded, and of sources that are not read by index.
    """
    if not isinstance(source, Samples) or not len(source):
        return
    may_be_floats = depth is Depth.FLOAT32 or (depth is None and source.is_decoded)
    if not may_be_floats or not _clips_floats(transform):
        return
    try:
        image = _first_image(source, depth, channels, dicom)
    except DecodeError:
        return
    finite = image[np.isfinite(image)]
    note = range_note(float(finite.min()), float(finite.max())) if image.dtype == np.float32 and finite.size else None
    if note is not None:
        warnings.warn(note, stacklevel=6)


def _first_image(source: Samples, depth: Depth | None, channels: int | None, dicom: Dicom | None) -> ImageArray:
    with note_once(set(), depth, source.is_decoded, dicom):
        return decode_picture(source.read(0).data, str(source.name(0)), None, channels=channels, depth=depth)


def _clips_floats(transform: Transform) -> bool:
    views = [each for each, _ in transform.shares] if isinstance(transform, MultiView) else [transform]
    try:
        return any(_clips_first(record_of(each, Output(), 3, 0).notes) for each in views)
    except (ValueError, TypeError):  # is reported with the first batch
        return False


def _clips_first(instructions: Sequence[Emission]) -> bool:
    """True if an instruction clips values before any window."""
    for instruction in instructions:
        if instruction.title in _WINDOWS:
            return False
        if instruction.title in _CLIPPING:
            return True
    return False
