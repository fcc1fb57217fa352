"""Small data sets on disk, and what an expansion left behind."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image

from variegate.data.folder import open_folder
from variegate.jobs.arguments import build_transform
from variegate.jobs.augment import Expansion, Plan, Report
from variegate.jobs.engine import Engine

# A clash of stems; a folder one below, as a user would have it.
NAMES = ("a/1.jpg", "a/1.png", "a/2.jpg", "b/x.jpg", "b/deep/x.png", "b/y.webp", "b/z.bmp")


def lay_photos(root: Path) -> Path:
    """Two classes, ragged sizes."""
    rng = np.random.default_rng(5)
    for n, name in enumerate(NAMES):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        coarse = rng.integers(0, 256, (5, 6, 3)).astype(np.uint8)
        Image.fromarray(coarse).resize((40 + 3 * n, 50 - 2 * n), Image.Resampling.BICUBIC).save(root / name)
    return root


_SCANNED = np.random.default_rng(8)
# Gray images of 16 bits, by the names of ``lay_scans``.
SCANS = {f"{'ab'[n % 2]}/{n}.png": _SCANNED.integers(0, 65536, (20 + n, 24), np.uint16) for n in range(4)}


def lay_scans(root: Path) -> Path:
    for name, scan in SCANS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(scan).save(root / name)
    return root


def expansion(photos: Path, out: Any, engine: Engine | None = None, **settings: Any) -> Expansion:
    """``settings``: of the Expansion where it knows them, else of the Plan."""
    own = {
        name: settings.pop(name)
        for name in ("on_error", "resume", "changed", "on_event", "stop", "index")
        if name in settings
    }  # fmt: skip
    options = {"copies": 3, "seed": 7} | settings
    transform = build_transform(options.pop("policy", "randaugment"), options.pop("size", (32, 32)))
    plan = Plan(open_folder(photos), transform, place=str(photos), **options)
    return Expansion(plan, out, engine or threads(), **own)


def threads(number: int = 2, **settings: Any) -> Engine:
    return Engine([f"cpu:{n}" for n in range(number)], "thread", num_threads=1, **settings)


def digest(root: Path) -> dict[str, str]:
    """Checksums of all files, those that begin with a dot as well."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def rows(root: Path) -> list[dict[str, Any]]:
    return pq.read_table(root / "manifest.parquet").to_pylist()


def run_until(run: Expansion, at_least: int) -> Report:
    """Stop a run when so many outputs are written. What it reports now and then comes too late where it is fast."""
    count_time = run._count_time

    def after_some() -> None:
        count_time()
        if run.report.written >= at_least:
            run.stop.set()

    run._count_time = after_some  # type: ignore[method-assign]
    report = run.run()
    assert report.is_interrupted
    return report
