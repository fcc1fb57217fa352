"""Import torchvision beside a CPU build of torch, which lacks the compiled operators that the import describes."""

from __future__ import annotations

import torch


def import_v2() -> object:
    """``torchvision.transforms.v2``. Declares the two operators if, and only if, the plain import misses them."""
    try:
        from torchvision.transforms import v2
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import_v2._library = library  # type: ignore[attr-defined]  # the definitions live as long as this object
        from torchvision.transforms import v2
    return v2
