"""``train``: train a classifier from any source, on one process or many; it resumes from its last checkpoint."""

from __future__ import annotations

import math
import os
from contextlib import ExitStack, closing
from threading import Event
from typing import Any

import torch

from variegate.checks import integer
from variegate.events import Note, OnEvent, ignore_event
from variegate.jobs.output.run_folder import locked
from variegate.learn.averaging import DistContext, joined
from variegate.learn.checkpoints import (
    CHECKPOINTS_NAME,
    LOCK_NAME,
    LOG_NAME,
    Checkpoints,
    check_out,
    check_ranks,
    check_same,
    claim,
    describe,
    with_choices_of_run,
)
from variegate.learn.events import Chosen
from variegate.learn.feed import DataPipeline
from variegate.learn.fit import Fit, StepResult
from variegate.learn.model_file import write_model
from variegate.learn.models import seeded_weights
from variegate.learn.progress import EVENTS_FOLDER, Line, StepLines, TrainingEvents, TrainingLog, check_events
from variegate.learn.step import Tensors
from variegate.options.training import TrainOptions


def train(
    source: Any,
    options: TrainOptions | None = None,
    *,
    validation: Any = None,
    on_event: OnEvent = ignore_event,
    stop: Event | None = None,
) -> Line:
    """Train or resume -> the last log lines of a step and of an evaluation, merged. ``is_done``: False if ``stop`` was
    set before the end; ``unread``: unreadable images of this rank, with reasons.

    ``source``: a source for ``vg.open_source``; ``validation``: another source, overriding ``options.validation``. On
    rank 0 ``on_event`` is called with events, one at a time: ``Chosen`` lines about the network, the image size, the
    batch size and the learning rate, a ``Logged`` per line of the log, and an ``EpochEnded``. Under ``torchrun`` every
    process calls this.

    Raises SourceError for images that cannot be trained on, ModelError, ResumeError for a folder of another training,
    ValueError naming an option, DivergedError, DistError, WriteError, ImportError.
    """
    options = options or TrainOptions()
    if options.tensorboard:
        check_events()
    others = options.validation if validation is None else validation
    with joined(options.devices) as ranks:
        return Trainer(source, others, options, ranks, on_event).run(stop or Event())


class Trainer:
    """One rank of a training. For errors see ``train``."""

    def __init__(
        self, source: Any, validation: Any, options: TrainOptions, ranks: DistContext, on_event: OnEvent = ignore_event
    ) -> None:
        self._on_event = on_event
        self._notes = notes_on(options)
        options = with_choices_of_run(options, ranks.ranks)
        self.ranks = ranks
        self.feed = feed = DataPipeline(source, validation, options, ranks)
        self.options = options = feed.options
        check_ranks(ranks.gather(describe(feed, ranks.ranks)))
        self._rank_images = feed.batch_size * options.accumulate  # in a step
        steps = math.ceil(feed.length / (self._rank_images * ranks.ranks))
        warmup = round(options.warmup * steps)
        self.adaptation = feed.adaptation
        self.fit = Fit(
            feed.model,
            len(feed.classes),
            feed.channels,
            options,
            options.seed,
            ranks,
            feed.adaptation,
            warmup=warmup,
            is_alone=True,
        )
        self.checkpoints = Checkpoints(options.out / CHECKPOINTS_NAME, ranks)
        self.lines = StepLines(ranks, feed.adaptation, options.lr, options.num_epochs, on_event)
        self._saved_at = -1

    def run(self, stop: Event) -> Line:
        """See ``train``."""
        out = self.options.out
        is_first = self.ranks.is_first
        with ExitStack() as stack, closing(self.checkpoints):
            if is_first:
                check_out(out)
                stack.enter_context(locked(out / LOCK_NAME, str(out)))
                claim(out, describe(self.feed, self.ranks.ranks))
                self.checkpoints.clear()
            self.ranks.sum_and_max([0.0], [0.0])  # before that, no rank continues
            stack.enter_context(seeded_weights(self.options.seed))
            self.fit.warm_up_backward(self.feed.size)
            end = self.checkpoints.load(self._take)  # bytes of the log at the checkpoint
            if end is not None:
                self.checkpoints.drop_old()
            else:
                self.fit.initialize(self.feed.plain_images)
            if is_first:
                self.lines.log = stack.enter_context(closing(TrainingLog(out / LOG_NAME, end or 0)))
            if is_first and self.options.tensorboard:
                events = stack.enter_context(closing(TrainingEvents(out / EVENTS_FOLDER, self.fit.steps)))
                self.lines.views.insert(0, events)
            if is_first:  # now that nothing can be refused any more
                for text in self._notes:
                    self._on_event(Note(text))
                for line in (*self.feed.choice.reasons, self._batch_and_rate()):
                    self._on_event(Chosen(line))
            self._at = self.feed.train.state_dict()
            is_done = self._run_epochs(stop)
            if is_done and self.lines.log is not None:
                self.lines.log.check()
                write_model(out, self.feed, self.fit.weights())
            last = self.lines.log.last if self.lines.log is not None else {}
            return {**last, "is_done": is_done, "unread": [str(one) for one in self.feed.unread()]}

    def _batch_and_rate(self) -> str:
        """The total batch size and the learning rate, in a line."""
        options = self.options
        ranks = self.ranks.ranks
        text = f"total batch size {self._rank_images * ranks:,}"
        factors = [f"{self.feed.batch_size:,} per rank"]
        if ranks > 1:
            factors.append(f"{ranks} ranks")
        if options.accumulate > 1:
            factors.append(f"{options.accumulate} accumulated")
        if len(factors) > 1:
            text += f" = {' x '.join(factors)}"
        return f"{text}; learning rate {options.lr:g}"

    def _take(self, facts: dict[str, Any], tensors: Tensors) -> int:
        check_same(self.options.out, dict(facts["run"]), describe(self.feed, self.ranks.ranks))
        self._saved_at = integer("step", facts["step"], 0)
        self.fit.load(tensors, self._saved_at)
        self.adaptation.load(tensors)
        self.feed.train.load_state_dict(facts["loader"])
        return integer("log", facts["log"], 0)

    def _save(self) -> None:
        if self._saved_at == self.fit.steps:
            return
        self._saved_at = self.fit.steps
        is_alike = self.fit.replicas.is_alike
        if is_alike:
            self.fit.synchronize()
        facts = {"loader": self._at, "log": 0 if self.lines.log is None else self.lines.log.end}
        facts["run"] = describe(self.feed, self.ranks.ranks)
        self.adaptation.synchronize(self.ranks.highest)
        self.checkpoints.save(self.fit.steps, self.fit.tensors() | self.adaptation.tensors(), facts, is_alike)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _run_epochs(self, stop: Event) -> bool:
        """Returns False if ``stop`` ended it."""
        for epoch in range(self.feed.train.epoch, self.options.num_epochs):
            self.feed.train.set_epoch(epoch)
            if self.ranks.is_first:
                self.adaptation.record(self.options.out, epoch)
            if not self._train_epoch(epoch, stop):
                return False
            is_stopped, is_busy = self.lines.flush(stop, self.checkpoints.is_busy)
            self._evaluate(epoch)
            self._at = self.feed.train.state_dict()
            is_last = epoch + 1 == self.options.num_epochs
            if is_last or is_stopped or not is_busy:
                self._save()
            if is_stopped and not is_last:
                return False
        return True

    def _train_epoch(self, epoch: int, stop: Event) -> bool:
        """Returns False if ``stop`` ended it."""
        every = self.options.checkpoint_every
        for result in self.fit.run_epoch(self.feed.train, epoch):
            self._log(epoch, result)
            is_due = every is not None and self.fit.steps % every == 0
            if not is_due and not self.lines.should_flush(stop):
                continue
            is_stopped, _ = self.lines.flush(stop, self.checkpoints.is_busy)
            if is_stopped or is_due:
                self._at = self.feed.train.state_dict()
                self._save()
            if is_stopped:
                return False
        return True

    def _log(self, epoch: int, result: StepResult) -> None:
        line: Line = {"epoch": epoch, "step": self.fit.steps, "loss": math.nan, "lr": result.lr}
        line["images_per_second"] = round(result.images / result.seconds, 1)
        line["waiting"] = round(result.waited / result.seconds, 4)
        self.lines.add(line, result.loss, result.images)

    def _evaluate(self, epoch: int) -> None:
        self.fit.synchronize()
        self.adaptation.synchronize(self.ranks.highest)
        scores = {} if self.feed.scored is None else self.fit.score(self.feed.scored)
        self.adaptation.end_epoch()
        self.lines.end_epoch(epoch, scores)


def notes_on(options: TrainOptions) -> list[str]:
    """Notes about the policy, and about options without an effect; a line each."""
    notes = []
    if options.policy is None:
        notes.append(_policy_note(options))
    on_cpu = options.devices.startswith("cpu") or not torch.cuda.is_available()
    precision = options.precision
    if on_cpu and precision != "float32" and not _has_half(precision):
        notes.append(f"this processor has no {precision} arithmetic; --precision float32 is faster here")
    if options.averaging != "sync" and os.environ.get("WORLD_SIZE", "1") == "1":
        notes.append("--averaging has no effect on one process; start several with torchrun")
    return notes


def _policy_note(options: TrainOptions) -> str:
    if options.row.policy is not None:
        return f"--policy is not given: {options.policy_name}, whose magnitudes adapt"
    return (
        f"--policy is not given: {options.policy_name} alone, which moves images and never mirrors them. If a mirrored "
        "image has the same class: --policy flip+crop. To find a policy for the data: variegate search SRC"
    )


def _has_half(precision: str) -> bool:
    """True if the processor has arithmetic of this precision, as far as torch knows."""
    names = {"bfloat16": ["_is_avx512_bf16_supported", "_is_amx_tile_supported"], "float16": ["_is_amx_fp16_supported"]}
    checks = [getattr(torch.cpu, name, None) for name in names[precision]]
    return any(check() for check in checks if check is not None)
