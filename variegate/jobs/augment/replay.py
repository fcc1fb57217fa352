"""Remake one output of an expansion from its row in the manifest."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from variegate.checks import check_pixel_version
from variegate.data.base import SourceError
from variegate.data.filtered import exclude_on_open
from variegate.errors import DecodeError
from variegate.io.addresses import is_url, redact_url
from variegate.io.files import StrPath
from variegate.jobs.arguments import dicom_of, open_by_index, recorded_place, texts_in
from variegate.jobs.augment.annotated import plan_for, with_outlines
from variegate.jobs.augment.job import ExpansionSpec
from variegate.jobs.augment.plan import SETTINGS, Plan
from variegate.jobs.output.files import safe_name
from variegate.jobs.output.manifest import ANNOTATED, Manifest, read_manifest
from variegate.options.shared import DicomOptions
from variegate.program.depth import Depth
from variegate.targets.settings import Targets
from variegate.transforms import from_dict


class Replayed(NamedTuple):
    """A recorded output, and the output of its replay."""

    row: dict[str, Any]
    data: bytes  # the image file
    is_same: bool  # everything is as recorded
    mask: bytes | None = None  # the file of its mask
    targets: str | None = None  # text of the column

    @property
    def name(self) -> str:
        """Name of the output, without its folder or shard."""
        name = Path(str(self.row["file"] if self.row["member"] is None else self.row["member"])).name
        # No output has a name that begins with a dot, and elsewhere it may mean something.
        return safe_name(name) if name.startswith(".") or not name else name


def replay(manifest: StrPath, row: int, source: Any = None, exclude: StrPath | None = None) -> Replayed:
    """Remake the output of a manifest's row on the recorded kind of device, a GPU if there is one. Raises SourceError.

    ``source``, ``exclude``: where the samples, and the list of those left out, are now, if not where they were. Without
    them, the paths in the manifest are opened, if they are of this machine; addresses in it never are.
    """
    listed = read_manifest(manifest)
    if (command := listed.settings.get("command", "augment")) != "augment":
        raise SourceError(f"{_shown(manifest)}: of a run of variegate {command}; accepted: of variegate augment")
    again = "run variegate augment again, into another folder"
    check_pixel_version(listed.place, listed.settings.get("pixels"), SourceError, again)
    if not 0 <= row < len(listed):
        raise SourceError(f"row: got {row:,}; accepted: 0 to {len(listed) - 1:,}, the rows of {_shown(manifest)}")
    wanted = listed.row(row)
    if wanted["status"] != "written":
        raise SourceError(f"{listed.place}: row {row:,}: {wanted['source']} was not made: {wanted['reason']}")
    try:
        return _replayed(listed, row, wanted, source, exclude)
    except (SourceError, DecodeError):
        raise
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        reason = f"missing {error}" if isinstance(error, KeyError) else str(error)
        raise SourceError(f"{listed.place}: damaged: its settings are not those of an expansion ({reason})") from error


def _replayed(listed: Manifest, row: int, wanted: dict[str, Any], source: Any, exclude: Any) -> Replayed:
    plan = _plan_of(listed, source, exclude)
    if not (0 <= wanted["index"] < len(plan.source) and 0 <= wanted["copy"] < plan.copies):
        raise SourceError(f"{listed.place}: damaged: row {row:,} is of sample {wanted['index']}, copy {wanted['copy']}")
    device = listed.settings["executor"]
    if device == "cuda":
        import torch

        device = "cuda:0" if torch.cuda.is_available() else "cpu"
    made, data, beside = ExpansionSpec(plan, None).cold_job(device, 1).make(wanted["index"], wanted["copy"])
    names = ["sha256"] if plan.metadata is None else ["sha256", "mask_sha256", "targets"]
    mask = beside if made.get("mask_sha256") else None
    is_same = all(made[name] == wanted[name] for name in names)
    return Replayed(wanted, data, is_same, mask, made.get("targets"))


def _plan_of(manifest: Manifest, source: Any, exclude: Any) -> Plan:
    """The plan that an expansion was made by. Raises SourceError where the source holds other samples by now."""
    settings = manifest.settings
    more = dict[str, Any]()
    place = recorded_place(manifest.place, "source", settings["source"]) if source is None else source
    exclude = exclude or recorded_place(manifest.place, "exclude", settings.get("exclude")) or None
    annotations = settings.get("annotations")
    is_annotated = ANNOTATED in settings
    if any(is_url(text) for text in texts_in(annotations)):
        raise SourceError(
            f"{manifest.place}: names an address as annotations; accepted: those of files of this machine"
        )
    opened = exclude_on_open(os.fspath(place), exclude) if isinstance(place, (str, PathLike)) else place
    # Invalid objects were skipped, or there were none.
    opened = open_by_index(opened, "skip" if is_annotated else "raise", annotations)
    if is_annotated:
        opened = with_outlines(opened)
        more = {"annotations": annotations, "targets": Targets(**settings["targets"])}
    if opened.fingerprint != settings["fingerprint"]:
        left_out = ""
        if "exclude" in settings:
            left_out = f", and the list of the {settings['left_out']:,} that were left out of it"
        raise SourceError(
            f"{_shown(place)}: holds other samples than {manifest.place} was made of ({len(opened):,} here, "
            f"{settings['samples']:,} there); give the source as it was{left_out}"
        )
    return plan_for(
        opened,
        from_dict(settings["transform"]),
        **{name: settings[name] for name in SETTINGS},
        shard_size=settings.get("shard_size", 1),
        channels=settings.get("channels"),
        depth=Depth.named(settings.get("depth", "uint8")),
        dicom=dicom_of(DicomOptions(window=settings.get("window"), frame=settings.get("frame"))),
        place=str(place),
        **more,
    )


def _shown(place: Any) -> Any:
    return redact_url(os.fspath(place)) if isinstance(place, (str, PathLike)) else place
