"""What belongs to places in an image, in the samples of a data set: dicts, or pairs of an image and what is of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variegate.errors import DecodeError
from variegate.formats.annotated.fields import ObjectFields
from variegate.formats.labels import IMAGE_NAMES

_LABEL, _OBJECTS = "label", "objects"
_ACCEPTED = "a dict, an image and a dict, or an image and a list of dicts of objects"


def targets_beside(
    sample: Any, size: tuple[int, int], name: str, classes: tuple[str, ...], box_format: str, normalized: bool
) -> dict[str, Any]:
    """All that stands beside the image, under its own names and as it is, but for the image's own label.

    Objects as COCO's API gives them, ``(image, [{"bbox": ..., "category_id": ...}, ...])``, or as Hugging Face's data
    sets have them, ``{"image": ..., "objects": {"bbox": ..., "category": ...}}``, become labels, and boxes as edges in
    pixels, or in the format that they are written in, where ``box_format`` says so. ``size``: the image's height and
    width. Raises TypeError for a sample of another form, DecodeError for wrong objects, and for another ``box_format``
    or ``normalized`` boxes, as which they were never written.
    """
    beside = _beside(sample)
    if beside is None:
        kinds = ", ".join(type(one).__name__ for one in sample) if isinstance(sample, (list, tuple)) else ""
        got = f"a {type(sample).__name__}{f' of {kinds}' if kinds else ''}"
        raise TypeError(f"{name}: got {got}; accepted with targets=: {_ACCEPTED}")
    found = {key: value for key, value in beside.items() if key not in (_LABEL, _OBJECTS)}
    if _OBJECTS not in beside:
        return found
    try:
        made = ObjectFields(classes=classes).read(beside[_OBJECTS], size)
    except (TypeError, ValueError, OverflowError) as error:
        raise DecodeError(name, f"its objects: {error}") from None
    if made.wrong:
        raise DecodeError(name, f"its objects: {made.wrong[0]}")
    boxes = made.targets.get("boxes")
    if boxes is not None and len(boxes) and (normalized or box_format != "xyxy"):
        if normalized or box_format != made.box_format:
            own = f", or box_format={made.box_format!r}" if made.box_format != "xyxy" else ""
            asked = f"vg.Targets(box_format={box_format!r}, normalized={normalized})"
            accepted = f"vg.Targets(box_format='xyxy'), for edges{own}, in pixels"
            raise DecodeError(
                name, f"its objects: read as {made.box_format} in pixels, got {asked}; accepted: {accepted}"
            )
        boxes[:, 2:] -= boxes[:, :2]  # "xywh", the only other format that objects are read in
    return found | made.targets


def label_beside(sample: Any) -> Any:
    """The image's own label; None without."""
    beside = _beside(sample)
    return None if beside is None else beside.get(_LABEL)


def _beside(sample: Any) -> dict[str, Any] | None:
    if isinstance(sample, Mapping):
        image = next((key for key in IMAGE_NAMES if key in sample), None)
        return {key: value for key, value in sample.items() if key != image}
    if not isinstance(sample, (list, tuple)) or len(sample) != 2:
        return None
    second = sample[1]
    if isinstance(second, list) and all(isinstance(one, Mapping) for one in second):
        return {_OBJECTS: second}
    return dict(second) if isinstance(second, Mapping) else None
