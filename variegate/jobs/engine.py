"""``Engine``: jobs on several devices."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from variegate.augmenter.planner import single_conditions
from variegate.checks import one_of
from variegate.executors.runners.runner import Dtype, Geometry, Layout
from variegate.io.addresses import redact_host
from variegate.io.files import StrPath
from variegate.jobs.mapping import MapSpec, iter_images, map_images
from variegate.jobs.options import ON_ERROR, OnError
from variegate.ops.output import Identity
from variegate.transforms import Transform
from variegate.workers.devices import WORKER_KINDS, WorkerKind, choose_devices, cores_each, kind_of, open_pool
from variegate.workers.protocol import JobSpec
from variegate.workers.ray_actors import connect
from variegate.workers.run import Finished, TaskStream, run_tasks
from variegate.workers.scheduler import Allocation, Scheduler, SchedulerSettings, Snapshot


class Engine:
    """Run augmentation jobs on several devices; ``map`` augments a stream of images.

    Workers start with each run and end with it; nothing is held in between. Several runs may share the devices at the
    same time.

    Args:
        devices: "auto" (all GPUs or, without a GPU, the CPU in parts of about four cores), or a list of names of one
            kind: "cuda:0", ...; "cpu:0", "cpu:1", ... (virtual devices: parts of the CPU with a worker each). With
            ``workers="ray"``, devices of the cluster.
        workers: "process" (one spawned process per device; crashes are survived), "thread" (starts immediately) or
            "ray" (actors of a Ray cluster, ``pip install 'variegate[ray]'``).
        allocation: device of a new task: "next_idle" (the next that has nothing to do), "round_robin" or "random" (by
            ``seed``).
        steal: let idle devices take tasks queued for others.
        ordered: yield results in the order of the items; False yields each when ready.
        num_threads: cores per device; None divides them evenly.
        transform, seed, dtype, layout, geometry: for ``map`` and ``map_image``, as for an ``Augmenter``.
        address: address of the Ray cluster. None uses the one that Ray is connected to or finds, else starts one on
            this machine.
        heartbeat_timeout: seconds without a heartbeat after which a busy worker is replaced.
        max_failures: failures of an item, processed alone, after which it is given up.

    Raises:
        ValueError, TypeError: naming the argument, its value and accepted values.
        ImportError: for ``workers="ray"`` without Ray.
    """

    def __init__(
        self,
        devices: str | Sequence[str] = "auto",
        workers: WorkerKind = "process",
        allocation: Allocation = "next_idle",
        steal: bool = True,
        ordered: bool = True,
        *,
        num_threads: int | None = None,
        transform: Transform | None = None,
        seed: int = 0,
        dtype: Dtype | torch.dtype = "float32",
        layout: Layout = "NCHW",
        geometry: Geometry = "composed",
        address: str | None = None,
        heartbeat_timeout: float = 120.0,
        max_failures: int = 3,
    ) -> None:
        one_of("workers", workers, WORKER_KINDS)
        if address is not None and workers != "ray":
            got = f"got {redact_host(address)!r} with workers={workers!r}"
            raise ValueError(f"address: {got}; accepted: None, or workers='ray'")
        self.transform = transform
        self._spec = MapSpec(transform or Identity(), seed, dtype, layout, geometry)
        # Created for its checks, whose messages are the most precise.
        self._spec.augmenter(num_threads=num_threads)
        self._rules = SchedulerSettings(
            allocation, steal, ordered, heartbeat_timeout=heartbeat_timeout, max_failures=max_failures, seed=int(seed)
        )
        ray = connect(address) if workers == "ray" else None
        self.devices = choose_devices(devices, ray)
        self.workers = workers
        self.address = address
        self.num_threads = cores_each(len(self.devices), ray) if num_threads is None else num_threads
        self.quarantined: list[tuple[int, str]] = []

    @property
    def executor(self) -> str:
        """Executor that computes the pixels: "cuda" or "cpu"."""
        return kind_of(self.devices[0])

    def map(
        self,
        images: Any,
        ids: Iterable[int] | None = None,
        epoch: int = 0,
        copy: int = 0,
        transform: Transform | None = None,
        conditions: Mapping[str, Iterable[Any]] | None = None,
        *,
        on_error: OnError = "raise",
    ) -> Iterator[Any]:
        """Augment a stream of images, to the pixels of ``Augmenter(transform, seed=seed)(images, ids, epoch, copy)``.

        Args:
            images: an iterable, possibly infinite, of uint8 arrays [H, W, 3], [H, W, 1] or [H, W], or CPU tensors; or
                one array [N, H, W, C]. A bounded number of images and bytes is read ahead. Do not change an image
                before its result is there.
            ids: one per image; None counts from 0.
            epoch, copy: further inputs of the random numbers.
            transform: replaces the engine's own.
            conditions: values for ``Cond``, one per image, such as ``{"label": labels}``.
            on_error: for an image that fails: "raise", or "skip" it and add it to ``quarantined``.

        Returns:
            An iterator over one CPU tensor per image, in order; with ``ordered=False``, over pairs (id, tensor). With
            thread workers, some tens of tensors share memory: clone the few that are kept for long.

        Raises:
            TypeError, ValueError: while iterating, naming the image by its position.
            EngineError: for an image that failed too often, and if no device is left.
        """
        chosen = self._chosen(transform)
        one_of("on_error", on_error, ON_ERROR)
        spec = replace(self._spec, transform=chosen, epoch=epoch, copy=copy, names=tuple(conditions or ()))
        spec.check()
        tasks = iter_images(images, ids, conditions or {})
        failed: list[tuple[int, str]] = []
        self.quarantined = failed
        quarantined = failed if on_error == "skip" else None
        return map_images(partial(self.run, spec), tasks, len(self.devices), self._rules.ordered, quarantined)

    def _chosen(self, transform: Transform | None) -> Transform:
        chosen = self.transform if transform is None else transform
        if chosen is None:
            raise ValueError("transform: got none; give one to this method, or to Engine(transform=...)")
        return chosen

    def map_image(
        self,
        image: Any,
        transform: Transform | None = None,
        out: StrPath | None = None,
        tile: int = 1024,
        *,
        id: int = 0,
        epoch: int = 0,
        copy: int = 0,
        conditions: Mapping[str, Any] | None = None,
        resume: bool = True,
    ) -> Any:
        """Augment one image that may exceed memory, band by band, on all devices: CPUs or GPUs, also of a Ray cluster.

        Pixels equal, to the bit, ``Augmenter(transform, seed=seed)([image], [id], epoch, copy)``. Sides may be longer
        than that accepts, unless the transform moves pixels by more than whole shifts and resizes.

        Args:
            image: path of a .npy, TIFF (tiled, or in uncompressed strips) or Zarr file; or an array [H, W, C] with up
                to 32 channels, or [H, W]. uint8; on CPUs also uint16 and float32.
            transform: replaces the engine's own; must not mix images.
            out: path of the result, .npy, .tif, .tiff or .zarr, which replaces an existing one when complete; until
                then, intermediate images are in the same folder. None returns an array. TIFF and Zarr need ``pip
                install 'variegate[tiles]'``. With ``workers="ray"``, all machines must see both files.
            tile: side of tiles and chunks in the result, and the most lines of a band, 1 to 16,384; for .tif a multiple
                of 16.
            id, epoch, copy: further inputs of the random numbers.
            conditions: values for ``Cond``, such as ``{"label": 3}``.
            resume: resume an interrupted run of the same result; False starts over.

        Returns:
            None if ``out`` is a path, else an array [C, H, W] or [H, W, C] by the engine's layout. It has the image's
            dtype, or floats if the transform normalizes. Files have channels last.

        Raises:
            TypeError, ValueError: naming the argument and accepted values.
            SourceError: for a file that cannot be read.
            EngineError: if no device is left or the result cannot be written.
        """
        from variegate.jobs.regions.run import ImageRun, pixel_file

        work = replace(self._spec, transform=self._chosen(transform), epoch=epoch, copy=copy)
        values = None if conditions is None else single_conditions(conditions, 1)
        target = None if out is None else os.fspath(out)
        return ImageRun(self, work, pixel_file(image), id, target, tile, values, resume).run()

    def run(
        self,
        spec: JobSpec,
        feed: TaskStream,
        *,
        ordered: bool | None = None,
        max_items: int = 1 << 62,
        has_room: Callable[[], bool] | None = None,
        stop: threading.Event | None = None,
        on_turn: Callable[[Snapshot], None] | None = None,
    ) -> Generator[Finished, None, None]:
        """Run any other job on the tasks of ``feed``, an iterable of (start, stop, payload).

        Args:
            spec: the job; opened once by each worker.
            feed: the tasks.
            ordered: None for the engine's own setting.
            max_items: limit of items read from the feed but not yet yielded.
            has_room, stop, on_turn: see ``run_tasks``, also for errors.

        Workers start when the iteration does, and end when it ends or is closed.
        """
        is_ordered = self._rules.ordered if ordered is None else ordered
        rules = replace(self._rules, ordered=is_ordered, max_items=max_items)
        pool = open_pool(self.workers, spec, self.devices, self.num_threads, self.address)
        scheduler = Scheduler(self.devices, rules)
        yield from run_tasks(pool, scheduler, feed, stop=stop, on_turn=on_turn, has_room=has_room)
