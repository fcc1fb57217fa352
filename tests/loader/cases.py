"""Loaders of every kind, whose batches must depend on nothing but (seed, epoch, id, copy)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

import variegate as vg
from tests.loader.loading import CROPPED, NORMALIZED
from tests.loader.samples import BROKEN, TARGETS, MemoryShards, MemorySource, Pairs
from variegate import transforms as T

NUMBER = 50
MIXING = T.Compose([CROPPED, T.RandomChoice([T.MixUp(num_classes=2), T.CutMix(num_classes=2)])])
COLORED = T.Compose([T.RandomHorizontalFlip(), T.ColorJitter(0.4)])
MOSAIC = T.Compose([CROPPED, T.Mosaic(num_classes=2)])
SHADED = T.Compose(
    [CROPPED, T.Cond("shade", {0: T.Invert(), 1: T.Solarize(99), 2: T.Equalize()}, default=T.Identity())]
)


def arrays(number: int = NUMBER) -> Any:
    generator = np.random.default_rng(5)
    return generator.integers(0, 256, (number, 20, 24, 3), np.uint8), np.arange(number) % 3


def by_id(epoch: int) -> Any:
    return lambda ids: {"shade": (ids % np.uint64(3) + np.uint64(epoch)).astype(np.int64)}


def mixture() -> vg.Mixture:
    sources = {"a": MemorySource(20, BROKEN), "b": MemorySource(30)}
    weights = {0: [1, 4], 1: {"a": 2, "b": 1}}
    return vg.Mixture(sources, weights, {"b": T.Invert()}, stop=40)


class Case(NamedTuple):
    """``is_mixed_by_batch``: what a row is mixed with depends on its batch."""

    source: Any
    transform: Any = CROPPED
    options: dict[str, Any] = {}  # noqa: RUF012
    is_mixed_by_batch: bool = False


def of_memory(number: int = NUMBER, broken: Any = None) -> Any:
    return lambda: MemorySource(number, broken)


def of_shards(number: int = NUMBER, *more: Any, **options: Any) -> Any:
    return lambda: MemoryShards(number, *more, **options)


CASES = {
    "normalised": Case(of_memory(), NORMALIZED),
    "shapes of their own": Case(of_memory(), T.RandAugment(2, 9)),
    "in order": Case(of_memory(), CROPPED, {"shuffle": False}),
    "views": Case(of_memory(NUMBER, BROKEN), CROPPED, {"views": 2, "on_error": "skip"}),
    "mixed": Case(of_memory(70), MIXING),
    "mixed in the batch": Case(of_memory(20, BROKEN), MOSAIC, {"partners": "batch", "on_error": "replace"}, True),
    "mixed with bad ones": Case(of_memory(20, BROKEN), MOSAIC, {"on_error": "skip"}),
    "mixed copies": Case(of_memory(30), MIXING, {"copies": 2}),
    "copies": Case(of_memory(20, BROKEN), CROPPED, {"copies": 3, "on_error": "skip"}),
    "weights": Case(of_memory(20), MIXING, {"weights": np.arange(20) + 1.0}),
    "a list": Case(of_memory(20), CROPPED, {"sampler": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], "copies": 2}),
    "a sampler": Case(of_memory(20), CROPPED, {"sampler": lambda epoch: [3, 3, epoch, 17] * 5}),
    "conditions": Case(of_memory(), SHADED, {"conditions": by_id}),
    "replaced": Case(of_memory(20, BROKEN), CROPPED, {"on_error": "replace", "max_errors": 8}),
    "all bad": Case(of_memory(30, dict.fromkeys(range(24), b"")), CROPPED, {"on_error": "skip", "shuffle": False}),
    "arrays": Case(lambda: vg.open_source(arrays()), T.Compose([T.RandomCrop(16), T.RandAugment(2, 9)]), {"copies": 2}),
    "shards": Case(of_shards(NUMBER, broken=BROKEN), CROPPED, {"on_error": "skip"}),
    "shards, replaced": Case(of_shards(20, broken=BROKEN), CROPPED, {"on_error": "replace", "shuffle": False}),
    "shards, mixed copies": Case(of_shards(60, 9), MIXING, {"copies": 2, "block_shards": 3}),
    "targets": Case(
        Pairs,
        T.Compose([T.RandomHorizontalFlip(), T.ColorJitter(0.4)]),
        {"targets": TARGETS, "batch_size": 2, "copies": 2},
    ),
    "a mixture": Case(mixture, CROPPED, {"batch_size": 12, "on_error": "skip"}),
    "a cache": Case(of_memory(NUMBER, BROKEN), CROPPED, {"cache": "host", "on_error": "skip"}),
}


def plain(value: Any) -> Any:
    """Convert to what can be compared."""
    if isinstance(value, torch.Tensor):
        known_to_numpy = value.float() if value.dtype is torch.bfloat16 else value
        return str(value.dtype), plain(known_to_numpy.numpy())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, np.ndarray):
        return "object", value.shape, plain(value.tolist())
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def everything(loader: vg.Loader, epochs: int = 2) -> list[Any]:
    """Batches and states of some epochs, and the errors."""
    found: list[Any] = []
    for _ in range(epochs):
        for batch in loader:
            values = dict(batch) if isinstance(batch, dict) else list(batch)
            found.append(plain([values, batch.ids, batch.padding, batch.copies, batch.source]))
            found.append(loader.state_dict())
    return [*found, loader.errors]


def rows_of(batch: Any) -> dict[tuple[int, int], Any]:
    """What is in a batch by id and copy, padding left out."""
    values = batch if isinstance(batch, dict) else {"image": batch.images, "label": batch.labels}
    columns = {
        key: list(zip(*value, strict=True)) if isinstance(value, tuple) else value for key, value in values.items()
    }
    rows = {}
    for row, key in enumerate(zip(batch.ids.tolist(), batch.copies.tolist(), strict=True)):
        if not batch.padding[row]:
            assert key not in rows
            rows[key] = [plain(column[row]) for column in columns.values()] + [int(batch.source[row])]
    return rows


def join(parts: Any) -> dict[tuple[int, int], Any]:
    """Rows of several batches, each once."""
    rows: dict[tuple[int, int], Any] = {}
    for part in parts:
        assert not rows.keys() & part.keys()
        rows |= part
    return rows
