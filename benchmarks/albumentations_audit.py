"""Compare what Albumentations and its conversions do to an image, a mask, boxes and key points.

``python -m benchmarks.albumentations_audit --python PYTHON`` with an interpreter that has AlbumentationsX 2.5.1, or
Albumentations 2.0.8. All public classes run with their default arguments and with those of
``albumentations_cases.py``. A case that the converter reports as the same must be the same within ``LIMITS``. The
outcome is written to tests/integrations/converters/data, where a test compares it with what the converter reports.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.albumentations_cases import CASES, REQUIRED, arguments_of

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "integrations" / "converters" / "data"
DRAWS = 100
FIXED_DRAWS = 20  # of a transform whose outcome is always the same
# Mean over the image, levels of 255; share of the mask's pixels, in percent; pixels; pixels.
LIMITS = {"image": 1.0, "mask": 0.5, "boxes": 0.05, "keypoints": 0.05}
# Outcomes of a transform that are compared one by one; with more, distributions are compared.
MAX_OUTCOMES = 24
# Of a difference between two samples by chance, over about 50 features in 600 cases.
P_VALUE = 1e-6
HEIGHT, WIDTH = 96, 128
BOXES = [[10, 8, 50, 40], [60, 20, 110, 80], [5, 50, 40, 90], [90, 5, 120, 25], [48, 44, 70, 60]]
POINTS = [[12.0, 10.0], [64.0, 48.0], [100.0, 30.0], [30.0, 80.0], [115.0, 88.0], [70.0, 15.0]]
ALBUMENTATIONS_BASES = ("BaseCompose", "BasicTransform", "DualTransform", "ImageOnlyTransform")

Result = dict[str, Any]


def make_sample() -> Result:
    """An image like a photo: slopes, edges, texture and colors; a mask with classes 0, 1, 2 and 255 (ignored)."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float64)
    slopes = np.stack([40 + 1.2 * x, 60 + 1.3 * y, 200 - 0.7 * x - 0.5 * y], axis=-1)
    waves = 25 * np.sin(x / 5 + y / 9)[..., None] * np.array([1.0, 0.6, -0.4])
    image = slopes + waves + rng.normal(0, 6, slopes.shape)
    image[20:80, 60:110] += np.array([50, -40, 20])
    image[(x - 25) ** 2 + (y - 70) ** 2 < 300] = (30, 180, 90)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[20:80, 60:110] = 1
    mask[(x - 25) ** 2 + (y - 70) ** 2 < 300] = 2
    mask[:12, 80:] = 255
    return {"image": np.clip(np.rint(image), 0, 255).astype(np.uint8), "mask": mask}


# -- Albumentations, in its own interpreter ------------------------------------------------------------------------


class Case(NamedTuple):
    name: str
    arguments: dict[str, Any]
    description: dict[str, Any]
    results: list[Result]


def run_albumentations(sample: Result, out: Path, refused: set[str], only: list[str] | None) -> None:
    """Run all cases, or those of the classes ``only``; classes in ``refused`` are described only."""
    import albumentations as A

    is_older = A.__version__.startswith("2.0")
    kind = "format" if is_older else "coord_format"
    boxes = A.BboxParams(**{kind: "pascal_voc"}, label_fields=["labels"])
    points = A.KeypointParams(**{kind: "xy"}, remove_invisible=False)
    cases, skipped = [], []
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", message=".*not valid for transform")
    for name in only or public_classes(A):
        defaults: list[dict[str, Any]] = [] if name in REQUIRED else [{}]
        for arguments in [*defaults, *CASES.get(name, [])]:
            renamed = arguments_of(name, arguments, is_older)
            try:
                transform = getattr(A, name)(**renamed, p=1.0)
                compose = A.Compose([transform], bbox_params=boxes, keypoint_params=points, seed=3)
                description = compose.to_dict()["transform"]
            except Exception as error:
                skipped.append(f"{name} {arguments}: {error}"[:200])
                continue
            results = [] if name in refused else draw(compose, sample, skipped, name)
            cases.append(Case(name, arguments, description, results))
    out.write_bytes(pickle.dumps((A.__version__, cases, skipped)))


def public_classes(library: Any) -> list[str]:
    """Classes of images; compositions and volumes are left out."""
    volumes = (library.Transform3D, getattr(library, "VolumeOnlyTransform", library.Transform3D))
    found = []
    for name, cls in sorted(vars(library).items()):
        is_transform = inspect.isclass(cls) and issubclass(cls, library.BasicTransform)
        if is_transform and not issubclass(cls, volumes) and name not in ALBUMENTATIONS_BASES:
            found.append(name)
    return found


def draw(compose: Any, sample: Result, skipped: list[str], name: str) -> list[Result]:
    """Nothing if the transform needs more than a sample, such as images in metadata."""
    results: list[Result] = []
    while len(results) < DRAWS:
        if len(results) == FIXED_DRAWS and count_outcomes(results) == 1:
            break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                done = compose(**sample, bboxes=BOXES, labels=list(range(len(BOXES))), keypoints=POINTS)
        except Exception as error:
            skipped.append(f"{name}: {error}"[:200])
            return []
        image = np.asarray(done["image"])
        is_tensor = image.shape[0] == 3
        results.append(
            {
                "image": image.transpose(1, 2, 0) if is_tensor else image,
                "mask": np.asarray(done["mask"]),
                "boxes": by_label(done["labels"], done["bboxes"]),
                "count": len(done["labels"]),
                "keypoints": np.asarray(done["keypoints"], np.float64)[:, :2],
            }
        )
    return results


def by_label(labels: Any, boxes: Any) -> dict[int, Any]:
    """The first box of each label; copies of it are counted only."""
    pairs = zip(list(labels), np.asarray(boxes, np.float64), strict=True)
    return {int(label): box for label, box in reversed(list(pairs))}


# -- Variegate -----------------------------------------------------------------------------------------------------


def convert(description: dict[str, Any]) -> tuple[str, Any, Any]:
    """Outcome, transform and targets of a conversion."""
    import variegate as vg

    transform, report = vg.from_albumentations(description, report=True)
    if report.refused:
        return "refused", None, None
    is_close = any(path.startswith("transforms[0]") for path in report.approximate)
    return "close" if is_close else "same", transform, vg.targets_from_albumentations(description)


def run_variegate(transform: Any, targets: Any, sample: Result, count: int) -> list[Result]:
    import variegate as vg

    labeled = {**sample, "boxes": BOXES, "labels": list(range(len(BOXES))), "keypoints": POINTS}
    results = []
    for done in vg.Augmenter(transform, seed=0)([labeled] * count, targets=targets):
        results.append(
            {
                "image": done["image"].numpy().transpose(1, 2, 0),
                "mask": done["mask"].numpy(),
                "boxes": by_label(done["labels"], done["boxes"].numpy()),
                "count": len(done["labels"]),
                "keypoints": np.asarray(done["keypoints"], np.float64)[:, :2],
            }
        )
    return results


# -- comparison ----------------------------------------------------------------------------------------------------


def compare(before: list[Result], after: list[Result]) -> dict[str, float]:
    """Difference of each kind of target, in the units of ``LIMITS``."""
    outcomes = max(count_outcomes(before), count_outcomes(after))
    found = compare_outcomes(before, after) if outcomes <= MAX_OUTCOMES else dict.fromkeys(LIMITS, 0.0)
    if outcomes > 1:
        for target, difference in compare_distributions(before, after).items():
            found[target] = max(found[target], difference)
    return {target: round(difference, 3) for target, difference in found.items()}


def count_outcomes(results: list[Result]) -> int:
    return len({result["image"].tobytes() + result["mask"].tobytes() for result in results})


def compare_outcomes(before: list[Result], after: list[Result]) -> dict[str, float]:
    """Each outcome of one library against the nearest of the other."""
    found = dict.fromkeys(LIMITS, 0.0)
    for these, others in ((before, after), (after, before)):
        for result in unique(these):
            nearest = min((distance(result, other) for other in unique(others)), key=lambda d: sum(d.values()))
            found = {target: max(found[target], nearest[target]) for target in found}
    return found


def unique(results: list[Result]) -> list[Result]:
    return list({result["image"].tobytes() + result["mask"].tobytes(): result for result in results}.values())


def distance(one: Result, other: Result) -> dict[str, float]:
    if one["image"].shape != other["image"].shape:
        return dict.fromkeys(LIMITS, 999.0)
    scale = 1.0 if one["image"].dtype == np.uint8 else 64.0  # normalized values have about a 64th of the range
    levels = np.abs(one["image"].astype(np.float64) - other["image"].astype(np.float64)) * scale
    found = {"image": float(levels.mean()), "mask": 100 * float((one["mask"] != other["mask"]).mean())}
    found["boxes"] = 999.0 if one["count"] != other["count"] or set(one["boxes"]) != set(other["boxes"]) else 0.0
    for label in set(one["boxes"]) & set(other["boxes"]):
        found["boxes"] = max(found["boxes"], float(np.abs(one["boxes"][label] - other["boxes"][label]).max()))
    if one["keypoints"].shape != other["keypoints"].shape:
        return {**found, "keypoints": 999.0}
    found["keypoints"] = float(np.abs(one["keypoints"] - other["keypoints"]).max(initial=0.0))
    return found


def compare_distributions(before: list[Result], after: list[Result]) -> dict[str, float]:
    """The greatest distance between two distributions of a feature that chance does not explain."""
    found = dict.fromkeys(LIMITS, 0.0)
    ours = [features(result) for result in after]
    theirs = [features(result) for result in before]
    for key in sorted({key for values in (*theirs, *ours) for key in values}):
        one = np.array([values.get(key, -1.0) for values in theirs], np.float64)
        other = np.array([values.get(key, -1.0) for values in ours], np.float64)
        gap = wasserstein(one, other)
        target = key.partition(".")[0]
        if gap > LIMITS[target] and p_value(one, other, LIMITS[target]) < P_VALUE:
            found[target] = max(found[target], gap)
    return found


def features(result: Result) -> dict[str, float]:
    image, mask, source = result["image"].astype(np.float64), result["mask"], make_sample_once()
    if result["image"].dtype != np.uint8:
        image = image * 64
    height, width = image.shape[:2]
    found = {"image.height": float(height), "image.width": float(width)}
    for channel in range(image.shape[2]):
        found[f"image.mean{channel}"] = float(image[..., channel].mean())
        found[f"image.std{channel}"] = float(image[..., channel].std())
    found["image.spread"] = float(np.abs(image - image.mean(axis=2, keepdims=True)).mean())
    found["image.edges"] = float(np.abs(np.diff(image, axis=1)).mean())
    found["image.black"] = 255 * float((image == 0).all(axis=2).mean())
    found["image.white"] = 255 * float((image == 255).all(axis=2).mean())
    if image.shape == source["image"].shape:
        change = image - source["image"]
        found["image.change"] = float(np.abs(change).mean())
        found["image.change_spread"] = float(np.abs(change - change.mean(axis=2, keepdims=True)).mean())
    else:
        found["image.change"] = found["image.change_spread"] = 0.0
    for row, band in enumerate(np.array_split(image, 3, axis=0)):
        for column, block in enumerate(np.array_split(band, 3, axis=1)):
            found[f"image.block{row}{column}"] = float(block.mean())
    source_mask = source["mask"]
    found["mask.change"] = 100 * float((mask != source_mask).mean()) if mask.shape == source_mask.shape else 0.0
    found |= {f"mask.share{value}": 100 * float((mask == value).mean()) for value in (0, 1, 2, 255)}
    found["boxes.count"] = float(result["count"])
    kept = [label for label, box in result["boxes"].items() if np.abs(box - BOXES[label]).max() < 0.01]
    found["boxes.changed"] = float(len(result["boxes"]) - len(kept))
    for label in range(len(BOXES)):
        box = result["boxes"].get(label)
        found[f"boxes.is_there{label}"] = 100.0 * (box is not None)
        for side in range(4):
            found[f"boxes.{label}.{side}"] = -1.0 if box is None else float(box[side])
        found[f"boxes.{label}.width"] = 0.0 if box is None else float(box[2] - box[0])
    for index, point in enumerate(result["keypoints"]):
        found |= {f"keypoints.{index}.x": float(point[0]), f"keypoints.{index}.y": float(point[1])}
    return found


_SAMPLE: list[Result] = []


def make_sample_once() -> Result:
    if not _SAMPLE:
        _SAMPLE.append(make_sample())
    return _SAMPLE[0]


def wasserstein(one: Any, other: Any) -> float:
    """The mean distance between sorted values: both have as many."""
    return float(np.abs(np.sort(one) - np.sort(other)).mean())


def p_value(one: Any, other: Any, tolerance: float) -> float:
    """Kolmogorov's and Smirnov's test of two samples of one size, for a shift beyond ``tolerance`` either way."""

    def shares(values: Any, ends: Any) -> Any:
        return np.searchsorted(np.sort(values), ends, side="right") / len(values)

    above = (shares(one, one) - shares(other, one + tolerance)).max()
    below = (shares(other, other) - shares(one, other + tolerance)).max()
    gap = max(above, below, 0.0)
    return float(2 * np.exp(-(gap**2) * len(one)))


# -- the outcome ---------------------------------------------------------------------------------------------------


def audit(version: str, cases: list[Case], sample: Result) -> tuple[list[dict[str, Any]], list[str]]:
    rows, failures = [], []
    for case in cases:
        description = json.loads(json.dumps(case.description))
        outcome, transform, targets = convert(description)
        row: dict[str, Any] = {"class": case.name, "outcome": outcome}
        if outcome != "refused" and case.results:
            row |= compare(case.results, run_variegate(transform, targets, sample, len(case.results)))
            beyond = {target: row[target] for target, limit in LIMITS.items() if row[target] > limit}
            if outcome == "same" and beyond:
                failures.append(f"FAIL {case.name} {case.arguments}: reported as the same, differs: {beyond}")
        elif outcome == "same":
            failures.append(f"FAIL {case.name} {case.arguments}: reported as the same, but not compared")
        rows.append({**row, "description": description["transforms"][0]})
        said = {key: value for key, value in row.items() if key != "class"}
        print(version, case.name, case.arguments, said, flush=True)
    return rows, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", required=True, help="an interpreter that has Albumentations")
    parser.add_argument("--only", nargs="*", help="names of classes, whose rows are replaced")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--refused", nargs="*", default=(), help=argparse.SUPPRESS)
    options = parser.parse_args()
    sample = make_sample_once()
    if options.child:
        run_albumentations(sample, Path(options.child), set(options.refused), options.only)
        return 0
    from variegate.integrations.converters.albumentations_table import REFUSED

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.pickle"
        command = [options.python, "-m", "benchmarks.albumentations_audit", "--python", "-", "--child", str(out)]
        command += ["--refused", *REFUSED]
        command += ["--only", *options.only] if options.only else []
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_ALBUMENTATIONS_UPDATE": "1"}
        subprocess.run(command, env=environment, check=True)
        version, cases, skipped = pickle.loads(out.read_bytes())  # written by our own child
    rows, failures = audit(version, cases, sample)
    for line in (*skipped, *failures):
        print(line)
    converted = {row["class"] for row in rows if row["outcome"] != "refused"}
    print(f"{len(converted)} of {len({row['class'] for row in rows})} classes convert")
    name = "albumentations" if version.startswith("2.0") else "albumentationsx"
    path = DATA / f"{name}-{version}-audit.json"
    if options.only:
        rows += [row for row in json.loads(path.read_text()) if row["class"] not in options.only]
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=lambda row: row["class"]))
    path.write_text(f"[\n{lines}\n]\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
