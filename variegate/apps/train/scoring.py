"""Accuracy and loss of a model on a source's images, counted by all ranks together."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as nnf

from variegate.apps.train.feed import Feed, labels_to
from variegate.apps.train.ranks import Ranks
from variegate.apps.train.step import in_channels_last, precision_of
from variegate.formats.base import SourceError
from variegate.loader import Batch, Loader


class Scores(NamedTuple):
    """The shares of images whose class has the highest score, and one of the five highest; the mean cross-entropy."""

    top1: float
    top5: float
    loss: float


@torch.no_grad()
def top_accuracies(
    model: torch.nn.Module, loader: Loader, precision: str, ranks: Ranks, views: str = "none"
) -> Scores | None:
    """None where no image could be read. Each rank goes through its share; rows that only fill it up do not count.
    ``views``: of ``mean_scores``."""
    model.eval()
    counts = torch.zeros(4, dtype=torch.float64, device=ranks.device)
    for batch in loader:
        labels, good = labels_to(batch.labels, ranks.device), torch.from_numpy(~batch.padding).to(ranks.device)
        with precision_of(ranks.device, precision):
            scores = mean_scores(model, images_of(batch, ranks.device), views)
        losses = nnf.cross_entropy(scores.float(), labels, reduction="none").double()
        best = scores.float().topk(min(5, scores.shape[1]), 1).indices == labels[:, None]
        counts[:3] += (torch.stack([best[:, 0], best.any(1), torch.ones_like(good)]) & good).sum(1)
        counts[3] += losses[good].sum()
    one, five, total, loss = ranks.sum_and_max(counts.tolist(), [0.0])[0]
    return Scores(one / total, five / total, loss / total) if total else None


def evaluated(feed: Feed, model: torch.nn.Module, epoch: int, ranks: Ranks) -> dict[str, Any]:
    """Entries for the line of an epoch that is over: accuracies, if it is one that is scored, and what the adaptation
    makes of the losses."""
    options = feed.options
    is_due = (epoch + 1) % options.score_every == 0 or epoch + 1 == options.epochs or feed.compared is not None
    loaders = (feed.scored, feed.compared) if is_due else (None, None)
    scored, compared = (
        None if one is None else top_accuracies(model, one, options.precision, ranks, options.tta) for one in loaders
    )
    accuracies = {} if scored is None else {"top1": scored.top1, "top5": scored.top5}
    train, validation = (math.nan if one is None else one.loss for one in (compared, scored))
    return {**accuracies, **feed.adaptation.end_epoch(train, validation)}


def mean_scores(model: torch.nn.Module, images: torch.Tensor, views: str) -> torch.Tensor:
    """[N, C], the mean over views of images [N, C, H, W], in evaluation: "none" is the image alone, "flip" it and its
    mirror image; "flip-shift" gives half of the weight to these, and half to both of the image moved by a pixel up and
    left, and down and right (Jordan 2024, arXiv 2404.00498)."""

    def mirrored(one: torch.Tensor) -> torch.Tensor:
        both: torch.Tensor = (model(one) + model(one.flip(3))) / 2
        return both

    if views == "none":
        alone: torch.Tensor = model(images)
        return alone
    if views == "flip":
        return mirrored(images)
    height, width = images.shape[2:]
    wider = nnf.pad(images, (1, 1, 1, 1), "reflect")
    corners = (wider[:, :, at : at + height, at : at + width] for at in (0, 2))
    moved = [mirrored(one.contiguous(memory_format=torch.channels_last)) for one in corners]
    return (mirrored(images) + (moved[0] + moved[1]) / 2) / 2


def images_of(batch: Batch, device: str) -> torch.Tensor:
    """As models take them. Raises SourceError for images of several sizes."""
    if not isinstance(batch.images, torch.Tensor):
        raise SourceError("the images have several sizes, or views; give one size that all are cut to (--size)")
    return in_channels_last(batch.images).to(device)
