"""``t(image)``: the one way up from a description to what runs it, taken when somebody calls a transform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def call(transform: Any, image: Any) -> torch.Tensor:
    # Here and not above: describing transforms needs neither torch nor a kernel, and those import transforms.
    from variegate.integrations.one_image import augment_one

    return augment_one(transform, image)
