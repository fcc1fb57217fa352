"""Rows by name: a policy, and exactly the parts that are named around it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from variegate import transforms as T
from variegate.errors import PolicyError
from variegate.learn.averaging import DistContext
from variegate.learn.candidates import DEFAULT_CANDIDATES, Candidate, default_candidates, parse_candidate
from variegate.learn.feed import DataPipeline
from variegate.learn.images import BaselineAugmentation
from variegate.options.training import TrainOptions
from variegate.policies import PBA, load_policy

BASELINE = BaselineAugmentation((16, 16), (0.5,) * 3, (0.2,) * 3, padding=2, flip=True, cutout=8)
CROP, FLIP = T.RandomCrop((16, 16), padding=2), T.RandomHorizontalFlip()
CUTOUT = T.Cutout(8, fill=BASELINE.fill)


def steps(name: str) -> list[T.Transform]:
    made = parse_candidate(name).transform(BASELINE, 4)
    *found, last = made.transforms if isinstance(made, T.Compose) else [made]
    assert last == BASELINE.plain
    return found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("none", []),
        ("flip", [FLIP]),
        ("crop", [CROP]),
        ("flip+crop+cutout", [CROP, FLIP, CUTOUT]),
        ("flip+crop", [CROP, FLIP]),
        ("cutout8", [CUTOUT]),
        ("cutout3", [T.Cutout(3, fill=BASELINE.fill)]),
        ("RandAugment", [T.RandAugment()]),
        ("randaugment-1-5+flip+crop", [T.RandAugment(1, 5), CROP, FLIP]),
        (
            "TrivialAugment+Crop4+flip+cutout4",
            [T.TrivialAugmentWide(), T.RandomCrop((16, 16), padding=4), FLIP, T.Cutout(4, fill=BASELINE.fill)],
        ),
        ("adaptive:entropy+flip", [T.AdaptiveRandAugment(), FLIP]),
    ],
)
def test_rows(name: str, found: list[T.Transform]) -> None:
    assert steps(name) == found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("flip+spin", "policies: got 'spin' in 'flip.spin'; accepted: none, or a policy and parts joined by"),
        ("crop+flpi", r"parts are flip, crop and cutout, .*; did you mean 'flip'\?"),
        ("flip+flip", "policies: got 'flip' twice in 'flip.flip'"),
        ("crop+crop2", "policies: got 'crop2' twice"),
        ("cutout0", "policies: got 'cutout0' in 'cutout0'"),
        ("flip+crop-2", "policies: got 'crop-2' in"),
        ("crop+randaugment", "policies: got 'randaugment' in"),
        ("flip-crop", r"policies: got 'flip-crop', an old name; accepted: flip\+crop, or flip\+crop\+cutout"),
        ("none+crop2", "policies: got 'none.crop2'; accepted: none alone, or the parts alone: crop2"),
        ("randagument+flip", "policy: got 'randagument'; .*did you mean 'randaugment'"),
    ],
)
def test_what_is_no_row(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_candidate(name).transform(BASELINE, 4)


@pytest.mark.parametrize("name", ["none", "flip", "crop", "flip+crop", "randaugment-1-5+flip+crop+cutout4"])
def test_a_row_is_the_same_in_search_and_in_train(name: str) -> None:
    """Normalization is by the data in a search, and by ImageNet in a training."""
    images = np.zeros((8, 16, 16, 3), np.uint8)
    options = TrainOptions(policy=name, devices="cpu", threads=1, model="wrn-10-1")
    trained: Any = DataPipeline((images, [0, 1] * 4), None, options, DistContext()).transform
    *found, _ = trained.transforms
    assert [replace(one, fill=BASELINE.fill) if isinstance(one, T.Cutout) else one for one in found] == steps(name)
    assert options.policy_name == parse_candidate(name).name


def test_parts_have_one_order_in_names() -> None:
    assert parse_candidate("RandAugment-1-5+Cutout8+Crop+flip").name == "randaugment-1-5+flip+crop+cutout8"


def test_files_may_have_a_plus(tmp_path: Path) -> None:
    path = tmp_path / "a+flip.json"
    path.write_text(json.dumps(T.Posterize(4).to_dict()))
    assert steps(str(path)) == [T.Posterize(4)]
    assert steps(f"{path}+crop") == [T.Posterize(4), CROP]
    assert parse_candidate(f"{path}+Crop").name == f"{path}+crop"


def test_a_part_without_a_number_needs_one_from_the_options() -> None:
    with pytest.raises(ValueError, match=r"policies: got 'crop', with 0 pixels as options; accepted: such as crop2"):
        parse_candidate("crop").around(BaselineAugmentation((4, 4), (0.5,), (0.2,), padding=0))


def test_a_whole_policy_has_no_parts(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(T.Compose([T.RandomCrop((16, 16), padding=0), FLIP]).to_dict()))
    assert steps(str(path)) == [T.Compose([T.RandomCrop((16, 16), padding=0), FLIP])]
    with pytest.raises(ValueError, match="whose policy has a crop of its own; accepted: no parts"):
        steps(f"{path}+flip")


def test_defaults_leave_out_what_is_off() -> None:
    assert list(default_candidates(BASELINE)) == list(DEFAULT_CANDIDATES)
    digits = BaselineAugmentation((16, 16), (0.5,), (0.2,), padding=2, flip=False, cutout=0)
    assert list(default_candidates(digits)) == [
        *("none", "crop", "randaugment-1-5+crop", "randaugment-2-9+crop", "trivialaugment+crop"),
        "adaptive:entropy+crop",
    ]


def test_randaugment_by_numbers() -> None:
    assert load_policy("RandAugment-3-12") == T.RandAugment(3, 12)
    for name in ("randaugment-0-5", "randaugment-1-31", "randaugment-1", "randaugment-a-b", "randaugment-1-5-2"):
        with pytest.raises(PolicyError, match=r"randaugment-N-M with 1 to \d+ operations at magnitude 0 to 30"):
            load_policy(name)


def test_schedules_in_a_chain_are_scaled(tmp_path: Path) -> None:
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(T.Compose([T.PBA("pba-cifar10"), T.Posterize(4)]).to_dict()))
    policy = Candidate("x", str(path)).loaded(50)
    assert isinstance(policy, T.Compose)
    assert isinstance(policy.transforms[0], PBA)
    assert policy.transforms[0].resolved.epochs == 50
