"""The look of other images: levels matched to those of references, whose statistics are taken once."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, one_of, refused
from variegate.ops.arguments import Number, checks
from variegate.ops.base import Transform
from variegate.ops.magnitude import between, span
from variegate.program.matching import HIGH, HISTOGRAM, METHODS, REFERENCE, WHOLE, reference_of
from variegate.program.ops import LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT, Op
from variegate.program.sampling import Rows, Sampling

__all__ = ["HistogramMatching", "PixelDistributionAdaptation"]

MAX_REFERENCES = 64
# What reads sources stands far below, and is looked up where somebody gives one.
_READ_BY = "variegate.loader.references"
_ACCEPTED = (
    f"images, uint8 [H, W, 3], [H, W, 1] or [H, W], up to {MAX_REFERENCES}; a path or source of images; or what "
    "to_dict() says of them"
)


@dataclass(frozen=True)
class Reference:
    """Statistics of one image: those of luma, red, green and blue (``program/matching.py``); immutable."""

    hash: str  # of the image's size and pixels
    numbers: bytes

    def array(self) -> npt.NDArray[np.int16]:
        return np.frombuffer(self.numbers, "<i2").reshape(4, REFERENCE)

    def described(self) -> dict[str, str]:
        """Fit for JSON."""
        return {"hash": self.hash, "int16": base64.b64encode(self.numbers).decode("ascii")}

    def __repr__(self) -> str:
        return f"<reference {self.hash}>"


def _of_pixels(image: Any) -> Reference | None:
    """Of a uint8 image of any library, or None for anything else."""
    try:
        pixels = np.asarray(image.detach().cpu() if hasattr(image, "detach") else image)
    except (TypeError, ValueError):
        return None
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
        return None
    name = hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).hexdigest()[:16]
    red, green, blue = (pixels[..., c].astype(np.int64) for c in (0, pixels.shape[2] // 2, -1))
    luma = (LUMA_RED * red + LUMA_GREEN * green + LUMA_BLUE * blue + LUMA_HALF) >> LUMA_SHIFT
    parts = [reference_of(levels.astype(np.uint8)) for levels in (luma, red, green, blue)]
    return Reference(name, np.stack(parts).astype("<i2").tobytes())


def _of_description(value: Mapping[str, Any]) -> Reference | None:
    try:
        made = Reference(str(value["hash"]), base64.b64decode(value["int16"], validate=True))
        numbers = made.array()
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
    shares = numbers[:, :256]
    is_whole = (np.diff(shares.astype(np.int64)) >= 0).all() and (shares[:, -1] == WHOLE).all()
    return made if is_whole and (numbers >= 0).all() and (numbers[:, HIGH - 1] <= numbers[:, HIGH]).all() else None


def check_references(name: str, value: Any, *, error: Refusal = refused) -> tuple[Reference, ...]:
    """Images, descriptions of them, or where images are."""
    is_list, is_place = isinstance(value, (list, tuple)), isinstance(value, (str, PathLike))
    if isinstance(value, (Mapping, Reference)) or _of_pixels(value) is not None:
        entries = [value]
    elif is_place or hasattr(value, "fingerprint") or (is_list and any(isinstance(each, str) for each in value)):
        try:
            entries = import_module(_READ_BY).reference_images(value, MAX_REFERENCES)
        except (OSError, ValueError) as why:
            raise error(name, value, f"{_ACCEPTED} ({why})") from why
    elif is_list or (isinstance(value, np.ndarray) and value.ndim == 4):
        entries = list(value)
    else:
        raise error(name, value, _ACCEPTED)
    if not 0 < len(entries) <= MAX_REFERENCES:
        raise error(name, f"{len(entries)} images", _ACCEPTED)
    found: list[Reference] = []
    for entry in entries:
        if isinstance(entry, Reference):
            made: Reference | None = entry
        else:
            made = _of_description(entry) if isinstance(entry, Mapping) else _of_pixels(entry)
        if made is None:
            shown: Any = f"{entry.dtype} {tuple(entry.shape)}" if hasattr(entry, "shape") else entry
            raise error(name, shown, _ACCEPTED)
        found.append(made)
    return tuple(found)


class _Matched(Transform, abstract=True):
    """Matches images to one of ``references``, drawn for each, by a share drawn from ``blend_ratio``."""

    references: Any
    blend_ratio: Number
    num_slots = 1
    _checks = checks(references=check_references, blend_ratio=span(0.0, 1.0))

    def _emit(self, sampling: Sampling, rows: Rows, slot: int, method: int) -> None:
        unit = sampling.uniform(rows, slot)
        which = (unit[:, 0] * len(self.references)).astype(np.intp)
        first = np.zeros(len(self.references))
        for i in np.unique(which).tolist():
            first[i] = sampling.add_grids(self.references[i].array())
        # The first of the four parts is that of gray images.
        begin = first[which] + np.where(sampling.channels[rows] == 1, 0, REFERENCE)
        sampling.emit(rows, Op.MATCH, between(self.blend_ratio, unit[:, 1]), begin, method, name=type(self).__name__)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"references": [reference.described() for reference in self.references]}


@dataclass(frozen=True)
class HistogramMatching(_Matched):
    """Give every channel the histogram of a reference image, as scikit-image's ``match_histograms`` does.

    Args:
        references: images of the other domain, of which each image draws one: a list of arrays, uint8 [H, W, 3],
            [H, W, 1] or [H, W], or of PIL images, up to 64; or a path or source of images, as for ``vg.open_source``,
            of which 64 at most are read, evenly spaced. Read once: the transform and its description hold each
            image's hash and 2 KB of statistics, not the image.
        blend_ratio: share of the matched image in the result, the rest being the image; a number or a range, 0 to 1.

    Gray images are matched to the luma of the reference. Arguments are Albumentations', where references are given with
    each call.
    """

    references: Any
    blend_ratio: Number = (0.5, 1.0)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        self._emit(sampling, rows, slot, HISTOGRAM)


Statistics = Literal["standard", "minmax"]


@dataclass(frozen=True)
class PixelDistributionAdaptation(_Matched):
    """Scale and shift every channel to the statistics of a reference image.

    Args:
        references: see ``HistogramMatching``.
        blend_ratio: share of the adapted image in the result; a number or a range, 0 to 1.
        transform_type: "standard": mean and standard deviation of the reference, channel by channel (Reinhard et al.
            2001). "minmax": its lowest and highest levels.

    Albumentations' "pca" is missing: the signs of principal axes are arbitrary, and colors may come out inverted.
    """

    references: Any
    blend_ratio: Number = (0.25, 1.0)
    transform_type: Statistics = "standard"
    _checks = checks(transform_type=partial(one_of, choices=get_args(Statistics)))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        self._emit(sampling, rows, slot, METHODS.index(self.transform_type))
