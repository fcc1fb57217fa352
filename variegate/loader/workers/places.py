"""Devices of a loader's workers, in other processes and on other machines, and how workers start there."""

from __future__ import annotations

from dataclasses import dataclass

from variegate.loader.options import LoaderOptions, RayWorkers
from variegate.loader.ranks import processes_here
from variegate.workers.devices import choose_devices, cores_each, kind_of, open_pool
from variegate.workers.protocol import JobSpec, WorkerPool
from variegate.workers.ray_actors import connect


@dataclass(frozen=True)
class WorkerPlaces:
    """Devices of a loader's workers, and how workers start there. ``fewest``: of them that must be ready."""

    options: LoaderOptions
    devices: tuple[str, ...]
    num_threads: int
    fewest: int

    @classmethod
    def find(cls, options: LoaderOptions, num_threads: int | None) -> WorkerPlaces:
        """``num_threads``: of each worker; None shares out the cores. Raises ValueError, ImportError without Ray."""
        workers = options.workers
        ray = connect(workers.address) if isinstance(workers, RayWorkers) else None
        count = None if isinstance(workers, str) else workers.count
        fewest, most = count if isinstance(count, tuple) else (count, count)
        if options.devices is not None and count is not None:
            raise ValueError(f"devices: got {options.devices!r} with count={count!r}; accepted: one of the two")
        if most is None or (options.device not in ("auto", "cpu") and most == 1):
            kinds = options.devices or (options.device if options.device != "cpu" else "cpu:0")
            devices = choose_devices(kinds, ray)
        elif isinstance(workers, RayWorkers):
            kind = "cuda" if workers.gpus else "cpu"
            devices = tuple(f"{kind}:{place}" for place in range(most))
        else:
            found = choose_devices("auto") if options.device == "auto" else ("cpu:0",)
            is_gpu = kind_of(found[0]) == "cuda"
            devices = found[:most] if is_gpu else tuple(f"cpu:{place}" for place in range(most))
            if options.device not in ("auto", "cpu") or len(devices) < most:
                got = f"got {most} with device={options.device!r} and {len(found)} GPUs"
                raise ValueError(f"count: {got}; accepted: as many as there are, device='cpu', or devices=[...]")
        if num_threads is None:
            cpus = workers.cpus if isinstance(workers, RayWorkers) else None
            sharing = 1 if ray else processes_here()
            num_threads = cpus or max(1, cores_each(fewest or len(devices), ray) // sharing)
        return cls(options, devices, num_threads, fewest or len(devices))

    @property
    def are_threads(self) -> bool:
        return self.options.workers == "thread"

    def open(self, spec: JobSpec) -> WorkerPool:
        """Open without starting a worker."""
        workers = self.options.workers
        if not isinstance(workers, RayWorkers):
            return open_pool("thread" if self.are_threads else "process", spec, self.devices, self.num_threads)
        needs = None
        if workers.gpus or workers.cpus:
            needs = {"num_gpus": workers.gpus, "num_cpus": workers.cpus or self.num_threads}
        return open_pool("ray", spec, self.devices, self.num_threads, workers.address, needs)
