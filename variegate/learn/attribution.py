"""Attribution: which operations of its augmentation, and which strengths, a trained model finds hard.

The model scores several augmentations of each training image. Least squares with an effect for each image finds the
loss that each operation adds. Standard errors are robust to heteroscedasticity and to correlation within an image
(Liang and Zeger 1986). A diagnostic: hard operations are not thereby harmful.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from variegate import transforms as T
from variegate.arrays import BoolArray, Float64Array
from variegate.augmenter.augmenter import Augmenter
from variegate.augmenter.planner import num_partners
from variegate.checks import integer
from variegate.data.base import SourceError
from variegate.data.samples import Samples
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.io.files import StrPath
from variegate.jobs.arguments import open_by_index, recorded_place
from variegate.learn.model_file import AUGMENTATION_NAME, load_model
from variegate.learn.reading import decoded, reading
from variegate.loader.shuffle import Permutation
from variegate.ops.description import from_dict
from variegate.options.shared import TrainReadOptions
from variegate.policies.uniform import needs_magnitude
from variegate.program.describe import operations_of

# By operation: (image, draw, strength) of each use.
Uses = dict[str, list[tuple[int, int, float]]]

_BATCH_SIZE = 128
_STRENGTH_BINS = 4
# Fewer give no useful standard error.
_MIN_DRAWS = 30
# Eigenvalues below this share of the largest count as 0.
_NULL_SHARE = 1e-9
_NOT_STRENGTHS = frozenset({"expand", "random", "normalized"})


@dataclass(frozen=True)
class Effect:
    """Loss that an operation adds, with its standard error, over ``draws`` augmentations.

    ``low``, ``high``: range of the operation's argument, NaN without an argument. ``is_relative``: every augmentation
    has one of several operations or strengths, so that ``added`` is the difference to their mean.
    """

    operation: str
    low: float
    high: float
    added: float
    error: float
    draws: int
    is_relative: bool

    @property
    def t(self) -> float:
        """``added`` in standard errors."""
        return self.added / self.error

    def row(self, name: str) -> str:
        """A row of the table."""
        argument = "" if math.isnan(self.low) else f"{self.low:.4g} to {self.high:.4g}"
        margin = 1.96 * self.error
        interval = f"{self.added - margin:+.3f} to {self.added + margin:+.3f}"
        mark = "*" if self.is_relative else ""
        return f"{name:<22}{argument:>20}{self.added:>+9.3f}{interval:>20}{self.t:>8.1f}{self.draws:>11,}{mark}"


@dataclass(frozen=True)
class Attribution:
    """Loss that each operation of a training's augmentation adds; ``print`` shows a table.

    Attributes:
        run: folder of the training.
        images, draws: number of images, and of their augmentations.
        loss: mean loss of the augmentations.
        operations: effects of operations, the largest ``t`` first.
        strengths: effects of operations by their argument.
    """

    run: str
    images: int
    draws: int
    loss: float
    operations: tuple[Effect, ...]
    strengths: tuple[Effect, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, fit for JSON."""
        plain = asdict(self)
        for effect in (*plain["operations"], *plain["strengths"]):
            if math.isnan(effect["low"]):
                effect["low"] = effect["high"] = None
        return plain

    def __str__(self) -> str:
        lines = [
            f"Loss added by each operation: {self.draws:,} draws of {self.images:,} images, mean loss {self.loss:.3f}",
            f"{'operation':<22}{'argument':>20}{'added':>9}{'95 % interval':>20}{'t':>8}{'draws':>11}",
        ]
        for effect in self.operations:
            lines.append(effect.row(effect.operation))
            lines += [part.row("") for part in self.strengths if part.operation == effect.operation]
        if any(effect.is_relative for effect in (*self.operations, *self.strengths)):
            lines.append("*: relative to the mean draw, since every draw has one of these")
        lines.append("A diagnostic: hard operations are not thereby harmful. Compare policies to decide.")
        return "\n".join(lines)


def attribution(
    run: StrPath,
    source: Any = None,
    *,
    images: int = 2000,
    draws: int = 8,
    model: str | torch.nn.Module | None = None,
    device: str = "auto",
) -> Attribution:
    """Attribute a trained model's losses to the operations of its training's augmentation.

    The model of ``run`` scores ``draws`` augmentations of each of ``images`` training images, as of the last epoch.
    Cross-entropies are regressed on operations and strengths, with an effect for each image. Images are scored
    without mixing. Adaptive magnitudes have their last mean.

    Args:
        run: folder of a complete ``variegate train``.
        source: images that it was trained on; None for the place that they were read from.
        images: number of images, drawn by the training's seed.
        draws: augmentations of each image, from 2 on.
        model: for a model of your own, as for ``vg.load_model``.
        device: "cpu", "cuda", "cuda:N", or "auto" for a GPU if there is one.

    Raises:
        ModelError, FileNotFoundError: for a folder without a complete training.
        DecodeError, SourceError, ValueError: for images that cannot be read, other images, and an augmentation without
            operations.
    """
    integer("images", images, 1)
    integer("draws", draws, 2)
    network, _, _ = load_model(run, model=model, device=device)
    path = Path(run) / AUGMENTATION_NAME
    settings = json.loads(path.read_bytes())
    opened = _open_images(path, settings, source)
    try:
        read = TrainReadOptions(**{name: settings.get(name) for name in ("depth", "window", "frame")})
    except ValueError as error:
        raise SourceError(f"{path}: {error}") from error
    described: Any = from_dict(settings["transform"], f"{path}: transform")
    transform = T.Compose([step for step in described.transforms if not num_partners(step)])
    augmenter = Augmenter(transform, str(next(network.parameters()).device), seed=settings["seed"])
    conditions = {"magnitude": _last_magnitude(path.parent)} if needs_magnitude(transform) else {}

    sampled = Permutation(len(opened), settings["seed"], 0)(np.arange(min(images, len(opened))))
    losses = np.empty((len(sampled), draws))
    uses: Uses = {}
    for first in range(0, len(sampled), _BATCH_SIZE):
        indices = sampled[first : first + _BATCH_SIZE]
        with reading(opened, read):
            items = [opened.read(index) for index in indices.tolist()]
            files = EncodedBatch([_as_trained(item.data, read) for item in items])
        labels = [int(item.label) for item in items]
        values = {name: [value] * len(items) for name, value in conditions.items()}
        for draw in range(draws):
            call: Any = {
                "ids": opened.ids(indices),
                "epoch": settings["epoch"],
                "copy": draw,
                "conditions": {"label": labels, **values},
            }
            with torch.inference_mode():
                scores = network(augmenter.decode_and_run(files, **call)).float()
                target = torch.tensor(labels, device=scores.device)
                batch_losses = cross_entropy(scores, target, reduction="none")
            losses[first : first + len(items), draw] = batch_losses.cpu().numpy()
            program = augmenter.program(files.shapes, **call)
            for row in range(len(items)):
                for name, strength in _strengths(operations_of(program, row)):
                    uses.setdefault(name, []).append((first + row, draw, strength))
    if not uses:
        raise ValueError(f"run: got {run}, which draws no operations; accepted: a training with augmentation")
    operations = sorted(_effects(losses, uses, bins=1), key=lambda effect: -effect.t)
    by_strength = _effects(losses, uses, bins=_STRENGTH_BINS)
    names = [effect.operation for effect in by_strength]
    strengths = tuple(effect for effect in by_strength if names.count(effect.operation) > 1)
    return Attribution(os.fspath(run), len(losses), losses.size, float(losses.mean()), tuple(operations), strengths)


def _strengths(described: Sequence[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    """Yield the name of each operation and the value of its only numeric argument, NaN if it has none or several."""
    for operation in described:
        if "chains" in operation:
            for chain in operation["chains"]:
                yield from _strengths(chain["operations"])
            continue
        numbers = [
            value for name, value in operation.items() if isinstance(value, (int, float)) and name not in _NOT_STRENGTHS
        ]
        yield operation["op"], numbers[0] if len(numbers) == 1 else math.nan


def _effects(losses: Float64Array, uses: Uses, bins: int) -> list[Effect]:
    """Effects of operations, each by at most ``bins`` ranges of its strength with equally many draws."""
    ranges: list[tuple[str, float, float]] = []
    columns: list[Float64Array] = []
    for name, entries in uses.items():
        image, draw, strength = np.array(entries).T
        order = np.nan_to_num(strength)
        starts = np.unique(order)
        if len(starts) > bins:
            starts = np.unique(np.quantile(order, np.arange(bins) / bins, method="lower"))
        bin_of = np.searchsorted(starts, order, side="right")
        for number in np.unique(bin_of):
            own = bin_of == number
            column = np.zeros(losses.shape)
            column[image[own].astype(int), draw[own].astype(int)] = 1
            columns.append(column)
            ranges.append((name, float(strength[own].min()), float(strength[own].max())))
    added, error, is_relative = fit(losses, np.stack(columns, axis=-1))
    counts = [int(column.sum()) for column in columns]
    return [
        Effect(*ranges[number], float(added[number]), float(error[number]), count, bool(is_relative[number]))
        for number, count in enumerate(counts)
        if count >= _MIN_DRAWS and error[number] > 0
    ]


def fit(losses: Float64Array, is_drawn: Float64Array) -> tuple[Float64Array, Float64Array, BoolArray]:
    """Regress losses [images, draws] on columns [images, draws, P], with an effect for each image.

    Returns effects, their standard errors, and flags of effects that are relative to other columns, each [P]. The
    first two are NaN for columns that do not vary within any image.
    """
    centered = is_drawn - is_drawn.mean(1, keepdims=True)
    varies = centered.any((0, 1))
    centered = centered[..., varies]
    target = losses - losses.mean(1, keepdims=True)
    flat = centered.reshape(losses.size, -1)
    values, vectors = np.linalg.eigh(flat.T @ flat)
    is_null = values <= _NULL_SHARE * values.max(initial=1.0)
    null = vectors[:, is_null]
    regular = vectors[:, ~is_null]
    # Of all solutions, the one whose effects have a mean of 0 over the draws if every draw has one of several columns.
    weighted = null.T * is_drawn[..., varies].sum((0, 1))
    to_mean = np.eye(len(values)) - null @ np.linalg.solve(weighted @ null, weighted)
    solve = to_mean @ (regular / values[~is_null]) @ regular.T
    effects = solve @ flat.T @ target.reshape(-1)
    scores_by_image = np.einsum("ndp,nd->np", centered, target - centered @ effects)
    variances = np.diag(solve @ scores_by_image.T @ scores_by_image @ solve.T)

    added, error = np.full((2, len(varies)), np.nan)
    added[varies] = effects
    error[varies] = np.sqrt(variances * len(losses) / max(len(losses) - 1, 1))
    is_relative = np.zeros(len(varies), np.bool_)
    is_relative[varies] = (null**2).sum(1) > 1e-6
    return added, error, is_relative


def _open_images(path: Path, settings: dict[str, Any], source: Any) -> Samples:
    """Open the images of the training. Raises SourceError for others, ValueError if their place is not known."""
    place = recorded_place(str(path), "source", settings["source"]) if source is None else source
    if place is None:
        raise ValueError("source: got None for a run on data without a place; accepted: the images that it trained on")
    opened = open_by_index(place)
    if opened.fingerprint != settings["fingerprint"]:
        raise SourceError("source: holds other images than the run was trained on; accepted: the same ones")
    return opened


def _as_trained(data: Any, read: TrainReadOptions) -> Any:
    """Pixels in the depth of the training. Files of 8 bits are returned unchanged, to be decoded in part."""
    return decoded(data, "source", read) if read.depth in ("uint16", "float32") else data


def _last_magnitude(folder: Path) -> float:
    """Mean magnitude of the last step that the training logged."""
    lines = map(json.loads, (folder / "log.jsonl").read_text(encoding="utf-8").splitlines())
    return float([line["magnitude"] for line in lines if "magnitude" in line][-1])
