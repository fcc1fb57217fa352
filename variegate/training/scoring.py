"""How many of a source's images a model is right about, counted by all ranks together."""

from __future__ import annotations

import torch

from variegate.data.loader import Batch, Loader
from variegate.data.sources.base import SourceError
from variegate.training.feed import labels_to
from variegate.training.ranks import Ranks
from variegate.training.step import in_channels_last, precision_of


@torch.no_grad()
def top_accuracies(model: torch.nn.Module, loader: Loader, precision: str, ranks: Ranks) -> tuple[float, float] | None:
    """The shares of images whose class has the highest score, and one of the five highest; None where none could be
    read. Each rank goes through its share; rows that only fill it up do not count."""
    model.eval()
    counts = torch.zeros(3, dtype=torch.float64, device=ranks.device)
    for batch in loader:
        labels, good = labels_to(batch.labels, ranks.device), torch.from_numpy(~batch.padding).to(ranks.device)
        with precision_of(ranks.device, precision):
            scores = model(images_of(batch, ranks.device))
        best = scores.float().topk(min(5, scores.shape[1]), 1).indices == labels[:, None]
        counts += (torch.stack([best[:, 0], best.any(1), torch.ones_like(good)]) & good).sum(1)
    one, five, total = ranks.sum_and_max(counts.tolist(), [0.0])[0]
    return (one / total, five / total) if total else None


def images_of(batch: Batch, device: str) -> torch.Tensor:
    """As models take them. Raises SourceError for images of several sizes."""
    if not isinstance(batch.images, torch.Tensor):
        raise SourceError("the images have several sizes, or views; give one size that all are cut to (--size)")
    return in_channels_last(batch.images).to(device)
