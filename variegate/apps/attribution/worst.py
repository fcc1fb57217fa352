"""The hardest draws of a training as a contact sheet, each with its operations and the call that makes it again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from variegate.apps.preview import sheet as layout
from variegate.apps.preview.rows import captions, in_bytes
from variegate.apps.train.losses import RecordedLosses
from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.planner import num_partners
from variegate.decode import read_image
from variegate.formats.base import Source
from variegate.io.addresses import shown
from variegate.ops.base import Transform
from variegate.ops.compose import Cond
from variegate.ops.description import walk
from variegate.program.describe import operations_of

_IN_A_ROW = 3


class WorstDraw(NamedTuple):
    """A draw with a large loss. ``excess``: above the mean of its image, apart from the epoch's effect. ``replay``:
    Python that augments ``image``, its picture, again."""

    name: str
    label: str
    id: int
    epoch: int
    copy: int
    loss: float
    excess: float
    operations: tuple[str, ...]
    replay: str


def draw_worst(
    source: Source, transform: Transform, recorded: RecordedLosses, places: Iterable[tuple[Any, ...]]
) -> tuple[tuple[WorstDraw, ...], Image.Image | None]:
    """Describe and draw them; no sheet without any. ``places``: row, epoch, copy, loss and excess of each."""
    augmenter = Augmenter(transform, "cpu", recorded.run["seed"], layout="NHWC")
    maker = f"vg.Augmenter(vg.load_policy({str(recorded.transform)!r}), seed={recorded.run['seed']})"
    # An image that is drawn to be mixed with none is made of itself alone.
    partners = {"partners": "batch"} if num_partners(transform) else {}
    needs_label = any(isinstance(part, Cond) and part.by == "label" for part in walk(transform))
    draws, cells = list[WorstDraw](), list[layout.Cell]()
    for row, epoch, copy, loss, excess in places:
        item, ids, name = source.read(row), recorded.ids[[row]], shown(str(source.name(row)))
        pixels = np.asarray(read_image(item.data) if isinstance(item.data, bytes) else item.data)
        given = {"label": np.array([int(item.label)]), **recorded.conditions(epoch)(ids)}
        program = in_bytes(augmenter.program([pixels], ids, epoch, copy, given, **partners))
        made: Any = augmenter.run(program, [pixels])
        lines = captions(operations_of(program, 0, in_words=True))
        needed = {key: one.tolist() for key, one in given.items() if key != "label" or needs_label}
        more = f", copy={copy}" * (copy > 0) + f", conditions={needed}" * bool(needed)
        call = f"([image], [{ids[0]}], {epoch}{more}" + ", partners='batch'" * bool(partners) + ")"
        label = recorded.run["classes"][int(item.label)]
        draws.append(WorstDraw(name, label, int(ids[0]), epoch, copy, loss, excess, tuple(lines), maker + call))
        cells.append(layout.Cell(pixels, name, [label], is_name=True))
        cells.append(layout.Cell(made[0].numpy(), f"loss {loss:.2f} ({excess:+.2f})", [*lines, f"augmenter{call}"]))
    if not cells:
        return (), None
    rows = [cells[first : first + 2 * _IN_A_ROW] for first in range(0, len(cells), 2 * _IN_A_ROW)]
    notes = ["In parentheses: loss above the mean of the image, apart from the epoch.", f"augmenter = {maker}"]
    title = "Strong draws with the largest loss"
    return tuple(draws), layout.draw_sheet(rows, title, notes, *layout.sizes_for(rows, title, notes))
