"""Compile every kernel of the CPU ahead, or find that they are all there."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg
from numba.core import config
from numba.core import event as events

from variegate import policies
from variegate import transforms as T
from variegate.augmenter.augmenter import Augmenter
from variegate.decode.entropy.cut import cut_out, key_of_file, pack_file
from variegate.decode.entropy.index import known_of
from variegate.decode.memory import unpack_nothing
from variegate.decode.scan import scan_headers
from variegate.formats.annotated.outlines import fill_rings
from variegate.loader.shuffle import Permutation, permute_within
from variegate.program import compiled
from variegate.program.lowering.tables import FILLS, compile_fill

# The kernels that Python calls, or that are called by address, each for one signature: those of tables are declared by
# operations. All others are part of their code.
ENTRIES = (
    "program.lowering.joint.keep_work",
    "program.lowering.joint.rewrite_all",
    "executors.cpu.batch.keep_batch",
    "executors.cpu.batch.keep_scratch",
    "executors.cpu.batch.measure",
    "executors.cpu.passes.run_rows",
    "executors.cpu.jpeg.code_jpeg",
    "executors.cpu.displace.prepare_maps",
    "executors.cpu.displace.real_nearest_row",
    "executors.cpu.displace.displaced_row",
    "executors.cpu.fold.folded_row",
    "executors.cpu.fold.seam_row",
    "executors.cpu.neighbourhood.filtered_row",
    "executors.cpu.values.add_noise",
    "executors.cpu.values.erase_normalized",
    "executors.cpu.resample.prepare_resize",
    "executors.cpu.statistics.build_tables",
    "executors.cpu.store.blend_outputs",
    "decode.memory._unpack",
    "decode.scan._scan",
    "loader.shuffle._permute",
    "loader.shuffle._permute_within",
    *(fill._cache.name for fill in FILLS.values() if fill._cache.is_ours),
)

# Of an entropy index, which no batch waits for that has none.
INDEX_ENTRIES = (
    "decode.entropy.entries.find_entries",
    "decode.entropy.entries.pack_entries",
    "decode.entropy.cut._key",
    "decode.entropy.cut._cut_out",
)

# Of what belongs to images, which no batch without dicts waits for.
TARGET_ENTRIES = (
    "formats.annotated.outlines._fill",
    "targets.masks._read_masks",
    "targets.regions._move_points",
    "targets.regions._move",
)

# (kernels done, of about so many, seconds)
Progress = Callable[[int, int, float], object]


class NotKeptError(OSError):
    """Compiled kernels cannot be written anywhere."""


@dataclass(frozen=True)
class Warmth:
    """``was_ready``: all were there; ``compiled``: how many just now; ``folder``: the one below which all are."""

    was_ready: bool
    compiled: int
    seconds: float
    folder: str
    num_bytes: int


def is_ready() -> bool:
    """True if every kernel of a batch on the CPU is in memory, or on disk for this processor; in milliseconds."""
    return _are_there(ENTRIES)


def make_ready(has_targets: bool = False) -> None:
    """Compile what is not on disk, before workers would all wait. ``has_targets``: of images with boxes or masks."""
    if not is_ready():
        _run_everything()
    if has_targets and not _are_there(TARGET_ENTRIES):
        _use_targets()


def warm(progress: Progress | None = None, more: Mapping[tuple[str, ...], Callable[[], None]] | None = None) -> Warmth:
    """Compile what is not on disk yet, or wait for processes that do. Raises NotKeptError where it cannot be kept.

    ``more``: further entries, and what has them compiled (``warm_commands.py``).
    """
    began = time.perf_counter()
    before = _compiled()
    uses = {INDEX_ENTRIES: _use_an_index, TARGET_ENTRIES: _use_targets, **(more or {})}
    was_ready = _folder() is not None and all(map(_are_there, uses))
    if not was_ready:
        place, wanted = compiled.cache_folder(), config.CACHE_DIR
        if place is None:
            raise NotKeptError(
                "kernels cannot be cached: neither variegate's own folder nor the user's cache can be written; set "
                "NUMBA_CACHE_DIR to a folder that can"
            )
        # Numba keeps them elsewhere then, without a word.
        if wanted and not Path(place).absolute().is_relative_to(Path(wanted).absolute()):
            raise NotKeptError(f"NUMBA_CACHE_DIR: got {wanted!r}, which cannot be written; accepted: a folder that can")
        listener = _Listener(progress, began)
        with events.install_listener("numba:compile", listener):
            for use in (_run_everything, *uses.values()):
                use()
    seconds = time.perf_counter() - began
    if (folder := _folder()) is None:
        failure = compiled.TURN.failure
        reason = (failure.strerror or str(failure)) if failure is not None else "they were removed meanwhile"
        raise NotKeptError(f"kernels cannot be cached in {compiled.cache_folder()}: {reason}")
    num_bytes = sum(kernel._cache.num_bytes() for kernel in compiled.KERNELS)
    return Warmth(was_ready, _compiled() - before, seconds, folder, num_bytes)


def _use_an_index() -> None:
    """A file of one block, looked into and cut out."""
    file = simplejpeg.encode_jpeg(np.zeros((8, 8, 3), np.uint8))
    key, packed = key_of_file(file), pack_file(file)
    assert isinstance(packed, bytes)
    cut_out(file, known_of({key: packed}), (0, 0, 1, 1))


def _use_targets() -> None:
    """A mask, a box and a point through one step, and an outline filled."""
    sample = {"image": np.zeros((8, 8, 3), np.uint8), "mask": np.zeros((8, 8), np.uint8), "boxes": [[1, 1, 4, 4]]}
    Augmenter(T.RandomRotation(10), num_threads=1)([sample | {"keypoints": [[2, 2]]}], ids=[0])
    fill_rings(np.zeros((4, 4), np.bool_), np.array([[0, 0], [3, 0], [0, 3]]), [3])


def _are_there(names: tuple[str, ...]) -> bool:
    return all(entry.overloads or entry._cache.found_in(entry.targetctx) for entry in _entries(names))


def _entries(names: tuple[str, ...] = ENTRIES) -> list[Any]:
    for module in {name.rpartition(".")[0] for name in names}:
        import_module(f"variegate.{module}")
    found = {kernel._cache.name: kernel for kernel in compiled.KERNELS}
    return [found[name] for name in names]


def _folder() -> str | None:
    """The one below which all entries are on disk for this processor, if they are."""
    folders = {entry._cache.found_in(entry.targetctx) for entry in _entries()}
    return None if None in folders else compiled.common_folder(folders)


class _Listener(events.Listener):
    def __init__(self, progress: Progress | None, began: float) -> None:
        self._progress, self._began = progress, began
        self._done = 0
        # Those that become part of others before they are compiled do not count.
        self._total = sum(kernel.targetoptions.get("inline") != "always" for kernel in compiled.KERNELS)

    def on_start(self, event: object) -> None:
        pass

    def on_end(self, event: object) -> None:
        self.show(sum(bool(kernel.overloads) for kernel in compiled.KERNELS))

    def show(self, done: int) -> None:
        """So many are compiled."""
        if self._progress is not None and done > self._done:
            self._done = done
            self._progress(done, self._total, time.perf_counter() - self._began)


def _run_everything() -> None:
    """All of ``ENTRIES``, on next to nothing. One thread: a process with threads had better not be forked."""
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, size, dtype=np.uint8) for size in ((12, 9, 3), (9, 12, 1))]
    deformations = [T.ElasticTransform(), T.ThinPlateSpline()]
    steps = [T.JPEG(50), T.RandomResizedCrop(8), *deformations, T.OcclusionDiffusion(), policies.AugMix()]
    t = T.Compose([*steps, T.Normalize((0.5,), (0.5,))])
    places, lengths = np.arange(len(images)), np.full(len(images), len(images))
    Permutation(len(images), seed=0, epoch=0)(places)
    permute_within(places, lengths, places, seed=0, epoch=0)
    for op in FILLS:
        compile_fill(op)
    scan_headers([b""])
    unpack_nothing()
    Augmenter(t, num_threads=1)(images, ids=range(len(images)))


def _compiled() -> int:
    """Number of kernels that this process has compiled."""
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in compiled.KERNELS)
