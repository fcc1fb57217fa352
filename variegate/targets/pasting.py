"""The masks of outputs, read through their rows and pasted as their images are, in the host's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from variegate.targets.masks import Indices, read_places, shown
from variegate.targets.parts import Joined
from variegate.targets.samples import Mask
from variegate.targets.stages import Stages

Array = npt.NDArray[Any]


class OutputMasks(NamedTuple):
    """Of one output: masks [h, w] by name, and those of its boxes [M, h, w], None where it has none."""

    named: dict[str, torch.Tensor]
    instances: torch.Tensor | None


def masks_on_host(
    stages: Stages,
    sizes: npt.NDArray[np.int64],
    outputs: Sequence[Sequence[Joined]],
    mask_fill: int,
    num_threads: int | None,
) -> list[OutputMasks]:
    """``sizes``: int[R, 2, 2] of the rows' images and of their results. ``outputs``: what each is joined from, its own
    image first."""
    rows = np.array(sorted({each.part.row for joined in outputs for each in joined}), np.int64)
    places = dict(zip(rows.tolist(), read_places(stages, rows, sizes[rows], num_threads), strict=True))
    made = []
    for joined in outputs:
        size = tuple(sizes[joined[0].part.row, 1].tolist())
        own = joined[0].of
        named = {name: _pasted(name, joined, places, size, mask_fill) for name in own.masks}
        instances = None if own.instances is None else _instances(joined, places, size, mask_fill)
        made.append(OutputMasks(named, instances))
    return made


def checked_fill(mask_fill: int, dtype: np.dtype[Any]) -> int:
    """Raises ValueError for one that masks of this dtype cannot hold."""
    low, high = (0, 1) if dtype == np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if not low <= mask_fill <= high:
        raise ValueError(f"mask_fill: got {mask_fill}; accepted for {dtype} masks: {low} to {high}")
    return mask_fill


def order_of(joined: Sequence[Joined]) -> list[int]:
    """In which their masks are pasted: where images are blended, that of the greatest weight comes last. Own ones last
    among equals, so that they lie on top."""
    return sorted(range(len(joined)), key=lambda n: (joined[n].part.weight, -n))


def _pasted(
    name: str, joined: Sequence[Joined], places: dict[int, Indices], size: tuple[int, ...], mask_fill: int
) -> torch.Tensor:
    """One mask of an output."""
    masks = [_on_host(each.of.masks[name]) for each in joined]
    dtype = np.result_type(*masks)
    out = np.full(size, checked_fill(mask_fill, dtype), dtype)
    for n in order_of(joined):
        part = joined[n].part
        for left, top, right, bottom in part.boxes.tolist():
            read = places[part.row][top:bottom, left:right]
            out[top:bottom, left:right] = shown(masks[n], read, checked_fill(mask_fill, masks[n].dtype))
    return torch.from_numpy(out)


def _instances(
    joined: Sequence[Joined], places: dict[int, Indices], size: tuple[int, ...], mask_fill: int
) -> torch.Tensor:
    every = []
    for each in joined:
        assert each.of.instances is not None
        masks, kept = _on_host(each.of.instances), each.kept_instances
        fill = checked_fill(mask_fill, masks.dtype)
        out = np.full((len(kept), *size), fill, masks.dtype)
        for left, top, right, bottom in each.part.boxes.tolist():
            read = places[each.part.row][top:bottom, left:right]
            for n, at in enumerate(kept.tolist()):
                out[n, top:bottom, left:right] = shown(masks[at], read, fill)
        every.append(out)
    return torch.from_numpy(np.concatenate(every))


def _on_host(mask: Mask) -> Array:
    return mask.cpu().numpy() if isinstance(mask, torch.Tensor) else mask
