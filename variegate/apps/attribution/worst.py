"""The hardest draws of a training as a contact sheet, each with its operations and the call that makes it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from PIL import Image

from variegate.apps.preview import sheet as layout
from variegate.apps.preview.choosing import read_chosen
from variegate.apps.preview.rows import captions, in_bytes
from variegate.apps.train.losses import RecordedLosses
from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.planner import num_partners
from variegate.formats.base import Source
from variegate.ops.base import Transform
from variegate.ops.compose import Cond
from variegate.ops.description import walk
from variegate.program.describe import operations_of

_IN_A_ROW = 3


@dataclass(frozen=True)
class WorstDraw:
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
    seed = recorded.run["seed"]
    augmenter = Augmenter(transform, "cpu", seed, layout="NHWC")
    maker = f"vg.Augmenter(vg.load_policy({str(recorded.transform)!r}), seed={seed})"
    needs_label = any(isinstance(part, Cond) and part.by == "label" for part in walk(transform))
    # An image that is drawn to be mixed with none is made of itself alone.
    partners = {"partners": "batch"} if num_partners(transform) else {}
    draws, cells = list[WorstDraw](), list[layout.Cell]()
    for row, epoch, copy, loss, excess in places:
        image = read_chosen(source, row)
        number, label = image.sample_id, recorded.run["classes"][int(image.label)]
        given = recorded.conditions(epoch)(recorded.ids[[row]])
        needed = {key: one.tolist() for key, one in given.items()}
        needed |= {"label": [int(image.label)]} if needs_label else {}
        how: dict[str, Any] = {"copy": copy, "conditions": needed, **partners}
        program = in_bytes(augmenter.program([image.img_HWC], [number], epoch, **how))
        made: Any = augmenter.run(program, [image.img_HWC])
        lines = captions(operations_of(program, 0, in_words=True))
        said = "".join(f", {key}={value!r}" for key, value in how.items() if value)
        call = f"([image], [{number}], {epoch}{said})"
        draws.append(WorstDraw(image.name, label, number, epoch, copy, loss, excess, tuple(lines), maker + call))
        cells.append(layout.Cell(image.img_HWC, image.name, [label], is_name=True))
        cells.append(layout.Cell(made[0].numpy(), f"loss {loss:.2f} ({excess:+.2f})", [*lines, f"augmenter{call}"]))
    if not cells:
        return (), None
    rows = [cells[first : first + 2 * _IN_A_ROW] for first in range(0, len(cells), 2 * _IN_A_ROW)]
    notes = ["In parentheses: loss above the mean of the image, apart from the epoch.", f"augmenter = {maker}"]
    title = "The draws with the largest loss above the mean of their image"
    return tuple(draws), layout.draw_sheet(rows, title, notes, *layout.sizes_for(rows, title, notes))
