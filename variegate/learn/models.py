"""Models by name: Wide Residual Networks, networks after airbench94, timm's, or a factory of your own."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import torch
import torch.nn.functional as nnf
from torch import nn
from torch.nn.parameter import is_lazy

from variegate.errors import truncate_middle
from variegate.io.addresses import redact_text
from variegate.program import rng

# Channels of the three blocks at width 1, and the side of the patches that the first layer looks at.
_CHANNELS = (64, 256, 256)
_PATCH = 2
# Scores are divided by this, so that a network of any seed begins with all classes nearly alike.
_SCORES_OVER = 9.0
_STATISTICS_MOMENTUM = 0.4
_EPSILON = 1e-12
# A shift that is this many times its parameter moves as by a learning rate of 64, the paper's for them, against the
# others' 1; weight decay means the same to both.
_SHIFT = 8.0
# Added to variances, about 1 to 10 for normalized images, to avoid division by zero.
_LEAST_VARIANCE = 5e-4


class Airbench(nn.Module):
    """Scores [N, ``num_classes``] of images [N, ``in_channels``, H, W] with sides of 9 pixels or more.

    A convolution whose weights ``initialize`` sets to whiten patches, then three blocks that begin as the identity.
    Their batch norm has no learned scales. ``width``: share of the paper's channels. Raises ValueError.
    """

    def __init__(self, width: float, num_classes: int, in_channels: int = 3) -> None:
        super().__init__()
        channels = [round(width * each) for each in _CHANNELS]
        if not min(channels) >= 1:
            raise ValueError(f"width: got {width:g}; accepted: more, such as 0.25, 0.5 or 1")
        first = 2 * in_channels * _PATCH**2
        self.whiten = nn.Conv2d(in_channels, first, _PATCH)
        self.whiten.weight.requires_grad_(False)
        nn.init.zeros_(self.whiten.bias)  # type: ignore[arg-type]
        pairs = zip([first, *channels], channels, strict=False)
        self.blocks = nn.Sequential(*(_FastBlock(narrow, wide) for narrow, wide in pairs))
        self.head = nn.Linear(channels[-1], num_classes, bias=False)

    @torch.no_grad()
    def initialize(self, images: torch.Tensor) -> None:
        """``images``: float32 [N, C, H, W], a few hundred or more that it will be trained on, as it will see them."""
        filters = whitening_filters(images, _PATCH)
        self.whiten.weight.copy_(torch.cat([filters, -filters]))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.blocks(nnf.gelu(self.whiten(images)))
        scores: torch.Tensor = self.head(features.amax((2, 3)))
        return scores / _SCORES_OVER


class _FastBlock(nn.Module):
    def __init__(self, narrow: int, wide: int) -> None:
        super().__init__()
        self.conv1 = _convolution(narrow, wide)
        self.norm1 = _ShiftedNorm(wide)
        self.conv2 = _convolution(wide, wide)
        self.norm2 = _ShiftedNorm(wide)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nnf.gelu(self.norm1(nnf.max_pool2d(self.conv1(x), 2)))
        return nnf.gelu(self.norm2(self.conv2(x)))


class _ShiftedNorm(nn.BatchNorm2d):
    """Batch norm without a scale."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=_EPSILON, momentum=_STATISTICS_MOMENTUM, affine=False)
        self.shift = nn.Parameter(torch.zeros(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        is_new = self.training
        momentum = self.momentum or 0.0
        mean = self.running_mean
        variance = self.running_var
        return nnf.batch_norm(x, mean, variance, None, _SHIFT * self.shift, is_new, momentum, self.eps)


def _convolution(narrow: int, wide: int) -> nn.Conv2d:
    """The first outputs, one per input, begin as the identity."""
    made = nn.Conv2d(narrow, wide, 3, padding="same", bias=False)
    nn.init.dirac_(made.weight[: min(narrow, wide)])
    return made


@torch.no_grad()
def whitening_filters(images: torch.Tensor, side: int) -> torch.Tensor:
    """Filters [C * ``side``^2, C, ``side``, ``side``] that whiten patches of images [N, C, H, W], the strongest
    first."""
    channels = images.shape[1]
    patches = images.double().unfold(2, side, 1).unfold(3, side, 1).permute(0, 2, 3, 1, 4, 5)
    rows = patches.reshape(-1, channels * side * side)
    rows = rows - rows.mean(0)
    variances, directions = torch.linalg.eigh(rows.T @ rows / len(rows))
    filters = directions.T / torch.sqrt(variances.clamp_min(0.0) + _LEAST_VARIANCE)[:, None]
    return filters.flip(0).reshape(-1, channels, side, side).to(images.dtype)


ACCEPTED = (
    "wrn-DEPTH-WIDTH such as wrn-28-2, wrn-40-2 or wrn-16-1, with -stem2, -stem4 or -stem8 for large images; "
    "airbench-94 or, of another width, airbench-94x0.5; timm:NAME; or package.module:factory, which is called with "
    "num_classes and gives a torch.nn.Module"
)


class ModelError(ValueError):
    """A model that cannot be made. The message is one printable line, whatever text a file or a library contributed."""

    def __init__(self, message: str) -> None:
        super().__init__(redact_text(truncate_middle(" ".join(message.split()))))


def build_model(name: str, num_classes: int, in_channels: int = 3, **of_timm: Any) -> nn.Module:
    """A new model, its weights drawn from torch's generator.

    ``name``: "wrn-28-2", "airbench-94", "timm:resnet18" (timm must be installed), or "package.module:factory": a
    callable that is given ``num_classes`` as a keyword. ``of_timm``: further arguments of ``timm.create_model``.

    Raises ModelError for an unknown name, for a model that cannot be built, and for timm's arguments with another
    model.
    """
    prefix, _, rest = name.partition(":")
    if prefix == "timm" and rest:
        timm = _timm(rest)
        try:
            model: nn.Module = timm.create_model(rest, num_classes=num_classes, in_chans=in_channels, **of_timm)
        except Exception as error:
            raise ModelError(f"model {name}: {error}") from error
        return model
    if of_timm:
        raise ModelError(f"model {name}: takes no {', '.join(of_timm)}; accepted: with timm:NAME alone")
    try:
        if wide := re.fullmatch(r"wrn-(\d+)-(\d+)(?:-stem(2|4|8))?", name):
            return WideResNet(int(wide[1]), int(wide[2]), num_classes, in_channels, int(wide[3] or 1))
        if fast := re.fullmatch(r"airbench-94(?:x(\d+(?:\.\d+)?))?", name):
            return Airbench(float(fast[1] or 1), num_classes, in_channels)
    except ValueError as error:
        raise ModelError(f"model {name}: {error}") from error
    if rest:
        return _build_own(name, prefix, rest, num_classes)
    raise ModelError(f"model: got {name!r}; accepted: {ACCEPTED}")


def model_to_train(name: str, num_classes: int, in_channels: int, device: str, seed: int, **of_timm: Any) -> nn.Module:
    """``build_model`` with weights of ``seed``, on the device, in channels-last layout. Raises ModelError."""
    with seeded_weights(seed):
        model = build_model(name, num_classes, in_channels, **of_timm).to(device)
    if not any(weight.requires_grad for weight in model.parameters()):
        raise ModelError(f"model {name}: has nothing to train; accepted: weights with requires_grad")
    if any(is_lazy(weight) for weight in model.parameters()):
        raise ModelError(
            f"model {name}: has layers that learn their sizes from images (Lazy...); accepted: fixed sizes"
        )
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def statistics_of(name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of the images on which timm:NAME was pretrained. Raises ModelError."""
    name = name.removeprefix("timm:")
    try:
        found = _timm(name).models.get_pretrained_cfg(name)
    except RuntimeError as error:
        raise ModelError(f"model timm:{name}: {error}") from error
    if found is None:
        raise ModelError(
            f"model timm:{name}: timm has none of that name with weights (--pretrained); accepted: another of timm's"
        )
    return tuple(found.mean), tuple(found.std)


def _timm(name: str) -> Any:
    try:
        return importlib.import_module("timm")
    except Exception as error:  # imported packages may fail in any way
        if isinstance(error, ModuleNotFoundError) and error.name == "timm":
            raise ModelError(f"model timm:{name}: timm is not installed: pip install timm") from error
        raise ModelError(f"model timm:{name}: timm cannot be imported ({type(error).__name__}: {error})") from error


def _build_own(name: str, module: str, factory: str, num_classes: int) -> nn.Module:
    try:
        made: Any = importlib.import_module(module)
        for part in factory.split("."):
            made = getattr(made, part)
    except (ImportError, AttributeError) as error:
        raise ModelError(f"model {name}: {error}; accepted: {ACCEPTED}") from error
    except Exception as error:
        raise ModelError(f"model {name}: {module} cannot be imported ({type(error).__name__}: {error})") from error
    try:
        model = made(num_classes=num_classes)
    except Exception as error:
        raise ModelError(f"model {name}: {factory}(num_classes={num_classes}) failed: {error}") from error
    if not isinstance(model, nn.Module):
        raise ModelError(f"model {name}: {factory} gave a {type(model).__name__}; accepted: a torch.nn.Module")
    return model


class WideResNet(nn.Module):
    """WRN-``depth``-``width`` (Zagoruyko and Komodakis 2016, arXiv 1605.07146), from images [N, ``in_channels``,
    H, W] to scores [N, ``num_classes``].

    Pre-activation blocks in three stages of 16, 32 and 64 times ``width`` channels; the second and third halve the
    sides. Any sides of 4 pixels or more. Batch norm with decay 0.9 and epsilon 1e-5, as in the search of Population
    Based Augmentation. ``stem``: stride of the first layer, for images of more than 64 pixels; it has as many times the
    channels. Raises ValueError for a depth that is not 6n + 4, and for numbers below 1.
    """

    def __init__(self, depth: int, width: int, num_classes: int, in_channels: int = 3, stem: int = 1) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth: got {depth}; accepted: 6n + 4, such as 10, 16, 28, 40")
        for name, value in (("width", width), ("num_classes", num_classes), ("in_channels", in_channels)):
            if value < 1:
                raise ValueError(f"{name}: got {value}; accepted: 1 or more")
        blocks = (depth - 4) // 6
        channels = 16 * stem
        self.stem = nn.Conv2d(in_channels, channels, 2 * stem + 1, stem, padding=stem, bias=False)
        stages: list[nn.Module] = []
        for stage in range(3):
            wide = 16 * width << stage
            for block in range(blocks):
                stages.append(_Block(channels, wide, stride=2 if stage > 0 and block == 0 else 1))
                channels = wide
        self.blocks = nn.Sequential(*stages)
        self.norm = nn.BatchNorm2d(channels)
        self.head = nn.Linear(channels, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                # He's normal initialization by the fan-out, as in the paper.
                fan_out = module.out_channels * module.kernel_size[0] * module.kernel_size[1]
                nn.init.normal_(module.weight, 0.0, math.sqrt(2.0 / fan_out))
        nn.init.zeros_(self.head.bias)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = torch.relu(self.norm(self.blocks(self.stem(images))))
        scores: torch.Tensor = self.head(features.mean((2, 3)))
        return scores


class _Block(nn.Module):
    def __init__(self, narrow: int, wide: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(narrow)
        self.conv1 = nn.Conv2d(narrow, wide, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, padding=1, bias=False)
        is_same = stride == 1 and narrow == wide
        self.shortcut = None if is_same else nn.Conv2d(narrow, wide, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        active = torch.relu(self.norm1(x))
        # Where channels change, the shortcut begins after the activation, as the authors have it.
        kept = x if self.shortcut is None else self.shortcut(active)
        out: torch.Tensor = self.conv2(torch.relu(self.norm2(self.conv1(active))))
        return out + kept


# Distinct from the domains of samples, orders and searches, so that no two share a stream.
_DOMAIN = 0x54524149

# The CPU's generator is global: parallel training runs draw from it one at a time.
_CPU = RLock()


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Context manager: weights drawn within depend on ``seed`` only, also for GPU models, which are built on the
    CPU."""
    with _CPU, seeded_generator(torch.default_generator, seed):
        yield


def layer_seed(seed: int, time: int, rank: int = 0) -> int:
    """Seed of random layers in an epoch or a step."""
    words = rng.stream_key(seed, time, rank, _DOMAIN)
    return int(words[0]) << 32 | int(words[1])


@contextmanager
def seeded_generator(generator: torch.Generator, seed: int) -> Iterator[None]:
    """Context manager: draws within depend on ``seed`` only; afterwards the generator resumes its earlier state."""
    state = generator.get_state()
    generator.manual_seed(seed)
    try:
        yield
    finally:
        generator.set_state(state)
