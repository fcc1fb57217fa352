"""The published tables, pinned: a change of one number is a change of somebody's experiment."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from tests.ops.examples import POLICIES
from variegate.policies.autoaugment import PUBLISHED, published_policy
from variegate.policies.schedule import published_schedule
from variegate.policies.spaces import DATA

CHECKSUMS = {
    "imagenet": "22de9419db974076",
    "cifar10": "2d0cae059d60309b",
    "svhn": "6b5bda3fc9e5fe52",
    "v0": "8fd8a2e1cd78f558",
    "pba-cifar10": "cd36117f7fe6b2fa",
    "pba-svhn": "4250ef46e1e9bff1",
}


def checksum(name: str) -> str:
    """Over the numbers only, so that wording and layout of the files may change."""
    if name in PUBLISHED:
        content: object = published_policy(name)
    else:
        content = [[segment.epochs, segment.policy] for segment in published_schedule(name).segments]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", CHECKSUMS)
def test_numbers_are_pinned(name: str) -> None:
    assert checksum(name) == CHECKSUMS[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_policies_have_25_rows_of_two(name: str) -> None:
    policy = published_policy(name)
    assert [len(sub_policy) for sub_policy in policy] == [2] * 25


def test_literal_rows() -> None:
    assert published_policy("imagenet")[0] == (("Posterize", 0.4, 8), ("Rotate", 0.6, 9))
    assert published_policy("imagenet")[12] == (("Equalize", 0.0, None), ("Equalize", 0.8, None))
    assert published_policy("cifar10")[18] == (("AutoContrast", 0.8, None), ("Solarize", 0.2, 8))
    assert published_policy("svhn")[22] == (("ShearX", 0.7, 9), ("TranslateY", 0.8, 3))
    assert published_policy("v0")[22] == (("Posterize", 0.8, 2), ("Solarize", 0.6, 10))


def test_imagenet_keeps_its_five_repeated_rows() -> None:
    policy = published_policy("imagenet")
    assert len(set(policy)) == 20
    assert [policy[i] for i in (20, 21, 22, 23, 24)] == [policy[i - 1] for i in (5, 2, 14, 15, 3)]


@pytest.mark.parametrize(("name", "epochs", "segments"), [("pba-cifar10", 200, 17), ("pba-svhn", 160, 14)])
def test_schedules_have_their_length(name: str, epochs: int, segments: int) -> None:
    schedule = published_schedule(name)
    assert schedule.epochs == epochs
    assert len(schedule.segments) == segments
    assert all(len(segment.policy) == 30 for segment in schedule.segments)
    # A search starts from all zeros.
    assert all(p == 0 and m == 0 for _, p, m in schedule.segments[0].policy)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.json")), ids=lambda path: path.stem)
def test_every_file_names_its_source(path: object) -> None:
    described = json.loads(path.read_text())  # type: ignore[attr-defined]
    entries = [described] if "source" in described else described.values()  # type: ignore[attr-defined]
    assert all(len(entry["source"]) > 20 for entry in entries)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_a_sample_does_not_depend_on_its_batch(draw, policy) -> None:
    together = draw(policy, 40, epoch=120)
    for sample in (0, 17, 39):
        alone = draw(policy, ids=[sample], epoch=120)
        rows = np.flatnonzero(together.source == sample)
        np.testing.assert_array_equal(alone.opcode, together.opcode[rows, : alone.opcode.shape[1]])
        np.testing.assert_array_equal(alone.args, together.args[rows, : alone.args.shape[1]])
