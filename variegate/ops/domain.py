"""The look of other images: levels or frequencies matched to those of references, whose statistics are taken once."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from os import PathLike
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from variegate.checks import Refusal, one_of, refused
from variegate.ops.arguments import PROBABILITY, Number, checks
from variegate.ops.base import Transform
from variegate.ops.magnitude import between, span
from variegate.program import matching
from variegate.program.ops import LUMA_BLUE, LUMA_GREEN, LUMA_HALF, LUMA_RED, LUMA_SHIFT, Op
from variegate.program.sampling import Floats, Rows, Sampling

__all__ = ["FDA", "HistogramMatching", "PixelDistributionAdaptation"]

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
    dtype: ClassVar[np.dtype[Any]] = np.dtype("<i2")
    length: ClassVar[int] = matching.REFERENCE  # of each part

    @staticmethod
    def parts_of(channels: list[npt.NDArray[np.uint8]]) -> npt.NDArray[Any]:
        parts = np.stack([matching.reference_of(levels) for levels in channels])
        axes = matching.axes_of(np.stack([levels.reshape(-1) for levels in channels[1:]]).astype(np.float64))
        parts[1:, matching.AXIS :] = np.floor(axes * matching.WHOLE + 0.5)
        return parts

    @classmethod
    def of_pixels(cls, pixels: npt.NDArray[np.uint8]) -> Reference:
        name = hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).hexdigest()[:16]
        red, green, blue = (pixels[..., c].astype(np.int64) for c in (0, pixels.shape[2] // 2, -1))
        luma = (LUMA_RED * red + LUMA_GREEN * green + LUMA_BLUE * blue + LUMA_HALF) >> LUMA_SHIFT
        parts = cls.parts_of([levels.astype(np.uint8) for levels in (luma, red, green, blue)])
        return cls(name, parts.astype(cls.dtype).tobytes())

    @classmethod
    def of_description(cls, value: Mapping[str, Any]) -> Reference | None:
        try:
            made = cls(str(value["hash"]), base64.b64decode(value[cls.dtype.name], validate=True))
            return made if made.is_whole() else None
        except (KeyError, TypeError, ValueError, binascii.Error):
            return None

    def array(self) -> npt.NDArray[Any]:
        return np.frombuffer(self.numbers, self.dtype).reshape(4, self.length)

    def is_whole(self) -> bool:
        numbers = self.array()
        shares = numbers[:, :256]
        is_rising = (np.diff(shares.astype(np.int64)) >= 0).all() and (shares[:, -1] == matching.WHOLE).all()
        is_ordered = (numbers[:, matching.LOW] <= numbers[:, matching.HIGH]).all()
        return bool(is_rising and is_ordered and (numbers[:, : matching.AXIS] >= 0).all())

    def described(self) -> dict[str, str]:
        """Fit for JSON."""
        return {"hash": self.hash, self.dtype.name: base64.b64encode(self.numbers).decode("ascii")}

    def __repr__(self) -> str:
        return f"<reference {self.hash}>"


class Spectrum(Reference):
    """Amplitudes of one image's low frequencies, of the same four channels."""

    dtype, length = np.dtype("<f2"), matching.SPECTRUM

    @staticmethod
    def parts_of(channels: list[npt.NDArray[np.uint8]]) -> npt.NDArray[Any]:
        return np.stack([matching.spectrum_of(levels) for levels in channels])

    def is_whole(self) -> bool:
        numbers = self.array()
        return bool(((numbers >= 0.0) & (numbers <= 255.0) | (numbers == -1.0)).all())


def _pixels_of(image: Any) -> npt.NDArray[np.uint8] | None:
    """[H, W, C] of a uint8 image of any library, or None for anything else."""
    try:
        pixels = np.asarray(image.detach().cpu() if hasattr(image, "detach") else image)
    except (TypeError, ValueError):
        return None
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
        return None
    return pixels


def check_references(
    name: str, value: Any, kind: type[Reference] = Reference, *, error: Refusal = refused
) -> tuple[Reference, ...]:
    """Images, descriptions of them, or where images are."""
    is_list, is_place = isinstance(value, (list, tuple)), isinstance(value, (str, PathLike))
    if isinstance(value, (Mapping, Reference)) or _pixels_of(value) is not None:
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
        made: Reference | None = entry if type(entry) is kind else None
        if isinstance(entry, Mapping):
            made = kind.of_description(entry)
        elif (pixels := _pixels_of(entry)) is not None:
            made = kind.of_pixels(pixels)
        if made is None:
            shown: Any = f"{entry.dtype} {tuple(entry.shape)}" if hasattr(entry, "shape") else entry
            raise error(name, shown, _ACCEPTED)
        found.append(made)
    return tuple(found)


class _Referring(Transform, abstract=True):
    """Gives images the look of one of ``references``, drawn for each."""

    references: Any
    num_slots = 1
    _path_args = ("references",)
    _checks = checks(references=check_references)

    def _emit(self, sampling: Sampling, rows: Rows, unit: Floats, op: Op, value: Number, *method: int) -> None:
        """``unit``: [rows, 2 at least], what draws the reference and the number from ``value``."""
        which = (unit[:, 0] * len(self.references)).astype(np.intp)
        first = np.zeros(len(self.references))
        for i in np.unique(which).tolist():
            first[i] = sampling.add_grids(self.references[i].array().view(np.int16))
        # The first of the four parts is that of gray images.
        begin = first[which] + np.where(sampling.channels[rows] == 1, 0, self.references[0].length)
        sampling.emit(rows, op, between(value, unit[:, 1]), begin, *method, name=type(self).__name__)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"references": [reference.described() for reference in self.references]}


@dataclass(frozen=True)
class FDA(_Referring):
    """Fourier domain adaptation: give the lowest frequencies the amplitudes of a reference image (Yang & Soatto 2020).

    Phases stay, and with them shapes and edges; colors and lighting become those of the reference. Above a
    ``beta_limit`` of about 0.05, images of unlike scenes show waves.

    Args:
        references: see ``HistogramMatching``. The description holds 87 KB of each, amplitudes below 64 cycles.
        beta_limit: upper limit of the frequencies that change, in cycles per image down and across, as a share of the
            shorter side in pixels; never above 64 cycles. A number or a range, 0 to 0.5.

    Amplitudes are those of a reference at its own size. Frequencies that its pixels cannot hold do not change. Images
    leave the fused passes and come back. CPU only, and not in tiles. Masks, boxes and points do not change.
    """

    references: Any
    beta_limit: Number = (0.0, 0.1)
    p: float = 0.5
    _checks = checks(references=partial(check_references, kind=Spectrum), beta_limit=span(0.0, 0.5), p=PROBABILITY)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        chosen = unit[:, 2] < self.p
        self._emit(sampling, rows[chosen], unit[chosen], Op.FDA, self.beta_limit)


@dataclass(frozen=True)
class HistogramMatching(_Referring):
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
    _checks = checks(blend_ratio=span(0.0, 1.0))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        self._emit(sampling, rows, sampling.uniform(rows, slot), Op.MATCH, self.blend_ratio, matching.HISTOGRAM)


Statistics = Literal["standard", "minmax", "pca"]


@dataclass(frozen=True)
class PixelDistributionAdaptation(_Referring):
    """Scale and shift every channel, or turn colors, to the statistics of a reference image.

    Args:
        references: see ``HistogramMatching``.
        blend_ratio: share of the adapted image in the result; a number or a range, 0 to 1.
        transform_type: "standard": mean and standard deviation of the reference, channel by channel (Reinhard et al.
            2001). "minmax": its lowest and highest levels. "pca": its mean and principal axes; pixels keep their
            coordinates along the axes, and no axis is reversed. CPU only, and not in tiles.
    """

    references: Any
    blend_ratio: Number = (0.25, 1.0)
    transform_type: Statistics = "standard"
    _checks = checks(blend_ratio=span(0.0, 1.0), transform_type=partial(one_of, choices=get_args(Statistics)))

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        unit = sampling.uniform(rows, slot)
        if self.transform_type == "pca":
            self._emit(sampling, rows, unit, Op.PRINCIPAL_AXES, self.blend_ratio)
        else:
            self._emit(sampling, rows, unit, Op.MATCH, self.blend_ratio, matching.METHODS.index(self.transform_type))
