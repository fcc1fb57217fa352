"""``study``: one learner, its step, and all feeds that there are."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import torch

from variegate.apps.train.draws import seeded_weights
from variegate.apps.train.feed import Feed
from variegate.apps.train.learner import Learner
from variegate.apps.train.ranks import joined
from variegate.apps.train.study.dali_feed import DALI, open_dali
from variegate.apps.train.study.feeds import Fed, StudiedFeed, ours, synthetic
from variegate.apps.train.study.measuring import Bench, OnProgress, time_feeds
from variegate.apps.train.study.peers import MissingPeerError, reason
from variegate.apps.train.study.report import Study, study_of
from variegate.apps.train.study.torchvision_feed import TORCHVISION, open_torchvision
from variegate.apps.train.study.utilisation import Utilisation
from variegate.io.addresses import shown
from variegate.options.training import TrainOptions
from variegate.threads import default_threads

Opener = Callable[[Feed, str], StudiedFeed]
PEERS: dict[str, Opener] = {TORCHVISION: open_torchvision, DALI: open_dali}


def study(
    source: Any,
    options: TrainOptions | None = None,
    seconds: float = 10.0,
    *,
    on_progress: OnProgress | None = None,
    stop: Event | None = None,
) -> Study:
    """Time the step of ``train(source, options)`` with each feed for so many seconds. Nothing is learnt, and nothing
    written: weights stay what they were drawn as, at a learning rate of 0, so that all feeds meet the same.

    ``on_progress``: called before every span with what is timed, spans done, and of how many. ``stop``: ends it with
    KeyboardInterrupt. Raises SourceError, ModelError, PolicyError, ValueError naming an option.
    """
    # Where sizes grow, with the last, at which most of the time goes by.
    options = replace(options or TrainOptions(), progressive=None)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ValueError("study: got several processes (torchrun); accepted: one, on one device")
    for name, usual in (("adapt", "none"), ("adapt_from", None)):
        if (given := getattr(options, name)) != usual:
            raise ValueError(f"{name}: got {given!r} with a study, which learns nothing; accepted: {usual!r}")
    with ExitStack() as stack:
        ranks = stack.enter_context(joined(options.device, options.timeout))
        feed, device = Feed(source, None, options, ranks), ranks.device
        # First of all that starts threads: their workers are forked.
        peers, missing = _opened(feed, device)
        feeds = [synthetic(feed, device), ours(feed, device), *peers]
        for one in feeds:
            stack.callback(one.close)
        stack.enter_context(seeded_weights(options.seed))
        learner = Learner(feed.model, len(feed.classes), feed.channels, options, ranks)
        learner.rehearse(feed.size)
        learner.module.train()
        busy, is_cuda = Utilisation(device), device.startswith("cuda")
        wait = torch.cuda.synchronize if is_cuda else lambda: None
        bench = Bench(_step_of(learner, feed), options.accumulate, wait, watching=busy.watching)
        spans, failed = time_feeds(bench, feeds, seconds, on_progress, stop)
        described = {one.name: (one.how, one.left_out) for one in feeds}
        found = study_of(facts_of(source, feed, device, seconds), spans, described, {**missing, **failed}, busy.samples)
    notes = (*found.notes, *([busy.note] if busy.note else []))
    return Study(found.facts, found.feeds, found.missing, found.edges, notes)


def _opened(feed: Feed, device: str) -> tuple[list[StudiedFeed], dict[str, str]]:
    """-> the peers that there are, and why others are not."""
    opened, missing = [], {}
    for name, opener in PEERS.items():
        try:
            opened.append(opener(feed, device))
        except MissingPeerError as error:
            missing[name] = str(error)
        except Exception as error:  # a peer's own errors are of any type
            missing[name] = f"failed: {reason(error)}"
    return opened, missing


def _step_of(learner: Learner, feed: Feed) -> Callable[[Sequence[Fed]], None]:
    """As the trainer takes it."""
    images = feed.batch_size * feed.options.accumulate

    def step(parts: Sequence[Fed]) -> None:
        learner.begin_step(0)
        for number, part in enumerate(parts, start=1):
            with learner.replicas.communicates(number == len(parts)):
                learner.step.add_gradients(part.images, part.labels, images, part.weights)
        learner.end_step(1, 0.0)

    return step


def facts_of(source: Any, feed: Feed, device: str, seconds: float) -> dict[str, Any]:
    """What is trained, and on what."""
    options = feed.options
    facts: dict[str, Any] = {"source": feed.place if feed.place != "source" else shown(type(source).__name__)}
    facts |= {"model": feed.model, "size": list(feed.size), "channels": feed.channels, "classes": len(feed.classes)}
    facts |= {"batch_size": feed.batch_size, "accumulate": options.accumulate, "policy": options.policy}
    facts |= {"precision": options.precision, "device": device, "processor": processor_of(device)}
    facts |= {"cores": default_threads(), "torch_threads": torch.get_num_threads(), "torch": torch.__version__}
    return facts | {"seconds": seconds}


def processor_of(device: str) -> str:
    """Its name, as it gives it itself."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(torch.device(device))
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
