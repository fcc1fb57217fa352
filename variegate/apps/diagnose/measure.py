"""``measure``: the rates of a loader's stages on a user's own data, alone and together."""

from __future__ import annotations

import os
import statistics
from typing import Any

import numpy as np
import torch

import variegate
from variegate.apps.diagnose.measurements import Measurements
from variegate.apps.diagnose.recorder import OnProgress, Recorder
from variegate.apps.diagnose.session import Session
from variegate.checks import spelt
from variegate.decode.gpu import is_installed
from variegate.formats.base import Source, SourceError
from variegate.io.addresses import shown
from variegate.jobs.arguments import build_transform, parse_size
from variegate.loader import Loader
from variegate.loader.cache import available_memory
from variegate.ops.compose import Compose
from variegate.ops.output import Normalize
from variegate.options.measurement import MeasurementOptions
from variegate.threads import default_threads
from variegate.transforms import Transform

_BAD_SHOWN = 5


@spelt(MeasurementOptions)
def measure(
    source: Any,
    transform: Transform | None = None,
    *,
    alternatives: bool = False,
    on_progress: OnProgress | None = None,
    **chosen: Any,
) -> Measurements:
    """Rates of reading, decoding, augmenting and sending, each alone and with its neighbours, and of the loader.

    Args:
        source: as for ``Loader``.
        transform: as for ``Loader``; None for ``RandomResizedCrop(224)``, RandAugment and ``Normalize``.
        alternatives: measure as well what ``advise`` can tell more from: no policy, larger batches, reduced pictures.
        on_progress: called before every span of time with what is measured, spans done, and of how many.
        chosen: ``MeasurementOptions``, by their names: the loader's, and for how long and on what to measure.

    Bad samples are left out and counted. Raises SourceError where there is no good one, ValueError for arguments.
    """
    asked = MeasurementOptions(**chosen)
    transform = training_transform("randaugment", "224") if transform is None else transform
    names = ("batch_size", "device", "cache", "cache_side", "fast_decode", "index", "prefetch")
    options: dict[str, Any] = {name: getattr(asked, name) for name in names}
    options["num_threads"] = default_threads() if asked.threads is None else asked.threads
    # Samples are drawn as by a shuffled epoch, then taken in a cycle.
    options |= {"shuffle": False, "on_error": "skip", "rank": 0, "world_size": 1, "targets": False}
    # Made first: what is wrong with the arguments or the place is known before anything is read.
    loader = Loader(source, transform, **options)
    place = shown(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else type(source).__name__
    with Recorder(asked.seconds, on_progress) as recorder:
        session = Session(loader, transform, options, recorder)
        try:
            session.run(asked.limit, alternatives)
        except SourceError as error:
            raise SourceError(f"{place}: {error}") from None
        return _result(session, place)


def training_transform(policy: str, size: str) -> Transform:
    """``RandomResizedCrop(size)`` (none: whole images), the policy, ``Normalize``.

    Raises PolicyError or ValueError for a policy or size that is not known.
    """
    return Compose(
        [build_transform(policy, parse_size(size)), Normalize(variegate.IMAGENET_MEAN, variegate.IMAGENET_STD)]
    )


def _result(session: Session, place: str) -> Measurements:
    loader, chosen, source = session.loader, session.chosen, session.source
    samples = chosen.samples
    shapes = np.array([sample.shape for sample in samples], np.float64)
    cache = session.options["cache"]
    # As a loader's decode="auto" chooses.
    decodes_on_gpu = loader.cache is None and loader.device.startswith("cuda") and is_installed()
    return Measurements(
        source=place,
        samples=len(source) if isinstance(source, Source) else None,
        measured=len(samples),
        skipped=len(chosen.bad),
        bad=tuple(str(error) for error in chosen.bad[:_BAD_SHOWN]),
        mean_bytes=statistics.fmean(sample.nbytes for sample in samples),
        mean_height=float(shapes[:, 0].mean()),
        mean_width=float(shapes[:, 1].mean()),
        mean_pixel_bytes=float(shapes.prod(axis=1).mean()),
        is_remote=session.is_remote,
        has_a_file_each=session.has_files and all(sample.name.member is None for sample in samples),
        in_page_cache=chosen.in_page_cache,
        device=loader.device,
        gpus=torch.cuda.device_count() if torch.cuda.is_available() else 0,
        decoder="gpu" if decodes_on_gpu else "cpu",
        threads=loader.num_threads,
        cores=default_threads(),
        batch_size=loader.batch_size,
        prefetch=loader.prefetch,
        cache=None if cache is None else os.fspath(cache),
        available_memory=available_memory(),
        rates=session.recorder.rates,
        out_side=session.out_side,
        reduced_side=session.reduced_side,
        notes=(*source.notes(), *session.recorder.notes()),
    )
