"""Compare what Albumentations and its conversions do to an image, a mask, boxes and key points.

``python -m benchmarks.albumentations_audit --python PYTHON`` with an interpreter that has AlbumentationsX 2.5.1, or
Albumentations 2.0.8. All public classes run with their default arguments, and with the arguments recorded by the last
audit in tests/interop/convert/data. To add a case, add a row with its ``class`` and ``description``, as ``to_dict()``
has it. A case that the converter reports as the same must be the same within ``LIMITS``. The outcome replaces the
record, and a test compares it with the converter's report.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import json
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers_env import ROOT, run_child, write_result

DATA = ROOT / "tests" / "interop" / "convert" / "data"
DRAWS = 100
FIXED_DRAWS = 20  # of a transform whose outcome is always the same
# Mean over the image, levels of 255; share of the mask's pixels, in percent; pixels; pixels.
LIMITS = {"image": 1.0, "mask": 0.5, "boxes": 0.05, "keypoints": 0.05}
# Outcomes of a transform that are compared one by one; with more, distributions are compared.
MAX_OUTCOMES = 24
# Of a difference between two samples by chance, over about 50 features in 600 cases.
P_VALUE = 1e-6
NORMALIZED_SCALE = 64.0  # normalized values have about a 64th of the range
HEIGHT = 96
WIDTH = 128
BOXES = [
    [10, 8, 50, 40],
    [60, 20, 110, 80],
    [5, 50, 40, 90],
    [90, 5, 120, 25],
    [48, 44, 70, 60],
]
POINTS = [
    [12.0, 10.0],
    [64.0, 48.0],
    [100.0, 30.0],
    [30.0, 80.0],
    [115.0, 88.0],
    [70.0, 15.0],
]
ALBUMENTATIONS_BASES = (
    "BaseCompose",
    "BasicTransform",
    "DualTransform",
    "ImageOnlyTransform",
)

Result = dict[str, Any]


@functools.cache
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
    description: dict[str, Any]
    results: list[Result]


def recorded_rows(version: str) -> list[dict[str, Any]]:
    """Rows of the last audit of this library."""
    path = data_path(version)
    if path.exists():
        rows: list[dict[str, Any]] = json.loads(path.read_text())
        return rows
    earlier = sorted(DATA.glob(path.name.replace(version, "*")))
    return json.loads(earlier[-1].read_text()) if earlier else []


def data_path(version: str) -> Path:
    library = "albumentations" if version.startswith("2.0") else "albumentationsx"
    return DATA / f"{library}-{version}-audit.json"


def arguments_of(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The default arguments of a class, and its recorded arguments."""
    found: list[dict[str, Any]] = [{}]
    for row in rows:
        if row["class"] == name:
            names = set(row["description"]) - {"__class_fullname__", "p"}
            found.append({key: row["description"][key] for key in names})
    return found


def run_albumentations(sample: Result, refused: set[str], only: list[str] | None) -> tuple[str, list[Case], list[str]]:
    """Run all cases, or cases of the classes ``only``; classes in ``refused`` are described only."""
    import albumentations as A

    version: str = A.__version__
    rows = recorded_rows(version)
    kind = "format" if version.startswith("2.0") else "coord_format"
    boxes = A.BboxParams(**{kind: "pascal_voc"}, label_fields=["labels"])
    points = A.KeypointParams(**{kind: "xy"}, remove_invisible=False)
    cases: list[Case] = []
    skipped: list[str] = []
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", message=".*not valid for transform")
    for name in only or public_classes(A):
        described: list[dict[str, Any]] = []
        for arguments in arguments_of(rows, name):
            try:
                transform = getattr(A, name)(**arguments, p=1.0)
                compose = A.Compose([transform], bbox_params=boxes, keypoint_params=points, seed=3)
                description = json.loads(json.dumps(compose.to_dict()["transform"]))
            except Exception as error:
                skipped.append(f"{name} {arguments}: {error}"[:200])
                continue
            if description in described:
                continue
            described.append(description)
            results = [] if name in refused else draw(compose, sample, skipped, name)
            cases.append(Case(name, description, results))
    return version, cases, skipped


def public_classes(library: Any) -> list[str]:
    """Classes of images; compositions and volumes are excluded."""
    volumes = (
        library.Transform3D,
        getattr(library, "VolumeOnlyTransform", library.Transform3D),
    )
    found = []
    for name, cls in sorted(vars(library).items()):
        is_transform = inspect.isclass(cls) and issubclass(cls, library.BasicTransform)
        if is_transform and not issubclass(cls, volumes) and name not in ALBUMENTATIONS_BASES:
            found.append(name)
    return found


def draw(compose: Any, sample: Result, skipped: list[str], name: str) -> list[Result]:
    """None if the transform needs more than a sample, such as images in metadata."""
    results: list[Result] = []
    while len(results) < DRAWS:
        if len(results) == FIXED_DRAWS and count_outcomes(results) == 1:
            break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                done = compose(
                    **sample,
                    bboxes=BOXES,
                    labels=list(range(len(BOXES))),
                    keypoints=POINTS,
                )
        except Exception as error:
            skipped.append(f"{name}: {error}"[:200])
            return []
        image = np.asarray(done["image"])
        is_tensor = image.shape[0] == 3
        results.append(result_of(done, image.transpose(1, 2, 0) if is_tensor else image, done["bboxes"]))
    return results


def result_of(done: dict[str, Any], image: Any, boxes: Any) -> Result:
    """Result of either library for a sample. ``boxes``: the first box of each label; copies of it are counted only."""
    pairs = list(zip(list(done["labels"]), np.asarray(boxes, np.float64), strict=True))
    return {
        "image": image,
        "mask": np.asarray(done["mask"]),
        "boxes": {int(label): box for label, box in reversed(pairs)},
        "count": len(pairs),
        "keypoints": np.asarray(done["keypoints"], np.float64)[:, :2],
    }


# -- Variegate -----------------------------------------------------------------------------------------------------


def convert(description: dict[str, Any]) -> tuple[str, Any, Any]:
    """Outcome, transform and targets of a conversion."""
    import variegate as vg

    transform, report = vg.from_albumentations(description, report=True)
    if report.refused:
        return "refused", None, None
    is_close = any(path.startswith("transforms[0]") for path in report.approximate)
    return (
        "close" if is_close else "same",
        transform,
        vg.targets_from_albumentations(description),
    )


def run_variegate(transform: Any, targets: Any, sample: Result, count: int) -> list[Result]:
    import variegate as vg

    labeled = {
        **sample,
        "boxes": BOXES,
        "labels": list(range(len(BOXES))),
        "keypoints": POINTS,
    }
    made = vg.Augmenter(transform, seed=0)([labeled] * count, targets=targets)
    return [result_of(done, done["image"].numpy().transpose(1, 2, 0), done["boxes"]) for done in made]


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
    return len(unique(results))


def compare_outcomes(before: list[Result], after: list[Result]) -> dict[str, float]:
    """Each outcome of one library against the nearest of the other."""
    found = dict.fromkeys(LIMITS, 0.0)
    for these, others in ((before, after), (after, before)):
        for result in unique(these):
            nearest = min(
                (distance(result, other) for other in unique(others)),
                key=lambda d: sum(d.values()),
            )
            found = {target: max(found[target], nearest[target]) for target in found}
    return found


def unique(results: list[Result]) -> list[Result]:
    return list({result["image"].tobytes() + result["mask"].tobytes(): result for result in results}.values())


def distance(one: Result, other: Result) -> dict[str, float]:
    if one["image"].shape != other["image"].shape:
        return dict.fromkeys(LIMITS, 999.0)
    scale = 1.0 if one["image"].dtype == np.uint8 else NORMALIZED_SCALE
    levels = np.abs(one["image"].astype(np.float64) - other["image"].astype(np.float64)) * scale
    found = {
        "image": float(levels.mean()),
        "mask": 100 * float((one["mask"] != other["mask"]).mean()),
    }
    if one["count"] != other["count"] or set(one["boxes"]) != set(other["boxes"]):
        found["boxes"] = 999.0
    else:
        differences = (float(np.abs(box - other["boxes"][label]).max()) for label, box in one["boxes"].items())
        found["boxes"] = max(differences, default=0.0)
    if one["keypoints"].shape != other["keypoints"].shape:
        return {**found, "keypoints": 999.0}
    found["keypoints"] = float(np.abs(one["keypoints"] - other["keypoints"]).max(initial=0.0))
    return found


def compare_distributions(before: list[Result], after: list[Result]) -> dict[str, float]:
    """The greatest distance between two distributions of a feature that chance does not explain."""
    found = dict.fromkeys(LIMITS, 0.0)
    theirs = [features(result) for result in before]
    ours = [features(result) for result in after]
    for target, limit in LIMITS.items():
        theirs_by_feature = np.array([values[target] for values in theirs]).T
        ours_by_feature = np.array([values[target] for values in ours]).T
        for one, other in zip(theirs_by_feature, ours_by_feature, strict=True):
            gap = wasserstein(one, other)
            if gap > limit and p_value(one, other, limit) < P_VALUE:
                found[target] = max(found[target], gap)
    return found


def features(result: Result) -> dict[str, list[float]]:
    """Features of each kind of target, as many for every result."""
    points = np.full(2 * len(POINTS), -1.0)
    visible = result["keypoints"].ravel()[: len(points)]
    points[: len(visible)] = visible
    return {
        "image": image_features(result["image"]),
        "mask": mask_features(result["mask"]),
        "boxes": box_features(result),
        "keypoints": points.tolist(),
    }


def image_features(pixels: Any) -> list[float]:
    image = pixels.astype(np.float64)
    if pixels.dtype != np.uint8:
        image = image * NORMALIZED_SCALE
    height, width, channels = image.shape
    image = np.broadcast_to(image, (height, width, 3))
    source = make_sample()["image"]
    change = image - source if image.shape == source.shape else np.zeros_like(image)
    found = [float(height), float(width), float(channels)]
    found += image.mean(axis=(0, 1)).tolist()
    found += image.std(axis=(0, 1)).tolist()
    found.append(spread_of(image))
    found.append(float(np.abs(np.diff(image, axis=1)).mean()))
    found += [255 * float((image == value).all(axis=2).mean()) for value in (0, 255)]
    found.append(float(np.abs(change).mean()))
    found.append(spread_of(change))
    for band in np.array_split(image, 3, axis=0):
        found += [float(block.mean()) for block in np.array_split(band, 3, axis=1)]
    return found


def spread_of(image: Any) -> float:
    """Mean distance of the channels to their mean."""
    return float(np.abs(image - image.mean(axis=2, keepdims=True)).mean())


def mask_features(mask: Any) -> list[float]:
    source = make_sample()["mask"]
    change = 100 * float((mask != source).mean()) if mask.shape == source.shape else 0.0
    return [change, *(100 * float((mask == value).mean()) for value in (0, 1, 2, 255))]


def box_features(result: Result) -> list[float]:
    moved = [label for label, box in result["boxes"].items() if np.abs(box - BOXES[label]).max() >= 0.01]
    found = [float(result["count"]), float(len(moved))]
    for label in range(len(BOXES)):
        box = result["boxes"].get(label)
        if box is None:
            found += [0.0, -1.0, -1.0, -1.0, -1.0, 0.0]
        else:
            found += [100.0, *map(float, box), float(box[2] - box[0])]
    return found


def wasserstein(one: Any, other: Any) -> float:
    """The mean distance between sorted values: both have as many."""
    return float(np.abs(np.sort(one) - np.sort(other)).mean())


def p_value(one: Any, other: Any, tolerance: float) -> float:
    """Kolmogorov's and Smirnov's test of two samples, for a shift beyond ``tolerance`` either way."""
    from scipy.stats import ks_2samp  # which the peers' environments lack

    above = ks_2samp(one + tolerance, other, alternative="greater").pvalue
    below = ks_2samp(one - tolerance, other, alternative="less").pvalue
    return 2 * min(float(above), float(below))


# -- the outcome ---------------------------------------------------------------------------------------------------


def audit(cases: list[Case], sample: Result) -> tuple[list[dict[str, Any]], list[str]]:
    rows: list[dict[str, Any]] = []
    failures: list[str] = []
    for case in cases:
        outcome, transform, targets = convert(case.description)
        row: dict[str, Any] = {"class": case.name, "outcome": outcome}
        described = case.description["transforms"][0]
        if outcome != "refused" and case.results:
            row |= compare(
                case.results,
                run_variegate(transform, targets, sample, len(case.results)),
            )
            beyond = {target: row[target] for target, limit in LIMITS.items() if row[target] > limit}
            if outcome == "same" and beyond:
                failures.append(f"FAIL {described}: reported as the same, differs: {beyond}")
        elif outcome == "same":
            failures.append(f"FAIL {described}: reported as the same, but not compared")
        print(row, flush=True)
        rows.append({**row, "description": described})
    return rows, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", type=Path, help="an interpreter that has Albumentations")
    parser.add_argument("--only", nargs="*", help="names of classes, whose rows are replaced")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--refused", nargs="*", default=(), help=argparse.SUPPRESS)
    options = parser.parse_args()
    sample = make_sample()
    if options.child:
        write_result(
            options.child,
            run_albumentations(sample, set(options.refused), options.only),
        )
        return 0
    if options.python is None:
        parser.error("--python: missing; give an interpreter that has Albumentations")
    from variegate.interop.convert.albumentations_rules import REFUSED

    warnings.simplefilter("ignore")
    arguments = ["--refused", *REFUSED]
    if options.only:
        arguments += ["--only", *options.only]
    version, cases, skipped = run_child(options.python, "benchmarks.albumentations_audit", arguments)
    rows, failures = audit(cases, sample)
    for line in (*skipped, *failures):
        print(line)
    converted = {row["class"] for row in rows if row["outcome"] != "refused"}
    print(f"{version}: {len(converted)} of {len({row['class'] for row in rows})} classes convert")
    if options.only:
        rows += [row for row in recorded_rows(version) if row["class"] not in options.only]
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=lambda row: row["class"]))
    data_path(version).write_text(f"[\n{lines}\n]\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
