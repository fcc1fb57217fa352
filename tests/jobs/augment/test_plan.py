"""How work is cut into items, and what a plan refuses."""

from __future__ import annotations

import numpy as np
import pytest

from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.data.objects.arrays import open_arrays
from variegate.jobs.augment import Plan

PIXELS = np.zeros((5, 4, 4, 3), np.uint8)


def plan(**settings: object) -> Plan:
    return Plan(open_arrays(PIXELS), T.RandomHorizontalFlip(), **settings)  # type: ignore[arg-type]


def test_a_shard_holds_about_as_many_images_as_asked_for() -> None:
    assert plan(copies=1, layout="webdataset", shard_size=1000).items_per_part == 1000
    assert plan(copies=8, layout="parquet", shard_size=1000).items_per_part == 125
    assert plan(copies=20, layout="parquet", shard_size=1000).items_per_part == 100
    assert plan(copies=8, layout="parquet", shard_size=3).items_per_part == 1
    assert plan(copies=8).items_per_part == 2


def test_settings_hold_what_the_outputs_depend_on() -> None:
    one, other = plan(seed=1).settings("cpu"), plan(seed=2).settings("cpu")
    assert {key for key in one if one[key] != other[key]} == {"seed"}
    assert plan().settings("cuda") != plan().settings("cpu")
    changed = Plan(open_arrays(np.ones((6, 4, 4, 3), np.uint8)), T.RandomHorizontalFlip()).settings("cpu")
    assert changed["fingerprint"] != plan().settings("cpu")["fingerprint"]


def test_a_normalized_output_is_refused() -> None:
    normalize = T.Compose([T.RandomResizedCrop(8), T.Normalize([0.5] * 3, [0.5] * 3)])
    with pytest.raises(SourceError, match="ends in Normalize"):
        Plan(open_arrays(PIXELS), normalize)
    with pytest.raises(SourceError, match=r"the policy ends in 5 crops of 8x8; images on disk hold pixels"):
        Plan(open_arrays(PIXELS), T.FiveCrop(8))


def test_given_magnitudes_are_refused() -> None:
    with pytest.raises(ValueError, match="policy: got an AdaptiveRandAugment, whose magnitude is given"):
        Plan(open_arrays(PIXELS), T.Compose([T.AdaptiveRandAugment()]))


def test_several_views_are_refused() -> None:
    with pytest.raises(ValueError, match="policy: got a MultiView, which makes several images of each; accepted here"):
        Plan(open_arrays(PIXELS), T.MultiView([T.CenterCrop(4)], counts=[2]))
