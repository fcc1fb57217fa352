"""What comes of the items of an expansion, and the manifest's rows: of outputs that were made, and of those that could
not be made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate.engine.expansion.plan import Plan
from variegate.program.describe import operations_of
from variegate.program.program import Program
from variegate.sinks.naming import output_path

Image_HWC = npt.NDArray[np.uint8]


class ItemOutputs(NamedTuple):
    """The outputs of an item, by copy: the manifest's rows as JSON; where it is not the worker who writes them, the
    image files, and the sample's label as the source has it. ``notes``: warnings that came on the way."""

    rows: tuple[str, ...]
    data: tuple[bytes, ...] = ()
    label: Any = None
    notes: tuple[str, ...] = ()


@dataclass
class DecodedSample:
    """A decoded sample, and the items to be made of it."""

    index: int
    items: list[int]
    image: Image_HWC
    label: Any
    id: int
    outputs: dict[int, list[tuple[dict[str, Any], bytes]]] = field(default_factory=dict)  # by item


def written_row(
    plan: Plan, sample: DecodedSample, copy: int, program: Program, row: int, image: Image_HWC, data: bytes
) -> dict[str, Any]:
    """``image``: made by ``row`` of ``program``; ``data``: the file that it became. Who gathers outputs in shards adds
    ``file`` and ``member``."""
    index, label = sample.index, sample.label
    label = int(label) if isinstance(label, (int, np.integer)) else label
    return {
        **_about(plan, index, sample.id, copy),
        "file": output_path(plan.names.stem(index, label), copy, plan.format) if not plan.is_sharded else None,
        "status": "written",
        "reason": None,
        "label": label if isinstance(label, int) and 0 <= label < 1 << 63 else None,
        "class": plan.class_of(label),
        "height": image.shape[0],
        "width": image.shape[1],
        "operations": operations_of(program, row),
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
    }


def missing_rows(plan: Plan, item: int, reason: str) -> Iterator[dict[str, Any]]:
    """What the manifest says of an item that could not be made."""
    index = plan.sample_of(item)
    for copy in plan.copies_of(item):
        yield {**_about(plan, index, plan.sample_id(index), copy), "status": "quarantined", "reason": reason}


def _about(plan: Plan, index: int, id: int, copy: int) -> dict[str, Any]:
    return {
        "file": None,
        "member": None,
        "status": None,
        "reason": None,
        "source": plan.sample_name(index),
        "index": index,
        "id": id,
        "copy": copy,
    }
