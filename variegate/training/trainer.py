"""``train``: a classifier from any source, on one process or many, which goes on wherever it was stopped."""

from __future__ import annotations

import copy
import io
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any

import torch

from variegate.data.loader import Batch
from variegate.data.sources.base import SourceError
from variegate.options.training import FREE, FREE_ON_OTHER_RANKS, TrainOptions
from variegate.outside.durable import write_atomically
from variegate.program import rng
from variegate.sinks.lock import locked
from variegate.training.checkpoints import Checkpoints, ResumeError, Tensors
from variegate.training.classifier import TRAINING_DOMAIN, seeded_weights
from variegate.training.feed import Feed, labels_to
from variegate.training.log import Line, TrainingLog
from variegate.training.models import ModelError, build_model
from variegate.training.replicas import Ranks, average_over_ranks, floats_of, joined, replicas_of
from variegate.training.step import TrainingStep, in_channels_last, precision_of

LOG_NAME, SETTINGS_NAME, MODEL_NAME, CHECKPOINTS_NAME = "log.jsonl", "train.json", "model.pt", "checkpoints"
# Steps are told about so often, since their losses are waited for then.
_TELL_SECONDS, _MOST_UNTOLD = 1.0, 32


class DivergedError(RuntimeError):
    """The loss is no number any more."""


def train(
    source: Any,
    options: TrainOptions | None = None,
    *,
    validation: Any = None,
    tell: Callable[[Line], object] | None = None,
    stop: Event | None = None,
) -> Line:
    """Train, or go on with what is in ``options.out`` -> the last line of a step and of an evaluation, as one, and
    ``is_done``: False where ``stop`` was set before the end.

    ``source``: whatever ``vg.open_source`` takes; ``validation`` too, in the place of ``options.validation``. ``tell``
    is called with every line of the log, on rank 0. Under ``torchrun`` every process calls this.

    Raises SourceError for images that cannot be trained on, ModelError, ResumeError for a folder of another training,
    ValueError naming an option, DivergedError, RanksError, WriteError.
    """
    options = options or TrainOptions()
    others = options.validation if validation is None else validation
    with joined(options.device, options.timeout) as ranks:
        return Trainer(source, others, options, ranks, tell).run(stop or Event())


@dataclass
class _Untold:
    """Steps whose losses nobody has looked at."""

    lines: list[Line]
    losses: list[torch.Tensor]
    images: list[int]
    since: float


class Trainer:
    """One rank's part of a training. ``train`` says what it raises."""

    def __init__(
        self, source: Any, validation: Any, options: TrainOptions, ranks: Ranks, tell: Callable[[Line], object] | None
    ) -> None:
        self.options, self.ranks, self._tell = options, ranks, tell
        self.feed = feed = Feed(source, validation, options, ranks)
        with seeded_weights(options.seed):
            module = build_model(feed.model, len(feed.classes), feed.channels).to(ranks.device)
        if not any(weight.requires_grad for weight in module.parameters()):
            raise ModelError(f"model {feed.model}: has nothing to train; accepted: weights with requires_grad")
        self.module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        steps = 0 if feed.length is None else math.ceil(feed.length / self._step_images)
        self.replicas = replicas_of(self.module, ranks, options.period, round(options.warmup * steps))
        self._lr = torch.tensor(options.lr, device=ranks.device)
        self._optimizer = torch.optim.SGD(
            self.module.parameters(),
            lr=self._lr,
            momentum=options.momentum,
            weight_decay=options.weight_decay,
            nesterov=options.momentum > 0,
            fused=True,
        )
        kind, is_half = ranks.device.split(":")[0], options.precision == "float16"
        called: Any = torch.compile(self.replicas.model) if options.compile else self.replicas.model
        self._step = TrainingStep(
            feed.model,
            called,
            len(feed.classes),
            self._optimizer,
            options.precision,
            options.clip,
            options.label_smoothing,
            torch.amp.GradScaler(kind) if is_half else None,
        )
        self.average = _MovingAverage(self.module, options.ema) if options.ema else None
        self.checkpoints = Checkpoints(options.out / CHECKPOINTS_NAME, options.keep, ranks)
        self.steps, self._saved_at = 0, -1
        self._untold = _Untold([], [], [], time.perf_counter())

    @property
    def _step_images(self) -> int:
        """Of all ranks."""
        return self.feed.batch_size * self.options.accumulate * self.ranks.ranks

    # -- the run -------------------------------------------------------------------------------------------------------

    def run(self, stop: Event) -> Line:
        """As ``train`` does."""
        with ExitStack() as stack:
            if self.ranks.rank == 0:
                stack.enter_context(locked(self.options.out / ".train.lock", str(self.options.out)))
                _claim(self.options.out, self.describe())
                self.checkpoints.clear()
            self.ranks.sum_and_max([0.0], [0.0])  # nobody goes on before that
            self.module.train()
            self.replicas.rehearse(self._add_blank_gradients)
            end = self._resume()
            self.log = TrainingLog(self.options.out / LOG_NAME, end) if self.ranks.rank == 0 else None
            if self.log is not None:
                stack.enter_context(closing(self.log))
            stack.callback(self.checkpoints.wait)
            self._at = self.feed.train.state_dict()
            stack.enter_context(seeded_weights(self.options.seed))
            return self._run(stop)

    def _add_blank_gradients(self) -> None:
        images = torch.zeros(2, *self.feed.size, self.feed.channels, device=self.ranks.device)
        labels = torch.zeros(2, dtype=torch.int64, device=self.ranks.device)
        self._step.add_gradients(in_channels_last(images), labels, 2)

    def _run(self, stop: Event) -> Line:
        is_stopped = False
        for epoch in range(self.feed.train.epoch, self.options.epochs):
            self.feed.train.set_epoch(epoch)
            self.module.train()
            is_stopped = self._train_epoch(epoch, stop)
            if is_stopped:
                break
            busy = self._flush(stop)[1]
            self._evaluate(epoch)
            self._at = self.feed.train.state_dict()
            is_last = epoch + 1 == self.options.epochs
            if is_last or not busy:
                self._save()
        if not is_stopped:
            self._write_model()
        return {**(self.log.last if self.log is not None else {}), "is_done": not is_stopped}

    def _train_epoch(self, epoch: int, stop: Event) -> bool:
        """-> whether it was stopped."""
        every, parts = self.options.checkpoint_every, self._parts(epoch)
        while (line := self._take_step(epoch, parts)) is not None:
            self._untold.lines.append(line)
            is_due = every is not None and self.steps % every == 0
            if is_due or self._is_time_to_tell(stop):
                is_stopped, _ = self._flush(stop)
                if is_stopped or is_due:
                    self._save()
                if is_stopped:
                    return True
        return False

    def _take_step(self, epoch: int, parts: Iterator[tuple[Batch, float]]) -> Line | None:
        """One step -> its line without the loss; None where the epoch has come to its end."""
        begun, waited, total, size = time.perf_counter(), 0.0, None, self._step_images // self.ranks.ranks
        before = self._at["done"] if self._at["epoch"] == epoch else 0
        lr = self.options.lr_at(epoch + (before / self.feed.length if self.feed.length else 0.0))
        self._seed_layers()
        self._optimizer.zero_grad(set_to_none=True)
        for number in range(self.options.accumulate):
            if (part := next(parts, None)) is None:
                break
            (batch, labels), waiting = part
            waited += waiting
            weights = None
            if (padding := part[0].padding).any():
                weights = torch.from_numpy(~padding).to(self.ranks.device, torch.float32)
            is_last = number + 1 == self.options.accumulate or self._is_at_end()
            with self.replicas.communicates(is_last):
                images = in_channels_last(batch).to(self.ranks.device)
                added = self._step.add_gradients(images, labels_to(labels, self.ranks.device), size, weights)
            total = added if total is None else total + added
        if total is None:
            return None
        self._lr.fill_(lr)
        self._step.update()
        self.steps += 1
        self.replicas.after(self.steps)
        if self.average is not None:
            self.average.follow(self.module)
        seconds = time.perf_counter() - begun
        images_done = self._at["done"] - before
        self._untold.losses.append(total)
        self._untold.images.append(images_done)
        rate, share = images_done / seconds, waited / seconds
        told = {"lr": lr, "images_per_second": round(rate, 1), "waiting": round(share, 4)}
        return {"epoch": epoch, "step": self.steps, "loss": math.nan, **told}

    def _parts(self, epoch: int) -> Iterator[tuple[Batch, float]]:
        """Batches, each with the seconds that it was waited for."""
        batches = iter(self.feed.train)
        while True:
            begun = time.perf_counter()
            if (batch := next(batches, None)) is None:
                return
            if not isinstance(batch.images, torch.Tensor):
                raise SourceError("the images have several sizes, or views; give one size that all are cut to (--size)")
            self._at = self.feed.train.state_dict()  # of a loader that is asked once more, it is the next epoch
            yield batch, time.perf_counter() - begun

    def _is_at_end(self) -> bool:
        """Whether the batch in hand may be the last of the epoch."""
        return self.feed.length is None or self._at["done"] >= self.feed.length

    def _seed_layers(self) -> None:
        """What layers draw in a step is a function of the seed, the step and the rank: nothing that a checkpoint could
        forget."""
        words = rng.stream_key(self.options.seed, self.steps, self.ranks.rank, TRAINING_DOMAIN)
        seed = int(words[0]) << 32 | int(words[1])
        torch.default_generator.manual_seed(seed)
        if self.ranks.device.startswith("cuda"):
            torch.cuda.default_generators[torch.device(self.ranks.device).index or 0].manual_seed(seed)

    # -- what is told --------------------------------------------------------------------------------------------------

    def _is_time_to_tell(self, stop: Event) -> bool:
        """The same on all ranks: alone, by the clock; else by a number of steps that all agreed on."""
        if self.ranks.ranks == 1:
            return stop.is_set() or time.perf_counter() - self._untold.since > _TELL_SECONDS
        return len(self._untold.lines) >= self._told_every

    _told_every = 1

    def _flush(self, stop: Event) -> tuple[bool, bool]:
        """Look at the losses since the last time, of all ranks, and log them -> whether to stop, and whether a
        checkpoint is still being written. Raises DivergedError."""
        untold, steps = self._untold, len(self._untold.lines)
        local = torch.stack(untold.losses).double().cpu().tolist() if steps else []
        seconds = time.perf_counter() - untold.since
        flags = [seconds, float(stop.is_set()), float(self.checkpoints.is_busy)]
        sums, (slowest, is_stopped, is_busy) = self.ranks.sum_and_max(local, flags)
        self._told_every = max(1, min(_MOST_UNTOLD, int(steps * _TELL_SECONDS / max(slowest, 1e-9))))
        lines = [
            {**line, "loss": total / images}
            for line, total, images in zip(untold.lines, sums, untold.images, strict=True)
        ]
        self._untold = _Untold([], [], [], time.perf_counter())
        for number, line in enumerate(lines):
            if not math.isfinite(line["loss"]):
                self._log(lines[:number])
                raise DivergedError(
                    f"the loss is {line['loss']} in step {line['step']} (epoch {line['epoch']}): the training has "
                    f"diverged; a lower --lr (it is {self.options.lr:g}), a longer --warmup or a smaller --clip may "
                    "help, with another folder as --out"
                )
        self._log(lines)
        return bool(is_stopped), bool(is_busy)

    def _log(self, lines: list[Line]) -> None:
        if self.log is not None:
            self.log.append(lines)
            for line in lines if self._tell is not None else []:
                self._tell(line)  # type: ignore[misc]

    @torch.no_grad()
    def _evaluate(self, epoch: int) -> None:
        self._settle()
        if self.feed.scored is None:
            return
        scored = self.module if self.average is None else self.average.module
        scored.eval()
        counts = torch.zeros(3, dtype=torch.float64, device=self.ranks.device)
        for batch in self.feed.scored:
            good = torch.from_numpy(~batch.padding).to(self.ranks.device)
            if not isinstance(batch.images, torch.Tensor):
                raise SourceError("the images that score have several sizes; give one that all are cut to (--size)")
            labels = labels_to(batch.labels, self.ranks.device)
            with precision_of(self.ranks.device, self.options.precision):
                scores = scored(in_channels_last(batch.images))
            best = scores.float().topk(min(5, scores.shape[1]), 1).indices == labels[:, None]
            right = torch.stack([best[:, 0], best.any(1), torch.ones_like(good)]) & good
            counts += right.sum(1)
        one, five, total = self.ranks.sum_and_max(counts.tolist(), [0.0])[0]
        if total:
            self._log([{"epoch": epoch, "top1": one / total, "top5": five / total}])

    def _settle(self) -> None:
        """All ranks have the same weights, and the same averages of them."""
        self.replicas.settle()
        if self.average is not None:
            self.average.settle(self.module, not self.replicas.is_alike)

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """All that decides what the weights become, as JSON reads it."""
        decided = {name: value for name, value in asdict(self.options).items() if name not in {*FREE, "validation"}}
        decided |= {"model": self.feed.model, "batch_size": self.feed.batch_size, "size": list(self.feed.size)}
        source = {"source": self.feed.source.fingerprint, "classes": len(self.feed.classes)}
        return {**source, **decided, "ranks": self.ranks.ranks}

    def _save(self) -> None:
        if self._saved_at == self.steps:
            return
        self._saved_at = self.steps
        if self.replicas.is_alike:
            self._settle()
        facts = {"loader": self._at, "log": 0 if self.log is None else self.log.end}
        self.checkpoints.save(self.steps, self._tensors(), {**facts, "run": self.describe()}, self.replicas.is_alike)

    def _tensors(self) -> Tensors:
        found = {f"model/{name}": tensor for name, tensor in self.module.state_dict().items()}
        for name, weight in self.module.named_parameters():
            kept = self._optimizer.state.get(weight, {})
            found |= {f"optimizer/{key}/{name}": one for key, one in kept.items() if isinstance(one, torch.Tensor)}
        if self.average is not None:
            found |= {f"ema/{name}": tensor for name, tensor in self.average.module.state_dict().items()}
        if self._step.scaler is not None:
            scaler = self._step.scaler.state_dict()
            found |= {f"scaler/{name}": torch.tensor(float(value)) for name, value in scaler.items()}
        return found | {f"between/{name}": tensor for name, tensor in self.replicas.state().items()}

    def _resume(self) -> int:
        """Go on from the latest checkpoint -> how much of the log it knows of. Raises ResumeError."""
        saved = self.checkpoints.load()
        if saved is None:
            return 0
        facts, tensors = saved
        _check_same(self.options.out, facts["run"], self.describe())
        parts: dict[str, Tensors] = {}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts.setdefault(part, {})[rest] = tensor
        try:
            self.module.load_state_dict(parts["model"])
            if self.average is not None:
                self.average.module.load_state_dict(parts["ema"])
        except (RuntimeError, LookupError) as error:
            said = str(error).strip().splitlines()[0].rstrip(":. ")
            raise ResumeError(f"{self.options.out}: its weights are not those of {self.feed.model} ({said})") from error
        weights = dict(self.module.named_parameters())
        for name, tensor in parts.get("optimizer", {}).items():
            key, _, owner = name.partition("/")
            # In the layout of the weight, as the optimiser has made it.
            self._optimizer.state[weights[owner]][key] = tensor.to(weights[owner].device).clone(
                memory_format=torch.channels_last if tensor.dim() == 4 else torch.preserve_format
            )
        if self._step.scaler is not None:
            loaded = {name: tensor.item() for name, tensor in parts["scaler"].items()}
            counts = {
                name: int(value) for name, value in loaded.items() if name in ("growth_interval", "_growth_tracker")
            }
            self._step.scaler.load_state_dict({**loaded, **counts})
        self.steps = self._saved_at = facts["step"]
        self.replicas.load_state(parts.get("between", {}), self.steps)
        self.feed.train.load_state_dict(facts["loader"])
        return int(facts["log"])

    def _write_model(self) -> None:
        """``model.pt``, for use elsewhere: torch.load(..., weights_only=True)."""
        if self.ranks.rank == 0:
            model = self.module if self.average is None else self.average.module
            weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
            buffer = io.BytesIO()
            torch.save({"model": self.feed.model, "classes": list(self.feed.classes), "weights": weights}, buffer)
            write_atomically(self.options.out / MODEL_NAME, buffer.getvalue(), durable=True)


class _MovingAverage:
    """A model whose weights follow another's slowly."""

    def __init__(self, module: torch.nn.Module, decay: float) -> None:
        self.module, self._decay = copy.deepcopy(module).eval(), decay
        self.module.requires_grad_(False)

    @torch.no_grad()
    def follow(self, module: torch.nn.Module) -> None:
        for mine, new in zip(self.module.parameters(), module.parameters(), strict=True):
            mine.lerp_(new, 1 - self._decay)

    @torch.no_grad()
    def settle(self, module: torch.nn.Module, is_between_ranks: bool) -> None:
        """Take over what is no weight, such as statistics."""
        for mine, new in zip(self.module.buffers(), module.buffers(), strict=True):
            mine.copy_(new)
        if is_between_ranks:
            average_over_ranks(floats_of(self.module.parameters()))


def _claim(folder: Path, mine: dict[str, Any]) -> None:
    """Make the folder this training's. Raises ResumeError where it is another's."""
    path = folder / SETTINGS_NAME
    if not path.exists():
        others = [one.name for one in folder.glob("[!.]*")]
        if others:
            raise ResumeError(f"{folder}: holds files of something else ({min(others)}); choose an empty folder")
        write_atomically(path, (json.dumps(mine, indent=2) + "\n").encode(), durable=True)
        return
    try:
        _check_same(folder, dict(json.loads(path.read_text(encoding="utf-8"))), mine)
    except (TypeError, ValueError) as error:
        if isinstance(error, ResumeError):
            raise
        raise ResumeError(f"{path}: is no JSON ({error}); restore it, or choose another folder") from error


def _check_same(folder: Path, theirs: dict[str, Any], mine: dict[str, Any]) -> None:
    """Raises ResumeError naming the first option that differs."""
    free = {"ranks"} | (FREE_ON_OTHER_RANKS if theirs.get("ranks") != mine["ranks"] else set())
    for name, value in json.loads(json.dumps(mine)).items():
        if name not in free and theirs.get(name) != value:
            typed = name if name in ("source", "classes") else f"--{name.replace('_', '-')}"
            raise ResumeError(
                f"{folder}: holds a training with {typed} {theirs.get(name)!r}, this one has {value!r}; go on with "
                "that, or choose another folder"
            )
