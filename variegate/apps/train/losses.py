"""Losses of samples, recorded while a model trains: two bytes for each draw, in a file for each epoch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.apps.train.feed import Feed
from variegate.apps.train.magnitudes import IDS_NAME, Ids, RecordedMagnitudes, as_npy
from variegate.apps.train.ranks import Ranks
from variegate.checks import PIXEL_VERSION, check_pixel_version
from variegate.formats.base import Source
from variegate.io.durable import write_atomically
from variegate.jobs.arguments import absolute_place
from variegate.loader import Batch
from variegate.loader.options import ConditionsOfIds

REPORT_FOLDER, LOSSES_FOLDER, RUN_NAME, TRANSFORM_NAME = "report", "losses", "run.json", "transform.json"


class LossRecorder:
    """Losses of the epoch's draws, float16 [copies, N], NaN where there is none yet.

    A draw has one place in one file, so that a resumed run, which trains on some draws again, keeps each once. Nothing
    waits for the device before ``save``, which every rank calls in the same step. Raises ValueError for streams.
    """

    def __init__(self, feed: Feed, ranks: Ranks) -> None:
        if not isinstance(feed.source, Source):
            raise ValueError(
                "report: got a stream, whose samples are not known beforehand; accepted: samples by index: "
                "open_source(..., stream=False)"
            )
        ids = feed.source.ids(np.arange(len(feed.source), dtype=np.int64))
        self._ids, self._order, self._ranks = ids, np.argsort(ids), ranks
        self._losses = np.empty((feed.options.copies, len(ids)), np.float16)
        self._latest = torch.empty(0)
        self._noted: list[torch.Tensor] = []
        self._places: list[npt.NDArray[np.intp]] = []
        place = None if feed.place == "source" else absolute_place(feed.place)
        # All that the draws follow from, besides the transform.
        described = {
            **{"pixels": PIXEL_VERSION, "seed": feed.options.seed, "is_adapted": feed.adaptation.gives},
            **{"source": place, "fingerprint": feed.source.fingerprint, "classes": list(feed.classes)},
        }
        self._folder = feed.options.out / REPORT_FOLDER
        self._files = {
            TRANSFORM_NAME: json.dumps(feed.transform.to_dict()).encode(),
            f"{LOSSES_FOLDER}/{IDS_NAME}": as_npy(ids),
            RUN_NAME: json.dumps(described).encode(),
        }

    def begin(self, epoch: int) -> None:
        """Go on with what there is of this epoch."""
        if self._ranks.is_first:
            if not (self._folder / RUN_NAME).exists():
                for name, data in self._files.items():
                    write_atomically(self._folder / name, data, durable=True)
            self._path = self._folder / LOSSES_FOLDER / f"{epoch:04d}.npy"
            self._losses[:] = np.load(self._path) if self._path.exists() else np.nan

    def note(self, losses: torch.Tensor) -> None:
        """Of a batch, [N]; ``trained`` says of which."""
        self._latest = losses

    def trained(self, batch: Batch) -> None:
        rows = self._order[np.searchsorted(self._ids, batch.ids, sorter=self._order)]
        self._noted.append(self._latest)
        self._places.append(np.where(batch.padding, self._losses.size, batch.copies * len(self._ids) + rows))

    def save(self) -> None:
        """Write what was trained since the last time. Raises WriteError."""
        if not self._noted:
            return
        codes = torch.cat(self._noted).cpu().to(torch.float16).numpy().view(np.uint16)
        fresh = np.full(self._losses.size + 1, -1, np.int32)  # the last place is that of padding
        fresh[np.concatenate(self._places)] = codes
        self._noted, self._places = [], []
        fresh = self._ranks.highest(fresh)[:-1]
        if self._ranks.is_first:
            is_new = fresh >= 0
            self._losses.reshape(-1)[is_new] = fresh[is_new].astype(np.uint16).view(np.float16)
            write_atomically(self._path, as_npy(self._losses), durable=True)


class RecordedLosses:
    """Recorded losses of a training in epochs ``[first, end)``; None for the second half of those there are.

    ``run``: as ``LossRecorder`` describes it. ``transform``: a policy file. ``ids``: uint64 [N]. ``losses``: float16
    [epochs, copies, N], NaN for draws that were not trained on. ``conditions``: as of ``vg.Loader``. Raises ValueError.
    """

    def __init__(self, out: Path, epochs: tuple[int, int] | None = None) -> None:
        folder = out / REPORT_FOLDER
        files = sorted((folder / LOSSES_FOLDER).glob("[0-9]*.npy"))
        if not files:
            raise ValueError(f"run: got {out}, which has no losses; accepted: a folder of variegate train --report")
        first, end = int(files[0].stem), int(files[-1].stem) + 1
        if epochs is not None and not first <= epochs[0] < epochs[1] <= end:
            raise ValueError(f"epochs: got {epochs}; accepted: (first, end) within ({first}, {end})")
        self.epochs = first, end = epochs or (min((first + end) // 2, max(first, end - 2)), end)
        try:
            self.run: dict[str, Any] = json.loads((folder / RUN_NAME).read_bytes())
            self.ids: Ids = np.load(folder / LOSSES_FOLDER / IDS_NAME)
            parts = [np.load(one) for one in files if first <= int(one.stem) < end]
            self.losses: npt.NDArray[np.float16] = np.stack(parts)
        except (OSError, ValueError, EOFError) as error:
            raise ValueError(f"run: {folder}: is damaged ({error}); train again into another folder") from error
        check_pixel_version(str(folder), self.run["pixels"], ValueError)
        self.transform = folder / TRANSFORM_NAME
        self.conditions: Callable[[int], ConditionsOfIds] = (
            RecordedMagnitudes(out) if self.run["is_adapted"] else lambda epoch: lambda ids: {}
        )
