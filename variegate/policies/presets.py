"""The views of self-supervised learning as published: whole recipes, from the crop to the normalisation, by name.

Numbers and order are those of the papers and their code. Two things differ: resizing is Pillow's and antialiased,
also where that code is TensorFlow's or JAX's (SimCLR, BYOL); and where it blurs by Pillow's GaussianBlur (DINO, MoCo
v3), which makes three boxes of a Gaussian, this is the Gaussian, cut off at four deviations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from variegate.ops.base import Transform
from variegate.ops.compose import Compose, RandomApply
from variegate.ops.crop import RandomHorizontalFlip
from variegate.ops.filters import GaussianBlur
from variegate.ops.jitter import ColorJitter, RandomGrayscale, RandomSolarize
from variegate.ops.output import Normalize, ToDtype
from variegate.ops.resize import RandomResizedCrop
from variegate.policies.views import MultiView

_SIGMA = (0.1, 2.0)
_KERNEL, _WHOLE_KERNEL = 23, 17  # a tenth of 224; four deviations of 2 to each side
_NORMALIZE = Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_FLIP, _GRAY, _SOLARIZE = RandomHorizontalFlip(), RandomGrayscale(0.2), RandomSolarize(128.0, 0.2)
_MILD = RandomApply([ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8)


def _blur(p: float, kernel: int) -> Transform:
    blur = GaussianBlur(kernel, _SIGMA)
    return blur if p == 1.0 else RandomApply([blur], p)


def simclr() -> MultiView:
    """Two views alike of 224 pixels, on 0..1 (Chen et al. 2020, arXiv:2002.05709, appendix A)."""
    crop = RandomResizedCrop(224, (0.08, 1.0), interpolation="bicubic")
    jitter = RandomApply([ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8)
    view = Compose([crop, _FLIP, jitter, _GRAY, _blur(0.5, _KERNEL), ToDtype("float32", scale=True)])
    return MultiView([view, view])


def byol() -> MultiView:
    """Two views of 224 pixels: one always blurred, one solarized now and then (Grill et al. 2020, arXiv:2006.07733,
    appendix B)."""
    begin = [RandomResizedCrop(224, (0.08, 1.0), interpolation="bicubic"), _FLIP, _MILD, _GRAY]
    return _pair(begin, [_blur(1.0, _KERNEL)], [_blur(0.1, _KERNEL), _SOLARIZE], [])


def mocov3() -> MultiView:
    """BYOL's views with a bilinear crop and the flip last (Chen et al. 2021, arXiv:2104.02057; ``crop_min`` 0.08)."""
    begin = [RandomResizedCrop(224, (0.08, 1.0)), _MILD, _GRAY]
    return _pair(begin, [_blur(1.0, _WHOLE_KERNEL)], [_blur(0.1, _WHOLE_KERNEL), _SOLARIZE], [_FLIP])


def dino() -> MultiView:
    """Two views of 224 pixels and six of 96 (Caron et al. 2021, arXiv:2104.14294; 2 x 224 + 6 x 96 in its table 8,
    where the code's default is eight small ones, scales 0.4 to 1 and 0.05 to 0.4)."""

    def view(size: int, scale: tuple[float, float], *last: Transform) -> Compose:
        crop = RandomResizedCrop(size, scale, interpolation="bicubic")
        return Compose([crop, _FLIP, _MILD, _GRAY, *last, _NORMALIZE])

    first = view(224, (0.4, 1.0), _blur(1.0, _WHOLE_KERNEL))
    second = view(224, (0.4, 1.0), _blur(0.1, _WHOLE_KERNEL), _SOLARIZE)
    local = view(96, (0.05, 0.4), _blur(0.5, _WHOLE_KERNEL))
    return MultiView([[first, second], local], counts=[2, 6])


def _pair(
    begin: Sequence[Transform], first: Sequence[Transform], second: Sequence[Transform], end: Sequence[Transform]
) -> MultiView:
    return MultiView([Compose([*begin, *own, *end, _NORMALIZE]) for own in (first, second)])


PRESETS: dict[str, Callable[[], MultiView]] = {"simclr": simclr, "byol": byol, "dino": dino, "mocov3": mocov3}
