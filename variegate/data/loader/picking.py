"""Which samples make up an epoch, by the arguments ``shuffle``, ``sampler``, ``weights`` and ``num_samples``."""

from __future__ import annotations

from typing import Any

from variegate.checks import integer
from variegate.data.loader.picks import EverySample, ListedSamples, Picks
from variegate.data.loader.samplers import AskedEachEpoch, check_indices, is_listed
from variegate.data.loader.weighted import WeightedSamples
from variegate.data.loader.weights import groups_of
from variegate.data.sources.base import Source, StreamSource

# Draws are counted in float64, which holds whole numbers and their fractions up to here.
_MOST_DRAWS = 1 << 40


def check_picking(source: Source | StreamSource, shuffle: bool | None, sampler: Any, weights: Any, number: Any) -> bool:
    """Whether the order is shuffled. Raises ValueError for arguments that do not go together."""
    if sampler is not None and weights is not None:
        raise ValueError("sampler, weights: got both; accepted: one of them, as each says which samples an epoch has")
    if number is not None and weights is None:
        raise ValueError(f"num_samples: got {number!r} without weights; accepted with weights")
    name = "sampler" if sampler is not None else "weights"
    if isinstance(source, StreamSource) and not (sampler is None and weights is None):
        raise ValueError(
            f"{name}: this source is a stream, which gives samples in its own order; accepted for samples by index: "
            "open_source(..., stream=False)"
        )
    if weights is not None and shuffle is not None and not shuffle:
        raise ValueError("shuffle: got False with weights; accepted: True, as what is drawn has no order to keep")
    if sampler is None or is_listed(sampler):
        return shuffle is None or bool(shuffle)
    if shuffle:
        raise ValueError(
            f"shuffle: got True with a sampler ({type(sampler).__name__}) that gives the order itself; accepted: leave "
            "shuffle out, or give the indices as a list"
        )
    return False


def picks_of(source: Source, *, seed: int, shuffle: bool, sampler: Any, weights: Any, number: int | None) -> Picks:
    """For arguments that ``check_picking`` took. Raises ValueError for a source without samples, and for what
    ``sampler`` or ``weights`` must not be."""
    samples = len(source)
    if not samples:
        raise ValueError("source: has no samples")
    if weights is not None:
        draws = samples if number is None else integer("num_samples", number, 1)
        if draws > _MOST_DRAWS:
            raise ValueError(f"num_samples: got {draws:,}; accepted: 1 to {_MOST_DRAWS:,}")
        return WeightedSamples(groups_of(weights, source), draws, seed)
    if sampler is None:
        return EverySample(samples, seed, shuffle)
    if is_listed(sampler):
        return ListedSamples(check_indices("sampler", sampler, samples), seed, shuffle)
    return AskedEachEpoch(sampler, samples)
