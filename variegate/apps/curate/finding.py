"""What can be wrong with an image, by name, and the record of one such finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class FindingKind(NamedTuple):
    """``is_serious``: a training is wrong or breaks off because of it, so that ``variegate check`` ends with 1."""

    name: str
    is_serious: bool
    meaning: str


# The names are what reports, tables and ``variegate clean --drop`` call them, in the order in which they are shown.
FINDING_KINDS: dict[str, FindingKind] = {
    kind.name: kind
    for kind in (
        FindingKind("corrupt", True, "does not decode to an image"),
        FindingKind("truncated", True, "ends before its image does"),
        FindingKind("damaged", True, "has damaged data within, which its decoder passed over"),
        FindingKind("empty", True, "has no bytes, or no pixels"),
        FindingKind("wrong_extension", False, "holds another kind of image than its name says"),
        FindingKind("unusual_mode", False, "has pixels of a kind that changes on the way to RGB"),
        FindingKind("exif_turned", False, "is turned or mirrored by its EXIF orientation"),
        FindingKind("tiny", False, "has far fewer pixels than the others"),
        FindingKind("huge", False, "has far more pixels than the others"),
        FindingKind("extreme_aspect", False, "is far longer than wide, or wider than long"),
        FindingKind("blank", True, "has one colour"),
        FindingKind("dark", False, "is too dark"),
        FindingKind("bright", False, "is too bright"),
        FindingKind("low_contrast", False, "has hardly any contrast"),
        FindingKind("blurred", False, "is not sharp"),
        FindingKind("duplicates", False, "has the same pixels as another image"),
        FindingKind("near_duplicates", False, "looks like another image"),
        FindingKind("leaks", True, "is among the train images and among the test images"),
        FindingKind("contradictions", True, "is, or looks like, an image of another class"),
        FindingKind("imbalance", False, "the classes are of very different sizes"),
        FindingKind("lone_files", False, "is the only one of its class"),
        FindingKind("label_errors", False, "has a label that a model trained on the others holds for wrong"),
    )
}

# In the order of reports: serious ones first.
KINDS_SHOWN = tuple(sorted(FINDING_KINDS, key=lambda name: not FINDING_KINDS[name].is_serious))


# What loaders read, then the images beside its class folders, in words: the order of the table's rows.
READ = ("train", "test")
BESIDE = {
    "beside": "beside the class folders: no loader reads them",
    "beside_test": "beside the class folders of the test images: no loader reads them",
}
SPLITS = (*READ, *BESIDE)


@dataclass(frozen=True)
class DataFinding:
    """Something found in one image, or with ``file`` and ``index`` None, in the whole split.

    ``split``: of ``SPLITS``. ``index``: the image's place in its source, ``file``: its name there, a path relative
    to the folder where the source is a folder. ``finding``: of ``FINDING_KINDS``. ``measure``: the number that it was
    judged by. ``group``: the same for images that belong together, such as duplicates of each other. ``why``: a
    sentence for people, with the measure and the threshold.
    """

    split: str
    index: int | None
    file: str | None
    finding: str
    measure: float | None
    group: int | None
    why: str
