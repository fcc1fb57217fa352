"""Study of whether data limit a training: its step, timed with one feed after another."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import torch

from variegate.apps.train.feed import Feed, labels_to
from variegate.apps.train.learner import Learner, images_of
from variegate.apps.train.models import seeded_weights
from variegate.apps.train.ranks import joined
from variegate.apps.train.step import in_channels_last
from variegate.apps.train.study import timing
from variegate.apps.train.study.peers import PEERS
from variegate.apps.train.study.report import Study, study_of
from variegate.apps.train.study.timing import Fed, StudiedFeed
from variegate.io.addresses import shown
from variegate.options.training import TrainOptions
from variegate.threads import default_threads

__all__ = ["Study", "study"]


def study(
    source: Any,
    options: TrainOptions | None = None,
    seconds: float = 10.0,
    *,
    on_progress: timing.OnProgress | None = None,
    stop: Event | None = None,
) -> Study:
    """Time the step of ``train(source, options)`` with each feed for so many seconds, at a learning rate of 0; nothing
    is written.

    ``on_progress``: called before every span with the feed that is timed, spans done, and of how many. ``stop``: ends
    it with KeyboardInterrupt. Raises SourceError, ModelError, PolicyError, ValueError naming an option.
    """
    # Where sizes grow, with the last, at which most of the time goes by.
    options = replace(options or TrainOptions(), progressive=None)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("study: got several processes (torchrun); accepted: one, on one device")
    for name, usual in (("adapt", "none"), ("adapt_from", None)):
        if (value := getattr(options, name)) != usual:
            raise ValueError(f"{name}: got {value!r} with a study, which learns nothing; accepted: {usual!r}")
    with ExitStack() as stack:
        ranks = stack.enter_context(joined(options.device, options.timeout))
        feed, device = Feed(source, None, options, ranks), ranks.device
        # First of all that starts threads: their workers are forked.
        peers, missing = timing.opened({name: partial(opener, feed, device) for name, opener in PEERS.items()})
        feeds = [synthetic(feed, device), ours(feed, device), *peers]
        for one in feeds:
            stack.callback(one.batches.close)
        stack.enter_context(seeded_weights(options.seed))
        learner = Learner(feed.model, len(feed.classes), feed.channels, options, ranks)
        learner.rehearse(feed.size)
        learner.module.train()

        def step(parts: Sequence[Fed]) -> None:  # as the trainer takes it
            learner.begin_step(0)
            for number, part in enumerate(parts, start=1):
                with learner.replicas.communicates(number == len(parts)):
                    images = feed.batch_size * options.accumulate
                    learner.step.add_gradients(part.images, part.labels, images, part.weights)
            learner.end_step(1, 0.0)

        busy, wait = timing.Utilisation(device), torch.cuda.synchronize if device.startswith("cuda") else lambda: None
        bench = timing.Bench(step, options.accumulate, wait, watching=busy.watching)
        spans, failed = timing.time_feeds(bench, feeds, seconds, on_progress, stop)
    described = {one.name: (one.how, one.left_out) for one in feeds}
    found = study_of(facts_of(source, feed, device, seconds), spans, described, missing | failed, busy.samples)
    return replace(found, notes=(*found.notes, *([busy.note] if busy.note else [])))


def synthetic(feed: Feed, device: str) -> StudiedFeed:
    generator = torch.Generator().manual_seed(feed.options.seed)
    images = torch.randn(feed.batch_size, *feed.size, feed.channels, generator=generator)
    labels = torch.randint(len(feed.classes), (feed.batch_size,), generator=generator)
    fed = Fed(in_channels_last(images).to(device), labels.to(device), feed.batch_size)

    def batches() -> Iterator[Fed]:
        while True:
            yield fed

    return StudiedFeed(timing.CEILING, batches(), how="one batch of random numbers, again and again")


def ours(feed: Feed, device: str) -> StudiedFeed:
    """Variegate's loader, as ``train`` feeds its steps."""
    loader = feed.train

    def batches() -> Iterator[Fed]:
        epoch = 0
        while True:
            loader.set_epoch(epoch % feed.options.epochs)
            for batch in loader:
                weights, number = None, len(batch.ids)
                if batch.padding.any():
                    weights = torch.from_numpy(~batch.padding).to(device, torch.float32)
                    number -= int(batch.padding.sum())
                yield Fed(images_of(batch, device), labels_to(batch.labels, device), number, weights)
            epoch += 1

    how = f"{loader.num_threads} threads, {loader.prefetch} batches ahead"
    return StudiedFeed(timing.OURS, batches(), loader.prefetch + 1, how)


def facts_of(source: Any, feed: Feed, device: str, seconds: float) -> dict[str, Any]:
    """The training that is studied, and the machine."""
    options, processor, known = feed.options, "", Path("/proc/cpuinfo")
    if device.startswith("cuda"):
        processor = torch.cuda.get_device_name(torch.device(device))
    elif known.exists():
        lines = known.read_text(encoding="utf-8", errors="replace").splitlines()
        processor = next((one.partition(":")[2].strip() for one in lines if one.startswith("model name")), "")
    processor = processor or platform.processor() or platform.machine()
    place = feed.place if feed.place != "source" else shown(type(source).__name__)
    return {
        **{"source": place, "model": feed.model, "size": list(feed.size), "channels": feed.channels},
        **{"classes": len(feed.classes), "batch_size": feed.batch_size},
        **{name: getattr(options, name) for name in ("accumulate", "policy", "precision")},
        **{"device": device, "processor": processor, "cores": default_threads()},
        **{"torch_threads": torch.get_num_threads(), "torch": torch.__version__, "seconds": seconds},
    }
