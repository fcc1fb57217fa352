"""Which images of a source a sheet shows, with what belongs to them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from variegate.apps.preview.belonging import Naming
from variegate.apps.preview.sheet import Image_HWC
from variegate.decode import read_image
from variegate.errors import DecodeError
from variegate.formats.base import SampleName, Source, SourceError
from variegate.formats.exclusion import PlaceWithout, without
from variegate.formats.folder import open_folder
from variegate.formats.kinds import file_kind
from variegate.formats.opening import open_source
from variegate.formats.resolving import layout_of
from variegate.io.location import Location
from variegate.targets.settings import Targets


@dataclass(frozen=True)
class Chosen:
    """An image to show, with the id that ``augment`` would give it, what belongs to it, as ``Item.targets`` has it, its
    label and its place in the source."""

    name: str
    sample_id: int
    img_HWC: Image_HWC
    targets: Mapping[str, Any] | None = None
    label: Any = None
    index: int = 0


class Annotations(NamedTuple):
    """``given``: as ``open_source(annotations=...)`` takes it. ``targets``: what of it is kept; None where nothing is
    said of that."""

    given: Any = None
    targets: Targets | None = None


class Choice(NamedTuple):
    """``bad``: files that were passed over. ``naming``: what the numbers in targets stand for. ``notes``: on
    annotations that are wrong. ``targets``: what of them is kept in copies. ``source``: where other images are; None
    for an image alone."""

    images: list[Chosen]
    bad: list[DecodeError]
    naming: Naming = Naming()
    notes: tuple[str, ...] = ()
    targets: Targets = Targets()
    source: Any = None


def choose_images(source: str | Path | PlaceWithout, count: int, annotations: Any = None) -> Choice:
    """``count`` images spread evenly over a folder, or the one image that ``source`` is.

    ``annotations``: as of ``open_source``, or ``Annotations``; objects that are wrong are left out and noted. A file
    that does not decode is passed over for the next one. Raises SourceError or DecodeError where there is nothing to
    show.
    """
    annotations, targets = annotations if isinstance(annotations, Annotations) else Annotations(annotations)
    location, given = Location.parse(source), source
    if location.is_url:
        raise SourceError(f"{location}: is an address; accepted: a folder of images, or an image, of this machine")
    source = Path(location.address())
    if source.is_file() and (annotations is None or file_kind(location) is None):
        if isinstance(given, PlaceWithout):
            raise SourceError(f"--exclude: got {given.exclude}, and {source} is one image; leave it out")
        if annotations is not None:
            raise SourceError(f"--annotations: got {annotations}, and {source} is one image; give its folder")
        return Choice([Chosen(source.name, 0, read_image(source))], [])
    opened = _open(source, given, annotations)
    chosen, bad = _spread(opened, count)
    if not chosen:
        raise SourceError(f"{source}: none of its {len(opened):,} images can be read; {bad[0]}")
    naming = Naming.of(opened)
    if chosen[0].targets is None:
        if targets is not None:
            accepted = "min_area, min_visibility and mask_fill for a source with annotations"
            raise SourceError(f"{source}: has no boxes or masks to be left out or filled; accepted: {accepted}")
        return Choice(chosen, bad, naming, source=opened)
    return Choice(chosen, bad, naming, tuple(opened.notes()), targets or Targets(), opened)


def _open(folder: Path, given: Any, annotations: Any) -> Source:
    names = [name + "/" * (folder / name).is_dir() for name in os.listdir(folder)] if folder.is_dir() else []
    if annotations is None and layout_of(names) is None:
        opened: Any = open_folder(folder)
    else:
        opened = open_source(folder, annotations=annotations, on_error="skip", stream=False)
    if isinstance(given, PlaceWithout):
        opened = without(opened, given.exclude)
    return cast(Source, opened)


def _spread(source: Any, count: int) -> tuple[list[Chosen], list[DecodeError]]:
    """``count`` samples that can be read, in their order, and those that were tried in vain."""
    total = len(source)
    chosen: dict[int, Chosen] = {}
    bad: dict[int, DecodeError] = {}
    for wanted in range(min(count, total)):
        start = wanted * total // count if count < total else wanted
        for index in (*range(start, total), *range(start)):
            if index in chosen or index in bad:
                continue
            try:
                chosen[index] = read_chosen(source, index)
                break
            except DecodeError as error:
                bad[index] = error
    return [chosen[index] for index in sorted(chosen)], list(bad.values())


def read_chosen(source: Any, index: int) -> Chosen:
    """Raises DecodeError for an image that cannot be read."""
    item = source.read(index)
    image = item.data if isinstance(item.data, np.ndarray) else read_image(item.data, str(source.name(index)))
    name = source.relative_path(index) if hasattr(source, "relative_path") else _in_shard(source.name(index))
    return Chosen(name, int(source.ids(np.array([index]))[0]), image, item.targets, item.label, index)


def _in_shard(name: SampleName) -> str:
    """With the file's own name, without its folder."""
    return str(name._replace(file=os.path.basename(name.file)))
