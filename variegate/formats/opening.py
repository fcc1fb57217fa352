"""``open_source``: one call for whatever samples come from, answered by the source that reads it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from variegate.checks import spelt
from variegate.formats.annotated.layouts import layout_of
from variegate.formats.base import Source, SourceError, StreamSource, check_on_error
from variegate.formats.exclusion import PlaceWithout, without
from variegate.formats.file_kinds import ACCEPTED, FILE_KINDS, FileKind, file_kind, is_image_name, kinds_with
from variegate.formats.folder import open_folder, open_image, open_remote_folder
from variegate.formats.patterns import expand
from variegate.formats.places import check_file, files_of_folder, names_at, names_in
from variegate.io.addresses import without_secrets
from variegate.io.location import Location


@spelt()
def open_source(
    spec: Any,
    *,
    stream: bool | None = None,
    on_error: str = "raise",
    classes: Sequence[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    image_root: str | os.PathLike[str] | None = None,
    exclude: str | os.PathLike[str] | Iterable[str] | None = None,
    annotations: Any = None,
) -> Any:  # a Source or a StreamSource, of which a checker would not let anybody ask a length
    """Samples from a place or an object.

    ``spec``: a folder of images or class folders; ``.tar`` shards in WebDataset's layout; ``.parquet`` files in
    Hugging Face's; ``.vgraw`` shards of raw pixels, as ``variegate pack`` writes them; a pattern (``train-*.tar``,
    ``train-{000..012}.tar``), a list of such files, or a folder that holds nothing else; any of these at an address
    that fsspec reads; one image file; an array [N, H, W, C] or a pair ``(images, labels)``; any object with
    ``__getitem__`` and ``__len__``; a Source or StreamSource, which is returned.

    ``stream``: tar shards are read from their beginnings, one after another, instead of by index. None: where they are
    remote, since an index of a remote shard costs reading it once. ``on_error="skip"``: shards that are cut off or
    cannot be read are used as far as they go (see ``open_webdataset``). ``classes``: names of classes, for labels that
    are names; None: for tar shards, those in a file ``classnames.txt`` beside them (a class a line), if there is one.
    ``cache_dir``: where indexes of shards are kept; None: beside them, or where that cannot be written to, in the
    folder that VARIEGATE_CACHE names, or the user's. ``image_root``: for ``.parquet`` files whose rows name image files
    instead of holding their bytes, the folder of those; None: the Parquet file's own. Files outside of it are not read.
    ``exclude``: the names of samples to leave out: a text file with one a line, or a sequence (``exclusion.py`` says
    what they are). What is left has the labels, classes and ids that it would have otherwise.
    ``annotations``: boxes, masks or key points for a folder of images, of this machine or at an address, which
    ``read`` then gives as ``targets``: a COCO .json file, "voc", "yolo", "masks", or a dict with options; of .parquet
    files those in "columns", of .tar shards those in "members", with names in a dict (docs/targets.md). None: by the
    folder, where it has both ``JPEGImages`` and ``Annotations``, or ``images``, ``labels`` and ``data.yaml``. With
    ``on_error="skip"``, objects that are wrong, and images that are missing, are left out and noted.

    Raises SourceError for what cannot be opened, TypeError for objects that are none of these.
    """
    if isinstance(spec, PlaceWithout):
        spec, exclude = spec.place, spec.exclude if exclude is None else exclude
    if annotations is None:
        opened = _open(spec, stream, on_error, classes, cache_dir, image_root)
    else:
        check_on_error(on_error)
        options = {"stream": stream, "classes": classes, "cache_dir": cache_dir, "image_root": image_root}
        opened = _open_annotated(spec, annotations, on_error, options)
    return opened if exclude is None else without(opened, exclude)


def _open(
    spec: Any,
    stream: bool | None,
    on_error: str,
    classes: Sequence[str] | None,
    cache_dir: str | os.PathLike[str] | None,
    image_root: str | os.PathLike[str] | None,
) -> Source | StreamSource:
    check_on_error(on_error)
    options = {
        "stream": stream,
        "on_error": on_error,
        "classes": classes,
        "cache_dir": cache_dir,
        "image_root": image_root,
    }
    if _is_place(spec):
        location = Location.parse(spec)
        if not location.address():
            raise SourceError(f"an empty path; accepted: {ACCEPTED}")
        files = expand(location)
        return _open_location(location, options) if files == [location] else _open_files(files, options)
    if _are_places(spec):
        return _open_files([file for one in spec for file in expand(Location.parse(one))], options)
    return _open_object(spec, options)


def _open_location(location: Location, options: dict[str, Any]) -> Source | StreamSource:
    path = location.address()
    is_folder = not location.is_url and os.path.isdir(path)
    if file_kind(location) is not None and not is_folder:
        return _open_files([location], options)
    if location.is_url:
        names = names_at(location)
    elif is_folder:
        names = names_in(location)
    else:
        check_file(location)
        if not is_image_name(location.name):
            raise SourceError(f"{location}: a file of a kind that is not read; accepted: {ACCEPTED}")
        _refuse(f"{location}, an image", options, "stream", "classes", "image_root")
        return open_image(path)
    if files := files_of_folder(location, names):
        return _open_files(files, options)
    if (layout := layout_of(names)) is not None:
        return _open_annotated(location, layout, options["on_error"], options)
    _refuse(f"{location}, a folder of images", options, "stream", "classes", "image_root")
    try:
        return open_remote_folder(location) if location.is_url else open_folder(path)
    except SourceError as error:
        name = next((name for name in names if file_kind(Location.of(name)) is not None), None)
        if name is None:
            raise
        suffix = os.path.splitext(name)[1]
        pattern = f"{str(location).rstrip('/')}/*{suffix}"
        raise SourceError(f"{error}; for the {suffix} files beside its sub-folders, give {pattern}") from None


def _open_annotated(spec: Any, annotations: Any, on_error: str, options: dict[str, Any]) -> Source | StreamSource:
    from variegate.formats.annotated.opening import open_annotated, open_annotated_files

    if not _is_place(spec) and not _are_places(spec):
        held = f"the source is a {type(spec).__name__}"
        raise SourceError(f"annotations: they are for a folder of images, .parquet files and .tar shards, and {held}")
    files = [file for one in ([spec] if _is_place(spec) else spec) for file in expand(Location.parse(one))]
    if len(files) == 1 and (names := _names_of_folder(files[0])) is not None:
        files = files_of_folder(files[0], names) or files
    kinds = {found.suffix if (found := file_kind(file)) is not None else "" for file in files}
    is_folder = len(files) == 1 and not files[0].is_url and os.path.isdir(files[0].address())
    kind = next(iter(kinds)) if len(kinds) == 1 and not is_folder else ""
    if kind in (".parquet", ".tar"):
        _refuse(f"{files[0]}, a {kind} file", options, "image_root" if kind == ".tar" else "stream")
        for file in files:
            if not file.is_url:
                check_file(file)
        return open_annotated_files(files, kind, annotations, on_error, options)
    if len(files) > 1:
        raise SourceError("annotations: they are for one folder of images, or for .parquet files or .tar shards")
    _refuse(f"{files[0]}, a folder with annotations", options, "stream", "image_root")
    return open_annotated(files[0], annotations, on_error, options["classes"])


def _names_of_folder(location: Location) -> list[str] | None:
    """None for files, and for what a web server has, which lists no folders."""
    if location.is_web or (location.is_url and file_kind(location) is not None):
        return None
    if location.is_url:
        return names_at(location)
    return names_in(location) if os.path.isdir(location.address()) else None


def _is_place(spec: Any) -> bool:
    return isinstance(spec, (str, os.PathLike, Location))


def _are_places(spec: Any) -> bool:
    return isinstance(spec, (list, tuple)) and bool(spec) and all(isinstance(one, (str, os.PathLike)) for one in spec)


def _open_files(files: list[Location], options: dict[str, Any]) -> Source | StreamSource:
    kinds: dict[FileKind | None, Location] = {}
    for file in files:
        kinds.setdefault(file_kind(file), file)
    if len(kinds) > 1:
        few = " and ".join(map(str, list(kinds.values())[:2]))
        accepted = " or ".join(f"{kind.suffix} files" for kind in FILE_KINDS)
        raise SourceError(f"{few}: files of different kinds; accepted: {accepted}, not both")
    for file in files:
        if not file.is_url:
            check_file(file)
    kind = next(iter(kinds))
    if kind is not None:
        refused = {"stream", "classes", "image_root"}.difference(kind.options)
        _refuse(f"{files[0]}, a {kind.suffix} file", options, *refused)
        return cast("Source | StreamSource", kind.open(sorted(files, key=Location.address), options))
    if len(files) == 1:
        return _open_location(files[0], options)
    accepted = ", ".join(kind.suffix for kind in FILE_KINDS)
    raise SourceError(f"{files[0]}: in a list or pattern, {accepted} files are accepted")


def _is_sample(item: Any) -> bool:
    """A dict, or a pair of an image and a dict of what belongs to it."""
    return isinstance(item, Mapping) or (
        isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[1], Mapping)
    )


def _open_object(spec: Any, options: dict[str, Any]) -> Source | StreamSource:
    kind = f"a {type(spec).__name__}"
    _refuse(kind, options, "image_root")
    # Asked of the class, since isinstance() of a protocol would compute the properties, the fingerprint among them.
    if _has(spec, "read", "name", "ids", "notes", "__len__"):
        _refuse(kind, options, "stream", "classes")
        return cast(Source, spec)
    if _has(spec, "read_shard", "notes"):
        _refuse(kind, options, "classes")
        return cast(StreamSource, spec)
    is_tensor = type(spec).__module__.partition(".")[0] == "torch" and hasattr(spec, "numpy")
    is_pair = (
        isinstance(spec, tuple) and len(spec) == 2 and not any(isinstance(one, (str, os.PathLike)) for one in spec)
    )
    if is_pair or is_tensor or isinstance(spec, np.ndarray):
        from variegate.formats.objects.arrays import ArraySource

        _refuse(kind, options, "stream")
        images, labels = spec if is_pair else (spec, None)
        return ArraySource(images, labels, () if options["classes"] is None else options["classes"])
    is_collection = isinstance(spec, (list, tuple, bytes, bytearray, memoryview, Mapping))
    are_samples = isinstance(spec, (list, tuple)) and len(spec) > 0 and _is_sample(spec[0])
    if are_samples or (not is_collection and _has(spec, "__getitem__", "__len__")):
        from variegate.formats.objects.dataset import DatasetSource

        _refuse(kind, options, "stream", "classes")
        return DatasetSource(spec)
    got = without_secrets(repr(spec))
    got = got if len(got) <= 80 else got[:77] + "..."
    raise TypeError(f"open_source: got {got} ({type(spec).__name__}); accepted: {ACCEPTED}")


def _has(spec: Any, *names: str) -> bool:
    return all(hasattr(type(spec), name) for name in names)


def _refuse(what: str, options: dict[str, Any], *names: str) -> None:
    """Raises SourceError for those of the options that were given, as ``what`` takes none of them."""
    if "stream" in names and options["stream"]:
        raise SourceError(f"{what}: stream=True is for {kinds_with('stream')}; leave it out")
    if "classes" in names and options["classes"] is not None:
        raise SourceError(f"{what}: classes= is for sources that do not name theirs; leave it out")
    if "image_root" in names and options["image_root"] is not None:
        raise SourceError(f"{what}: image_root= is for {kinds_with('image_root')}; leave it out")
