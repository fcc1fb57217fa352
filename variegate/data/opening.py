"""``open_source``: one call for whatever samples come from, answered by the source that reads it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from variegate.data.base import Source, SourceError, check_on_error, truncate
from variegate.data.filtered import SourceWithExclusions, without
from variegate.data.kinds import ACCEPTED, kinds_with
from variegate.data.resolving import are_places, is_place, resolve
from variegate.data.samples import samples_of
from variegate.data.sharded import AnySource, ShardedSource
from variegate.io.addresses import redact_secrets
from variegate.io.files import StrPath


def open_source(
    spec: Any,
    *,
    stream: bool | None = None,
    on_error: str = "raise",
    classes: Sequence[str] | None = None,
    cache_dir: StrPath | None = None,
    cache_limit: int | None = None,
    image_root: StrPath | None = None,
    exclude: StrPath | Iterable[str] | None = None,
    annotations: Any = None,
) -> Any:  # a Source or a ShardedSource; Any, because a type checker would refuse len() of a ShardedSource
    """Open a data set: files, folders, URLs, arrays or objects.

    Args:
        spec: one of the following.

            - A folder of images, or of one folder per class; or one image file.
            - Files that hold many samples, such as WebDataset ``.tar`` shards, Hugging Face ``.parquet`` files and
              ``.arrow`` shards of raw pixels (``variegate pack``): a file, a pattern (``train-*.tar``,
              ``train-{000..012}.tar``), a list, or a folder that holds nothing else.
            - A URL of any such source that fsspec reads.
            - An array [N, H, W, C], or a pair ``(images, labels)``.
            - An object with ``__getitem__`` and ``__len__``, such as a torch Dataset.
            - A Source or ShardedSource. A source or a ``vg.Mixture`` is returned unchanged.
        stream: True opens tar shards only when an epoch needs them. The epoch is then shuffled in blocks of a few
            shards, and the number of samples is known after it. False indexes all shards now, which reads each once,
            and shuffles the full epoch. None means True for remote shards.
        on_error: "raise", or "skip" to use damaged shards as far as they can be read. "skip" also drops invalid
            annotations, and annotated images that are missing, with a note.
        classes: class names, for labels that are names. None reads ``classnames.txt`` next to tar shards, if present
            (one class per line).
        cache_dir: folder for the indexes of shards, and for local copies of remote and gzip'ed ones. None means
            VARIEGATE_CACHE or the user's cache folder; indexes of local shards are then next to them, if possible.
        cache_limit: bytes of all copies of shards in that folder; the least recently used copies are removed first.
            None means half of the space that the disk would have free without these copies.
        image_root: for ``.parquet`` files with paths instead of image bytes: the folder of the images. None means the
            Parquet file's own. Files outside of it are not read.
        exclude: names of samples to exclude: a text file with one name per line, or a sequence (names: see
            ``variegate.data.filtered``). Labels, classes and ids of the others do not change.
        annotations: boxes, masks or key points (docs/targets.md), which ``read`` returns as ``targets``. For a folder
            of images: a COCO .json file, "voc", "yolo", "masks", or a dict with options. For .parquet files "columns",
            for .tar shards "members", or a dict with their names. None detects folders with ``JPEGImages`` and
            ``Annotations`` (VOC), and with ``images``, ``labels`` and ``data.yaml`` (YOLO).

    Returns:
        Samples (by index), a ``vg.Mixture``, or a ShardedSource, whose ``by_index()`` is Samples.

    Raises:
        SourceError: if the data set cannot be opened.
        TypeError: for an unsupported object.
    """
    check_on_error(on_error)
    if isinstance(spec, SourceWithExclusions):
        spec, exclude = spec.place, spec.exclude if exclude is None else exclude
    options: dict[str, Any] = {"stream": stream, "on_error": on_error, "classes": classes, "image_root": image_root}
    options |= {"cache_dir": cache_dir, "cache_limit": cache_limit}
    if is_place(spec) or are_places(spec):
        format, files, options["annotations"] = resolve(spec, annotations)
        what, spec = (f"a {format.suffixes[0]} file", files) if format.suffixes else (format.noun, files[0])
        _check_options(f"{files[0]}, {what}", options, format.options)
        module, _, reader = format.reader.partition(":")
        open_files = getattr(import_module(f"variegate.data.{module}"), reader)
        opened = open_files(spec, **{name: options[name] for name in format.options})
    elif annotations is None:
        opened = _open_object(spec, options)
    else:
        held = f"the source is a {type(spec).__name__}"
        raise SourceError(f"annotations: they are for a folder of images, .parquet files and .tar shards, and {held}")
    return opened if exclude is None else without(opened, exclude)


def new_notes(opened: AnySource, given: Any) -> list[str]:
    """Notes on a newly opened data set; empty if ``given`` is a source, whose notes were already printed."""
    return [] if _has(given, "notes") else opened.notes()


def _open_object(spec: Any, options: dict[str, Any]) -> AnySource:
    kind = f"a {type(spec).__name__}"
    # Asked of the class, since isinstance() of a protocol would compute the properties, the fingerprint among them.
    if _has(spec, "read", "name", "ids", "notes", "__len__"):
        _check_options(kind, options)
        return samples_of(cast(Source, spec))
    if isinstance(spec, ShardedSource):
        _check_options(kind, options, ("stream",))
        return spec.by_index() if options["stream"] is False else spec
    is_tensor = type(spec).__module__.partition(".")[0] == "torch" and hasattr(spec, "numpy")
    is_pair = (
        isinstance(spec, tuple) and len(spec) == 2 and not any(isinstance(one, (str, os.PathLike)) for one in spec)
    )
    if is_pair or is_tensor or isinstance(spec, np.ndarray):
        from variegate.data.objects.arrays import open_arrays

        _check_options(kind, options, ("classes",))
        images, labels = spec if is_pair else (spec, None)
        return open_arrays(images, labels, () if options["classes"] is None else options["classes"])
    torch = sys.modules.get("torch")  # which is there where one of its data sets is
    is_iterable = torch is not None and isinstance(spec, torch.utils.data.IterableDataset)
    if is_iterable or (_has(spec, "__iter__") and not _has(spec, "__getitem__")):
        raise TypeError(
            f"open_source: got {kind}, whose samples have no index; accepted: torch's DataLoader(dataset, "
            "collate_fn=vg.Collate(transform)), or a data set with __getitem__ and __len__"
        )
    is_collection = isinstance(spec, (list, tuple, bytes, bytearray, memoryview, Mapping))
    first = spec[0] if isinstance(spec, (list, tuple)) and len(spec) > 0 else None
    is_pair_of_sample = isinstance(first, (list, tuple)) and len(first) == 2 and isinstance(first[1], Mapping)
    are_samples = isinstance(first, Mapping) or is_pair_of_sample
    if are_samples or (not is_collection and _has(spec, "__getitem__", "__len__")):
        from variegate.data.objects.dataset import open_dataset

        _check_options(kind, options)
        return open_dataset(spec)
    _check_options(kind, options, ("stream", "classes"))
    got = truncate(redact_secrets(repr(spec)), 80)
    raise TypeError(f"open_source: got {got} ({type(spec).__name__}); accepted: {ACCEPTED}")


def _has(spec: Any, *names: str) -> bool:
    return all(hasattr(type(spec), name) for name in names)


def _check_options(what: str, options: dict[str, Any], accepted: Sequence[str] = ()) -> None:
    """Raises SourceError for an argument that was given, and that ``what`` does not take."""
    for name in ("stream", "classes", "image_root"):
        if name not in accepted and (options[name] if name == "stream" else options[name] is not None):
            which = "sources that do not name theirs" if name == "classes" else kinds_with(name)
            raise SourceError(f"{what}: {name}={'True' * (name == 'stream')} is for {which}; leave it out")
