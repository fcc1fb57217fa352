"""How the records of a data set name what belongs to an image, so that others can be written alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from variegate.formats.annotated.fields import BOX_NAMES, OBJECT_LABEL_NAMES, POINT_NAMES, ObjectFields

if TYPE_CHECKING:
    import pyarrow as pa

# Of how many samples at most the records are looked at.
FIRST_RECORDS = 100
_UNDER = ("objects", "annotations")


@dataclass(frozen=True)
class RecordForm:
    """``boxes``, ``labels``, ``keypoints``: names in a record, None for what it has not. ``is_list``: it is a list of
    objects, not a dict of lists. ``under``: the name that it has itself in a JSON text. ``box_format``: "xyxy", "xywh"
    or "cxcywh". ``per_box``: further names, with Arrow's names of their types where these are known."""

    boxes: str | None = None
    labels: str | None = None
    keypoints: str | None = None
    is_list: bool = False
    under: str | None = None
    box_format: str = "xyxy"
    normalized: bool = False
    point_origin: str = "corner"
    per_box: Mapping[str, str | None] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        """As JSON has it; ``RecordForm(**told)`` is the same."""
        return asdict(self)


def under_name(record: Any) -> str | None:
    """The name under which a JSON text has its objects; None where it is itself what says them."""
    return next((name for name in _UNDER if name in record), None) if isinstance(record, Mapping) else None


def form_of(fields: ObjectFields, records: Iterable[Any]) -> RecordForm:
    """Of the first of these JSON texts with an object, or the last of them; of none, the usual names."""
    form = _named(fields, ("boxes", "labels"), False, None)
    for text in records:
        under = under_name(text)
        record = text if under is None else text[under]
        is_list = not isinstance(record, Mapping)
        names = list(dict.fromkeys(_names(record)))
        form = _named(fields, names or ("boxes", "labels"), is_list, under)
        if names and (is_list or record.get(form.boxes or form.keypoints)):
            break
    return form


def form_of_type(fields: ObjectFields, schema: pa.Schema | None, objects: str | None) -> RecordForm:
    """Of columns, or of what is nested in the column ``objects``."""
    import pyarrow as pa

    if schema is None:
        return RecordForm()
    is_list, holder = False, schema
    if objects is not None:
        kind = schema.field(objects).type
        is_list = not pa.types.is_struct(kind)
        holder = kind.value_type if is_list else kind
    types = {one.name: one.type if is_list else getattr(one.type, "value_type", one.type) for one in holder}
    return _named(fields, list(types), is_list, None, {name: str(kind) for name, kind in types.items()})


def _names(record: Any) -> Iterator[str]:
    if isinstance(record, Mapping):
        yield from record
    elif isinstance(record, (list, tuple)):
        for one in record:
            yield from one if isinstance(one, Mapping) else ()


def _named(
    fields: ObjectFields, names: Iterable[str], is_list: bool, under: str | None, types: Mapping[str, str] | None = None
) -> RecordForm:
    def name(given: str | None, usual: tuple[str, ...]) -> str | None:
        return given or next((one for one in usual if one in names), None)

    boxes = name(fields.boxes, BOX_NAMES)
    return RecordForm(
        boxes,
        name(fields.labels, OBJECT_LABEL_NAMES) if boxes else None,
        name(fields.keypoints, POINT_NAMES),
        is_list,
        under,
        fields.box_format or ("xywh" if boxes == "bbox" else "xyxy"),
        fields.normalized,
        fields.point_origin,
        {one: (types or {}).get(one) for one in fields.per_box},
    )
