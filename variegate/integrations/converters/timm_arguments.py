"""The arguments of ``timm.data.create_transform``, with timm's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class TimmArguments:
    """Names and defaults are those of timm 1.0."""

    input_size: Any = 224
    is_training: bool = False
    no_aug: bool = False
    train_crop_mode: str | None = None
    scale: Any = None
    ratio: Any = None
    hflip: float = 0.5
    vflip: float = 0.0
    color_jitter: Any = 0.4
    color_jitter_prob: float | None = None
    grayscale_prob: float = 0.0
    gaussian_blur_prob: float = 0.0
    auto_augment: str | None = None
    interpolation: str = "bilinear"
    mean: Any = _MEAN
    std: Any = _STD
    re_prob: float = 0.0
    re_mode: str = "const"
    re_count: int = 1
    # Of batches, which single images leave alone.
    re_num_splits: int = 0
    crop_pct: float | None = None
    crop_mode: str | None = None
    crop_border_pixels: int | None = None
    tf_preprocessing: bool = False
    use_prefetcher: bool = False
    normalize: bool = True
    separate: bool = False
    naflex: bool = False
    # Of naflex and patchify.
    patch_size: Any = 16
    max_seq_len: int = 576
    patchify: bool = False
