"""YOLO's ``data.yaml``, and the images and labels of a folder that it means.

``train``, ``val`` and ``test`` are each a folder of images, a text file with an image a line, or a list of such, from
``path`` on, which is itself from the file on. Labels lie where ``images`` in an image's path is ``labels``, the last
one if there are several; beside the image if there is none. These are Ultralytics' rules. Roboflow's files say
``../train/images`` of folders beside the file, and are read as these.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from yaml import YAMLError

from variegate.errors import DecodeError, shown
from variegate.formats.annotated.folders import images_by_stem, is_file, names_below, place_in, read_lines
from variegate.formats.annotated.objects import leave_out
from variegate.formats.annotated.values import POINTS
from variegate.formats.base import SourceError
from variegate.formats.reading import read_file
from variegate.io.location import Location
from variegate.io.yaml_text import read_yaml

FILE = "data.yaml"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class YoloData:
    """``splits``: what each of them is said to be; ``path``: what these are from."""

    classes: tuple[str, ...] = ()
    keypoints: tuple[int, int] | None = None
    path: str = ""
    splits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Listed(NamedTuple):
    """``images``: file of labels -> image, below the root; ``folders``: those that the images are in."""

    images: dict[str, str]
    folders: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_data_yaml(root: Location) -> YoloData:
    """Nothing where there is no such file. Raises SourceError for what is none."""
    place = root.child(FILE)
    if not is_file(place):
        return YoloData()
    try:
        found = read_yaml(read_file(place, _MOST_BYTES).decode("utf-8-sig"))
    except DecodeError as error:
        raise SourceError(str(error)) from None
    except (YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"{place}: no YAML: {' '.join(str(error).split())}") from None
    names = found.get("names") if isinstance(found, dict) else None
    if isinstance(names, dict) and sorted(names, key=str) == sorted(range(len(names)), key=str):
        names = [names[label] for label in range(len(names))]
    if not isinstance(names, list) or not names:
        raise SourceError(f"{place}: names: got {shown(names)}; accepted: a list of the classes, or a dict from 0 on")
    points = found.get("kpt_shape")
    if not POINTS.fits(points):
        raise SourceError(f"{place}: kpt_shape: got {shown(points)}; accepted: {POINTS.accepted}")
    path = found.get("path")
    if path is not None and not isinstance(path, str):
        raise SourceError(f"{place}: path: got {shown(path)}; accepted: a folder")
    splits: dict[str, tuple[str, ...]] = {}
    for name in ("train", "val", "test"):
        if value := found.get(name):
            entries = value if isinstance(value, list) else [value]
            if not all(isinstance(one, str) and one for one in entries):
                accepted = "a folder, a .txt file with an image a line, or a list of such"
                raise SourceError(f"{place}: {name}: got {shown(value)}; accepted: {accepted}")
            splits[name] = tuple(entries)
    return YoloData(tuple(map(str, names)), points and (points[0], points[1]), path or "", splits)


def list_images(root: Location, data: YoloData, split: str | None, on_error: str) -> Listed:
    """Those of a split, by ``data.yaml`` or else in ``images/SPLIT``; None: all in ``images``, or, where there is no
    such folder, in all splits. Raises SourceError for what is not there."""
    if split is None:
        has_images = names_below(root.child("images")) is not None
        if has_images or not data.splits:
            return _of_folder(root, "images")
        wanted = list(data.splits)
    elif split in data.splits:
        wanted = [split]
    else:
        folder = f"images/{split}"
        if names_below(root.child(folder)) is None and data.splits:
            known = ", ".join(data.splits)
            raise SourceError(f"{root}: no folder {folder} in it, and {FILE} has no {split!r}; it has {known}")
        return _of_folder(root, folder)
    found: dict[str, str] = {}
    folders: list[str] = []
    notes: list[str] = []
    for name in wanted:
        for entry in data.splits[name]:
            path = _find(root, data, name, entry)
            if path.endswith(".txt"):
                images = _in_list(root, path, on_error, notes)
                folders += sorted({posixpath.dirname(image) for image in images})
            else:
                images = list(images_by_stem(root, path).values())
                folders.append(path)
            found |= {label_file(image): image for image in images}
    return Listed(found, tuple(dict.fromkeys(folders)), tuple(notes))


def label_file(image: str) -> str:
    """Of the image with this path."""
    above, found, below = f"/{posixpath.splitext(image)[0]}.txt".rpartition("/images/")
    return f"{above}/labels/{below}".lstrip("/") if found else below.lstrip("/")


def label_folder(images: str) -> str:
    """Of the images in this folder."""
    return posixpath.dirname(label_file(f"{images}/0"))


def _of_folder(root: Location, folder: str) -> Listed:
    return Listed({label_file(image): image for image in images_by_stem(root, folder).values()}, (folder,))


def _find(root: Location, data: YoloData, name: str, entry: str) -> str:
    """Below the root. Data sets are moved about and their files are not: where ``path`` leads elsewhere, it is passed
    over, as are leading dots."""
    without_dots = posixpath.normpath(entry.replace("\\", "/"))
    while without_dots.startswith("../"):
        without_dots = without_dots[3:]
    tried = (
        _below(root, entry, _below(root, data.path) or ""),
        _below(root, entry),
        _below(root, without_dots),
    )
    for path in dict.fromkeys(filter(None, tried)):
        place = place_in(root, path)
        if is_file(place) if path.endswith(".txt") else names_below(place) is not None:
            return path
    shown = " nor ".join(dict.fromkeys(filter(None, tried)))
    what = f"and there is no {shown} in {root}" if shown else f"which leads out of {root}"
    raise SourceError(f"{root.child(FILE)}: {name}: got {entry!r}, {what}")


def _below(root: Location, text: str, base: str = "") -> str | None:
    """From the root, or None for what leads out of it."""
    path = text.replace("\\", "/")
    if os.path.isabs(path):
        if root.is_url:
            return None
        path = os.path.relpath(path, os.path.abspath(root.address())).replace(os.sep, "/")
    else:
        path = posixpath.join(base, path)
    path = posixpath.normpath(path)
    return None if path == ".." or path.startswith("../") else path


def _in_list(root: Location, path: str, on_error: str, notes: list[str]) -> list[str]:
    """The images that a text file names, from the root or, with ``./``, from the file's own folder on."""
    file = root.child(path)
    there = names_below(root) or set()
    found, missing = [], []
    for line in filter(None, map(str.strip, read_lines(file))):
        starts = (posixpath.dirname(path), "")
        tried = [place for start in starts if (place := _below(root, line, start)) is not None]
        image = next((one for one in tried if one in there), None)
        found.append(image) if image is not None else missing.append(tried[0] if tried else line)
    if not found and not missing:
        raise SourceError(f"{file}: names no images")
    more = leave_out(missing, len(found) + len(missing), "are not there", on_error, str(file))
    notes += [f"{file}: {note}" for note in more]
    return found
