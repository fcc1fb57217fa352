"""Transforms and sources of a command line: by the name of a policy and a size, by a place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from variegate.data.base import SourceError
from variegate.data.opening import open_source
from variegate.data.samples import Samples
from variegate.decode.dicom import Dicom
from variegate.errors import short_repr
from variegate.io.addresses import is_url, redact_url
from variegate.io.location import Location
from variegate.ops.compose import Compose
from variegate.ops.output import Identity
from variegate.ops.resize import RandomResizedCrop, Resize
from variegate.options.shared import DicomOptions, ReadOptions, TargetOptions
from variegate.policies import PBA, load_policy
from variegate.policies.base_augment import has_base_augment
from variegate.program.depth import Depth
from variegate.targets.settings import Targets
from variegate.transforms import Transform


def targets_of(options: TargetOptions) -> Targets | None:
    """Settings of how targets are augmented; None if all options have their defaults."""
    found = Targets(min_area=options.min_area, min_visibility=options.min_visibility, mask_fill=options.mask_fill)
    return None if found == Targets() else found


def reading_of(options: ReadOptions) -> dict[str, Any]:
    """Arguments ``depth`` and ``dicom`` of plans and sheets. Raises ValueError."""
    return {"depth": Depth.named(options.depth), "dicom": dicom_of(options)}


def dicom_of(options: DicomOptions) -> Dicom:
    """The options of DICOM files. Raises ValueError for a window that is none."""
    window: Any = options.window
    if window is None or window == "full":
        return Dicom(window, options.frame)
    try:
        center, width = map(float, window.split(",") if isinstance(window, str) else window)
        return Dicom((center, width), options.frame)
    except (TypeError, ValueError):
        accepted = "CENTER,WIDTH with a width above 0, such as '40,400', or 'full'"
        raise ValueError(f"window: got {short_repr(window)}; accepted: {accepted}") from None


def parse_size(text: str) -> tuple[int, int] | None:
    """``"224"``, ``"192x256"`` (height x width) or ``"none"`` -> (height, width) or None; ValueError for others."""
    if text.lower() == "none":
        return None
    match = re.fullmatch(r"(\d+)(?:x(\d+))?", text.lower())
    sides = [int(side) for side in match.groups() if side] if match else []
    if not sides or not all(1 <= side <= 65_535 for side in sides):
        raise ValueError(f"size: got {text!r}; accepted: a side such as 224, height x width such as 192x256, or none")
    return sides[0], sides[-1]


def build_transform(policy: str, size: tuple[int, int] | None) -> Transform:
    """The policy (name, file or "none"), after ``RandomResizedCrop(size)`` if a size is given; a policy with a crop of
    its own, after ``Resize(size)``. Raises PolicyError."""
    steps: list[Transform] = [] if policy.lower() == "none" else [load_policy(policy)]
    if size is not None:
        steps.insert(0, Resize(size) if has_base_augment(steps[0] if steps else None) else RandomResizedCrop(size))
    return Compose(steps) if len(steps) > 1 else (steps or [Identity()])[0]


WHOLE = "has crop, flip and cutout of its own; none are added"


def policy_notes(policy: str, size: str, epoch: int) -> list[str]:
    """Notes on a crop that a policy has and ``--size`` would make, and on an epoch in which a schedule does nothing:
    outputs would be plain copies."""
    loaded = None if policy.lower() == "none" else load_policy(policy)
    notes = [f"{policy}: {WHOLE}, and --size resizes"] if size.lower() != "none" and has_base_augment(loaded) else []
    if isinstance(loaded, PBA) and loaded.resolved.is_idle_at(epoch):
        other = f"--epoch selects another, from 0 to {loaded.resolved.epochs - 1}"
        notes.append(f"{policy}: in epoch {epoch} this schedule does nothing; {other}")
    return notes


def open_by_index(place: Any, on_error: str = "raise", annotations: Any = None) -> Samples:
    """``open_source`` for workers that read any sample at any time: shards are indexed now."""
    if not isinstance(place, (str, os.PathLike)):
        return open_source(place, stream=False)
    return open_source(place, stream=False, on_error=on_error, annotations=annotations)


def recorded_place(file: str, argument: str, place: Any) -> Any:
    """``place``, which ``file`` names as its source, annotations or list: of this machine.

    Raises SourceError for addresses, also within a dict or list: nothing is fetched because a file says so.
    """
    for text in filter(None, texts_in(place)):
        if is_url(text):
            accepted = f"{argument}=, or --{argument}, to open an address"
            raise SourceError(f"{file}: names the address {redact_url(text)} as {argument}; accepted: {accepted}")
    return place


def texts_in(value: Any) -> Iterator[str]:
    """The strings in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, Mapping)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(inner)


def absolute_place(spec: str) -> str:
    """A source as it means the same from any folder; without passwords and signatures, which may change."""
    location = Location.parse(spec, chain=True)
    return str(location) if location.is_url else os.path.abspath(location.address())
