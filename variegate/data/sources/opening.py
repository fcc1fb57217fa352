"""``open_source``: one call for whatever samples come from, answered by the source that reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from variegate.data.sources.base import Source, SourceError, StreamSource
from variegate.data.sources.class_names import class_names_beside
from variegate.data.sources.folder import open_folder, open_image
from variegate.data.sources.paths import is_url, plain, shown
from variegate.data.sources.patterns import expand, is_pattern
from variegate.data.sources.places import Kind, kind_of, missing, shards_of_folder
from variegate.data.sources.remote import reason_for
from variegate.data.sources.remote_folder import list_names, open_remote_folder
from variegate.data.sources.tar_listing import check_on_error
from variegate.data.sources.tar_stream import TarStream
from variegate.data.sources.webdataset import open_webdataset
from variegate.outside.addresses import without_secrets
from variegate.outside.files import check_regular

_ACCEPTED = (
    "a folder of images or of class folders, .tar shards (WebDataset), .parquet files, patterns (* and {000..012}) or "
    "lists of such files, addresses of them (s3://, https://, ...), an array [N, H, W, C] or a pair (images, labels), "
    "a data set with __getitem__ and __len__, or a Source"
)


def open_source(
    spec: Any,
    *,
    stream: bool | None = None,
    on_error: str = "raise",
    classes: Sequence[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    image_root: str | os.PathLike[str] | None = None,
) -> Source | StreamSource:
    """Samples from a place or an object.

    ``spec``: a folder of images or class folders; ``.tar`` shards in WebDataset's layout; ``.parquet`` files in
    Hugging Face's; a pattern (``train-*.tar``, ``train-{000..012}.tar``), a list of such files, or a folder that holds
    nothing else; any of these at an address that fsspec reads; one image file; an array [N, H, W, C] or a pair
    ``(images, labels)``; any object with ``__getitem__`` and ``__len__``; a Source or StreamSource, which is returned.

    ``stream``: tar shards are read from their beginnings, one after another, instead of by index. None: where they are
    remote, since an index of a remote shard costs reading it once. ``on_error="skip"``: shards that are cut off or
    cannot be read are used as far as they go (see ``open_webdataset``). ``classes``: names of classes, for labels that
    are names; None: for tar shards, those in a file ``classnames.txt`` beside them (a class a line), if there is one.
    ``cache_dir``: where indexes of shards are kept; None: beside them, or where that cannot be written to, in the
    folder that VARIEGATE_CACHE names, or the user's. ``image_root``: for ``.parquet`` files whose rows name image files
    instead of holding their bytes, the folder of those; None: the Parquet file's own. Files outside of it are not read.

    Raises SourceError for what cannot be opened, TypeError for objects that are none of these.
    """
    check_on_error(on_error)
    if isinstance(spec, (str, os.PathLike)):
        path = plain(spec)
        if not path:
            raise SourceError(f"an empty path; accepted: {_ACCEPTED}")
        opened = _Options(stream, on_error, classes, cache_dir, image_root).open_path(path)
    elif isinstance(spec, (list, tuple)) and spec and all(isinstance(one, (str, os.PathLike)) for one in spec):
        files = [file for one in spec for file in expand(plain(one))]
        opened = _Options(stream, on_error, classes, cache_dir, image_root).open_files(files)
    else:
        _refuse_root(f"a {type(spec).__name__}", image_root)
        opened = _open_object(spec, stream, classes)
    return opened


class _Options:
    """What was asked for besides the place."""

    def __init__(
        self,
        stream: bool | None,
        on_error: str,
        classes: Sequence[str] | None,
        cache_dir: str | os.PathLike[str] | None,
        image_root: str | os.PathLike[str] | None,
    ) -> None:
        self._stream, self._on_error, self._classes, self._cache_dir = stream, on_error, classes, cache_dir
        self._image_root = image_root

    def open_path(self, path: str) -> Source | StreamSource:
        if is_pattern(path):
            return self.open_files(expand(path))
        if is_url(path):
            if kind_of(path) in (Kind.TAR, Kind.PARQUET):
                return self.open_files([path])
            names = list_names(path)
        elif os.path.isdir(path):
            names = [name + "/" * os.path.isdir(os.path.join(path, name)) for name in os.listdir(path)]
        else:
            return self._open_file(path)
        if files := shards_of_folder(path, names):
            return self.open_files(files)
        _refuse(f"{shown(path)}, a folder of images", self._stream, self._classes)
        _refuse_root(f"{shown(path)}, a folder of images", self._image_root)
        try:
            return open_remote_folder(path) if is_url(path) else open_folder(path)
        except SourceError as error:
            inside = [name for name in names if kind_of(name) in (Kind.TAR, Kind.PARQUET)]
            if not inside:
                raise
            ending = os.path.splitext(inside[0])[1]
            hint = f"for the {ending} files beside its sub-folders, give {shown(path).rstrip('/')}/*{ending}"
            raise SourceError(f"{error}; {hint}") from None

    def open_files(self, files: list[str]) -> Source | StreamSource:
        kinds: dict[Kind, str] = {}
        for file in files:
            kinds.setdefault(kind_of(file), file)
        if len(kinds) > 1:
            few = " and ".join(shown(file) for file in list(kinds.values())[:2])
            raise SourceError(f"{few}: files of different kinds; accepted: .tar files or .parquet files, not both")
        for file in files:
            if not is_url(file):
                _check_file(file)
        kind = next(iter(kinds))
        if kind == Kind.TAR:
            _refuse_root(f"{shown(files[0])}, a .tar file", self._image_root)
            is_remote = any(is_url(file) for file in files)
            classes = class_names_beside(files) if self._classes is None else self._classes
            if is_remote if self._stream is None else self._stream:
                return TarStream(files, classes)
            return open_webdataset(files, classes=classes, on_error=self._on_error, cache_dir=self._cache_dir)
        if kind == Kind.PARQUET:
            _refuse(f"{shown(files[0])}, a .parquet file", self._stream, None)
            given = {"cache_dir": self._cache_dir, "image_root": self._image_root}
            options = {name: value for name, value in given.items() if value is not None}
            return _from("parquet", "open_parquet")(sorted(files), classes=self._classes, **options)
        if len(files) == 1:
            return self.open_path(files[0])
        raise SourceError(f"{shown(files[0])}: in a list or pattern, .tar and .parquet files are accepted")

    def _open_file(self, path: str) -> Source | StreamSource:
        _check_file(path)
        kind = kind_of(path)
        if kind in (Kind.TAR, Kind.PARQUET):
            return self.open_files([path])
        if kind == Kind.IMAGE:
            _refuse(f"{path}, an image", self._stream, self._classes)
            _refuse_root(f"{path}, an image", self._image_root)
            return open_image(path)
        raise SourceError(f"{path}: a file of a kind that is not read; accepted: {_ACCEPTED}")


def _open_object(spec: Any, stream: bool | None, classes: Sequence[str] | None) -> Source | StreamSource:
    kind = f"a {type(spec).__name__}"
    # Asked of the class, since isinstance() of a protocol would compute the properties, the fingerprint among them.
    if _has(spec, "read", "name", "ids", "notes", "__len__"):
        _refuse(kind, stream, classes)
        return cast(Source, spec)
    if _has(spec, "read_shard", "notes"):
        _refuse(kind, None, classes)
        return cast(StreamSource, spec)
    is_tensor = type(spec).__module__.partition(".")[0] == "torch" and hasattr(spec, "numpy")
    is_pair = (
        isinstance(spec, tuple) and len(spec) == 2 and not any(isinstance(one, (str, os.PathLike)) for one in spec)
    )
    if is_pair or is_tensor or isinstance(spec, np.ndarray):
        _refuse(kind, stream, None)
        images, labels = spec if is_pair else (spec, None)
        names = {} if classes is None else {"classes": classes}
        return cast(Source, _from("arrays", "ArraySource")(images, labels, **names))
    is_collection = isinstance(spec, (list, tuple, bytes, bytearray, memoryview, Mapping))
    if not is_collection and _has(spec, "__getitem__", "__len__"):
        _refuse(kind, stream, classes)
        return cast(Source, _from("dataset", "DatasetSource")(spec))
    got = without_secrets(repr(spec))
    got = got if len(got) <= 80 else got[:77] + "..."
    raise TypeError(f"open_source: got {got} ({type(spec).__name__}); accepted: {_ACCEPTED}")


def _has(spec: Any, *names: str) -> bool:
    return all(hasattr(type(spec), name) for name in names)


def _refuse(what: str, stream: bool | None, classes: Sequence[str] | None) -> None:
    if stream:
        raise SourceError(f"{what}: stream=True is for .tar shards; leave it out")
    if classes is not None:
        raise SourceError(f"{what}: classes= is for sources that do not name theirs; leave it out")


def _refuse_root(what: str, image_root: object) -> None:
    if image_root is not None:
        raise SourceError(f"{what}: image_root= is for .parquet files; leave it out")


def _check_file(path: str) -> None:
    """Raises SourceError for a path where nothing is, and for what is neither a folder nor a file that ends."""
    try:
        check_regular(path)
    except FileNotFoundError:
        raise missing(path) from None
    except IsADirectoryError:
        pass
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: {reason_for(error, path)}") from None


def _from(module: str, name: str) -> Any:
    """Loaded when needed: pyarrow and what else these bring along."""
    return getattr(import_module(f"variegate.data.sources.{module}"), name)
