"""Policies by name, from files and to files; what bad files say."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import yaml

from variegate import transforms as T
from variegate.errors import PolicyError
from variegate.policies import (
    PBA,
    Augmentation,
    AugMix,
    AutoAugment,
    RandAugment,
    ThreeAugment,
    TimmAugMix,
    TimmRandAugment,
    TrivialAugmentWide,
    load_policy,
    save_policy,
)
from variegate.policies.schedule import published_schedule

EVERYTHING = [
    RandAugment(),
    RandAugment(3, 5, 11, "bilinear", 128, operations=["Rotate", Augmentation("t", "TranslateX", (0, 9), signed=True)]),
    RandAugment(operations=["Invert", T.Hue((0, 0.2)), Augmentation("noise", "GaussianNoise", (0, 0.1))]),
    TrivialAugmentWide(fill=(1, 2, 3)),
    AutoAugment("svhn", "bicubic"),
    AutoAugment("v0", space="timm"),
    AutoAugment([[["Rotate", 0.5, 3], ["Invert", 1, None]], [["Equalize", 0.25, None]]]),
    AugMix(2, alpha=0.5, all_ops=False),
    AutoAugment("v0", "random", space="dali-relative", magnitude_std=0.5),
    RandAugment(space="dali"),
    ThreeAugment(sigma=(0.5, 1.0)),
    TimmAugMix(5, 2, magnitude_std=0.5),
    TimmRandAugment(9, magnitude_std=0.5, increasing=True),
    PBA("pba-svhn"),
    PBA(published_schedule("pba-svhn").scaled(40), space="pba-relative", fill=0),
    T.Compose([T.RandomHorizontalFlip(), RandAugment(), AugMix()]),
]


@pytest.mark.parametrize("policy", EVERYTHING, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml"])
def test_round_trips(policy, suffix, tmp_path: Path) -> None:
    assert T.from_dict(policy.to_dict()) == policy
    assert T.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    assert load_policy(policy.to_dict()) == policy
    path = tmp_path / f"policy{suffix}"
    save_policy(policy, path)
    assert load_policy(path) == load_policy(str(path)) == policy
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("policy", EVERYTHING, ids=lambda policy: type(policy).__name__)
def test_policies_travel_to_other_processes(policy, draw) -> None:
    """With the tables that they hold once used."""
    expected = draw(policy, 8, epoch=30)
    sent = pickle.loads(pickle.dumps(policy))
    assert sent == policy
    np.testing.assert_array_equal(draw(sent, 8, epoch=30).opcode, expected.opcode)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("imagenet", AutoAugment("imagenet")),
        ("cifar10", AutoAugment("cifar10")),
        ("svhn", AutoAugment("svhn")),
        ("v0", AutoAugment("v0", space="tf")),
        ("pba-cifar10", PBA("pba-cifar10")),
        ("pba-svhn", PBA("pba-svhn")),
        ("randaugment", RandAugment()),
        ("trivialaugment", TrivialAugmentWide()),
        ("augmix", AugMix()),
        ("3-augment", ThreeAugment()),
        ("autoaugment", AutoAugment("imagenet")),
        ("augmix-m5-w4-d2", TimmAugMix(5, 4, 2)),
        ("v0r", AutoAugment("v0", "random", space="timm-research")),
        ("3a", ThreeAugment()),
        ("rand-m9-mstd0.5-inc1", TimmRandAugment(9, magnitude_std=0.5, increasing=True)),
    ],
)
def test_names(name, expected) -> None:
    assert load_policy(name) == expected


def test_schedule_and_policy_files(tmp_path: Path) -> None:
    schedule = published_schedule("pba-cifar10").scaled(20)
    save_policy(schedule, tmp_path / "schedule.json")
    assert load_policy(tmp_path / "schedule.json") == PBA(schedule)
    described = {"format": "variegate-policy/1", "policy": [[["Rotate", 0.5, 9]]], "space": "tf", "source": "me"}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(described))
    assert load_policy(tmp_path / "own.yaml") == AutoAugment([[["Rotate", 0.5, 9]]], space="tf")


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy("imagnet")
    assert str(caught.value) == (
        "policy: got 'imagnet'; accepted: imagenet, cifar10, svhn, v0, pba-cifar10, pba-svhn, autoaugment, "
        "randaugment, trivialaugment, augmix, 3-augment, simclr, byol, dino, mocov3, randaugment-N-M, a string such as "
        "rand-m9-mstd0.5-inc1, augmix-m5-w4-d2 or original-mstd0.5, or a .json or .yaml file; did you mean 'imagenet'?"
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("trivialagument", "trivialaugment"),
        ("TrivialAugmentWide", "trivialaugment"),
        ("RandAugmnet", "randaugment"),
        ("rand_augment", "randaugment"),
        ("autoaugement", "autoaugment"),
        ("3augment", "3-augment"),
        ("pba_cifar10", "pba-cifar10"),
        ("AugMax", "augmix"),
    ],
)
def test_a_mistyped_name_gets_a_suggestion(name: str, meant: str) -> None:
    with pytest.raises(PolicyError, match=rf"policy: got '{name}'; accepted: .* file; did you mean '{meant}'\?$"):
        load_policy(name)


def test_what_is_like_no_name_gets_none() -> None:
    with pytest.raises(PolicyError, match=r"or a \.json or \.yaml file$"):
        load_policy("elephant")


@pytest.mark.parametrize("name", ["ImageNet", "TRIVIALAUGMENT", "PBA-CIFAR10", "3-Augment", "Rand-M9-mstd0.5-Inc1"])
def test_names_ignore_case(name: str) -> None:
    assert load_policy(name) == load_policy(name.lower())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"type": "Compose", "transforms": [{"type": "Nope"}]}', "a.json: transforms[0].type: got 'Nope'"),
        (
            "a.json",
            '{"type": "Compose", "transforms": [{"type": "AugMix"}, {"type": "RandAugment", "magnitude": 99}]}',
            "a.json: transforms[1].magnitude: got 99; accepted: an integer from 0 to 30",
        ),
        (
            "a.yaml",
            "type: Compose\ntransforms:\n- {type: AutoAugment, policy: [[[Rotate, 2, 3]]]}\n",
            "a.yaml: transforms[0].policy[0][0][1]: got 2; accepted: a probability from 0 to 1",
        ),
        (
            "a.json",
            '{"type": "PBA", "schedule": {"format": "variegate-schedule/1", "segments": [{"epochs": 0}]}}',
            "a.json: schedule.segments[0].epochs: got 0; accepted: a positive integer",
        ),
        (
            "a.json",
            '{"format": "variegate-schedule/1", "segments": [{"epochs": 1, "policy": [["Rotate", 0.1, 44]]}]}',
            "a.json: segments[0].policy[0][2]: got 44; accepted: an integer from 0 to 9",
        ),
        ("a.json", '{"type": "RandAugment", "operations": ["Rotat"]}', "a.json: operations[0]: got 'Rotat'"),
        ("a.json", '{"type": "RandAugment", "strength": 3}', "a.json: strength: got 3; accepted: arguments of"),
        ("a.json", '{"format": "other"}', "a.json: format: got 'other'; accepted: 'variegate-schedule/1' or"),
        ("a.json", '{"format": "variegate-policy/1"}', "a.json: policy: got ()"),
        ("a.json", '{"type": "RandAugment",\n "magnitude": }', "a.json: line 2 column 15: got '\"magnitude\": }'; acc"),
        ("a.json", '{"type": ', "a.json: line 1 column 10: got '{\"type\":'; accepted: JSON"),
        ("a.json", "", "a.json: line 1 column 1: got 'the end of the file'; accepted: JSON"),
        ("a.yaml", "type: [RandAugment\n", "a.yaml: line 2 column 1: got"),
        ("a.json", "[1, 2]", 'a.json: got [1, 2]; accepted: an object with a "type"'),
        ("a.yaml", "just words", "a.yaml: got 'just words'; accepted: an object"),
        ("a.toml", "x = 1", "a.toml: got '.toml'; accepted: a file that ends in .json, .yaml, .yml"),
    ],
)
def test_bad_files_say_where(name, text, message, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    with pytest.raises(PolicyError) as caught:
        load_policy(Path(name))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_failures(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.json: no such policy file"):
        load_policy("missing.json")
    (tmp_path / "a.json").write_bytes(b'{"type": "\xff\xfe"}')
    with pytest.raises(PolicyError, match="accepted: text in UTF-8"):
        load_policy(tmp_path / "a.json")
    with pytest.raises(PolicyError, match="policy: got 3; accepted: a name, a path or a dict"):
        load_policy(3)  # type: ignore[call-overload]
    with pytest.raises(PolicyError, match=r"a name that ends in \.json"):
        save_policy(RandAugment(), tmp_path / "a.txt")
    with pytest.raises(PolicyError, match=r"^transforms: got None; accepted: a value: Compose requires it"):
        load_policy({"type": "Compose"})


@pytest.mark.parametrize("described", [{"__version__": "2.0.8", "transform": {}}, {"__class_fullname__": "Compose"}])
def test_what_albumentations_saved_is_told_from_a_policy(described: dict[str, object]) -> None:
    with pytest.raises(
        PolicyError, match=r"got \['__.*accepted: a transform's to_dict\(\), as vg\.from_albumentations"
    ):
        load_policy(described)
