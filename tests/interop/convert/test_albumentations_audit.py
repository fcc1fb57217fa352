"""Every public transform of Albumentations 2.0.8 and AlbumentationsX 2.5.1, with the arguments of the last audit
(benchmarks/albumentations_audit.py) and its default arguments, as ``to_dict()`` wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import variegate as vg
from benchmarks.albumentations_audit import LIMITS
from variegate.interop.convert.albumentations import COMPOSITIONS
from variegate.interop.convert.albumentations_arguments import VERSIONS, library_defaults
from variegate.interop.convert.albumentations_rules import REFUSED, RULES

pytestmark = pytest.mark.filterwarnings("ignore::variegate.interop.convert.ConversionWarning")

DATA = Path(__file__).parent / "data"
AUDITS = {version: json.loads((DATA / f"{version}-audit.json").read_text()) for version in VERSIONS}
OF_BOXES = ("AtLeastOneBBoxRandomCrop", "BBoxSafeRandomCrop", "RandomSizedBBoxSafeCrop")
# Of one version only: splines in AlbumentationsX, and positions that move farther in Albumentations 2.0.
OF_ONE_VERSION = ("ElasticTransform", "ThinPlateSpline")
MIN_CLASSES = 90  # of AlbumentationsX 2.5.1 that convert, with the compositions


def within_limits(row: dict[str, Any], *targets: str) -> bool:
    return all(target in row and row[target] <= LIMITS[target] for target in targets)


def outcome_of(row: dict[str, Any], **params: Any) -> str:
    """Whether a transform in a pipeline converts to the same, to something close, or is refused."""
    described = {"__class_fullname__": "Compose", "transforms": [row["description"]], **params}
    _, report = vg.from_albumentations(described, report=True)
    if report.refused:
        return "refused"
    return "close" if any(path.startswith("transforms[0]") for path in report.approximate) else "same"


@pytest.mark.parametrize("version", VERSIONS)
def test_outcomes_are_those_of_the_audit(version: str) -> None:
    """Of samples with a mask, boxes and key points; the same is what differs by less than the audit's limits."""
    kind = "coord_format" if version == VERSIONS[0] else "format"
    params = {"bbox_params": {kind: "pascal_voc", "label_fields": ["labels"]}, "keypoint_params": {kind: "xy"}}
    for row in AUDITS[version]:
        assert outcome_of(row, **params) == row["outcome"], row
        assert row["outcome"] != "same" or within_limits(row, *LIMITS), row
        # Without boxes and key points, differences of those are not reported.
        assert outcome_of(row) != "same" or within_limits(row, "image", "mask"), row


@pytest.mark.parametrize("version", VERSIONS)
def test_defaults_of_all_classes(version: str) -> None:
    """What converts can be sampled, for images of several sizes; a description without ``p`` has the library's."""
    for name, described in library_defaults(version).items():
        transform, report = vg.from_albumentations(described, report=True)
        bare = {key: value for key, value in described.items() if key != "p"}
        assert vg.from_albumentations(bare, report=True) == (transform, report), name
        if report.refused:
            assert name in (*REFUSED, *OF_ONE_VERSION)
        elif name not in OF_BOXES:
            vg.Augmenter(transform).program([(90, 120), (61, 80), (30, 30)])


def test_every_rule_is_audited() -> None:
    converted = {
        version: {row["class"] for row in rows if row["outcome"] != "refused"} for version, rows in AUDITS.items()
    }
    assert set(RULES) <= set.union(*converted.values())
    assert len(converted[VERSIONS[0]]) + len(COMPOSITIONS) >= MIN_CLASSES
