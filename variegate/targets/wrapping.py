"""Targets as torchvision's ``tv_tensors``, where they came as such."""

from __future__ import annotations

import sys
from typing import Any


def has_tv_tensors() -> bool:
    """Whether any value could be one; whoever has one has imported torchvision."""
    return "torchvision.tv_tensors" in sys.modules


def is_tv_tensor(value: Any) -> bool:
    return type(value).__module__.startswith("torchvision.tv_tensors")


def check_canvas(name: str, kinds: dict[str, Any], size: tuple[int, int]) -> None:
    """Raises ValueError for boxes or key points of a sample that say that they are of an image of another size."""
    for key, value in kinds.items():
        canvas = getattr(value, "canvas_size", None)
        if canvas is not None and tuple(canvas) != size:
            raise ValueError(
                f"{name}[{key!r}]: got canvas_size={tuple(canvas)}; accepted: the image's own height and width, {size}"
            )


def wrapped_as(tensor: Any, like: Any, **metadata: Any) -> Any:
    return sys.modules["torchvision.tv_tensors"].wrap(tensor, like=like, **metadata)


def wrap_results(result: dict[str, Any], kinds: dict[str, Any], size: tuple[int, int]) -> None:
    """Give the entries of ``result`` that came as tv_tensors their types, and the height and width of the new image.

    ``kinds``: what came, by key.
    """
    for key, like in kinds.items():
        if key in result:
            sized = {"canvas_size": size} if hasattr(like, "canvas_size") else {}
            result[key] = wrapped_as(result[key], like, **sized)
