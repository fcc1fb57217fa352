"""A span of ``model.fit``: Keras' own loop and step, in which the graph itself times its waits for data."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import keras
import tensorflow as tf

from variegate.apps.train.study.measuring import LEAST_STEPS, Span, processor_seconds, settle

_ENDLESS = 10**9  # epochs; a span ends long before


@dataclass
class KerasFeed:
    """``data``: what ``fit`` is given. ``warm_up``: steps of a span before those that count. ``is_held``: devices keep
    the first batch, and every step takes that. ``left_out``: what of the training's augmentation it does not do.
    ``how``: how it was set up."""

    name: str
    data: Any
    warm_up: int = 1
    how: str = ""
    left_out: tuple[str, ...] = ()
    callbacks: tuple[Any, ...] = ()
    is_held: bool = False


class FitBench:
    """Times ``model.fit``. ``watching``: a context around what is timed of a feed."""

    def __init__(
        self,
        model: Any,
        watching: Callable[[str], AbstractContextManager[None]] = lambda name: nullcontext(),
        stop: Event | None = None,
    ) -> None:
        self._model, self._watching, self._stop = model, watching, stop
        self._stepped, self._fetch_and_step = _functions(model)

    def span(self, feed: KerasFeed, seconds: float) -> Span:
        """Steps of one ``fit``, at least three, after those that use up what is made before the first is asked for."""
        settle()
        step = self._held(feed) if feed.is_held else self._fetch_and_step
        timer = _Timer(step, seconds, feed.warm_up, self._stop)
        with ExitStack() as stack:
            timer.begins = lambda: stack.enter_context(self._watching(feed.name))
            timer.ends = stack.close
            # ``fit`` takes the function that is there, and else makes one of the same parts.
            self._model.train_function = timer.step
            callbacks = [*feed.callbacks, keras.callbacks.LambdaCallback(on_epoch_end=timer.on_epoch_end)]
            callbacks.append(_Stop(timer))
            self._model.fit(feed.data, epochs=_ENDLESS, shuffle=False, callbacks=callbacks, verbose=0)
        gc.collect(1)  # of the feed's iterator, which else makes batches while others are timed
        return timer.span()

    def _held(self, feed: KerasFeed) -> Callable[[Any], tuple[Any, Any, Any]]:
        data = next(iter(feed.data))
        images = sum(len(part) for part in self._model.distribute_strategy.experimental_local_results(data[1]))

        def step(iterator: Any) -> tuple[Any, Any, Any]:
            return self._stepped(data), 0.0, images

        return step


@dataclass
class _Timer:
    """Stands in for the model's ``train_function``; ``warm_up`` steps at first count nothing.

    The time between epochs, in which Keras opens the data anew, is time that the first step of an epoch waits.
    """

    fetch_and_step: Callable[[Any], tuple[Any, Any, Any]]
    seconds: float
    warm_up: int
    stop: Event | None = None
    begins: Callable[[], object] = lambda: None
    ends: Callable[[], object] = lambda: None
    is_over: bool = False
    _steps: list[tuple[float, Any, Any, float]] = field(default_factory=list)
    _seen: int = 0
    _begun: float = 0.0
    _last: float = 0.0
    _epoch_ended: float | None = None
    _span: Span = field(default_factory=Span)

    def step(self, iterator: Any) -> Any:
        now = time.perf_counter()
        between, self._epoch_ended = (now - self._epoch_ended if self._epoch_ended is not None else 0.0), None
        logs, waited, images = self.fetch_and_step(iterator)
        self._seen += 1
        if self._seen < self.warm_up:
            return logs
        if self._seen == self.warm_up:
            _wait_for(logs)
            self.begins()
            self._span.processor = processor_seconds()
            self._begun = self._last = time.perf_counter()
            return logs
        ended = time.perf_counter()
        self._steps.append((ended - self._last, waited, images, between))
        self._last = ended
        if len(self._steps) >= LEAST_STEPS and ended - self._begun >= self.seconds:
            _wait_for(logs)
            self._span.seconds = time.perf_counter() - self._begun
            self._span.processor = processor_seconds() - self._span.processor
            self.ends()
            self.is_over = True
        return logs

    def on_epoch_end(self, epoch: int, logs: Any) -> None:
        self._epoch_ended = time.perf_counter()

    def span(self) -> Span:
        for seconds, waited, images, between in self._steps:
            self._span.steps.append(seconds)
            self._span.waits.append(float(waited) + between)
            self._span.images += int(images)
        return self._span


class _Stop(keras.callbacks.Callback):
    def __init__(self, timer: _Timer) -> None:
        super().__init__()
        self._timer = timer

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        is_interrupted = self._timer.stop is not None and self._timer.stop.is_set()
        if self._timer.is_over or is_interrupted:
            self.model.stop_training = True
        if is_interrupted:
            raise KeyboardInterrupt


def _functions(model: Any) -> tuple[Any, Callable[[Any], tuple[Any, Any, Any]]]:
    """What Keras' own training function does in a step, of the same public parts: a step with a batch -> logs; and one
    with the iterator's next, with the clock read in the graph before and after that -> logs, seconds that were waited,
    images of all replicas."""
    strategy = model.distribute_strategy

    @tf.autograph.experimental.do_not_convert
    def stepped(data: Any) -> Any:
        logs = strategy.run(model.train_step, args=(data,))
        return {name: strategy.experimental_local_results(value)[0] for name, value in logs.items()}

    compiled = tf.function(stepped, reduce_retracing=True, jit_compile=model.jit_compile)

    @tf.autograph.experimental.do_not_convert
    def fetched(iterator: Any) -> tuple[Any, Any, Any]:
        asked = tf.timestamp()
        with tf.control_dependencies([asked]):
            data = iterator.get_next()
        parts = tf.nest.flatten(data, expand_composites=True)
        with tf.control_dependencies(parts):
            given = tf.timestamp()
        labels = strategy.experimental_local_results(data[1])
        images = tf.add_n([tf.shape(part)[0] for part in labels])
        with tf.control_dependencies([given]):
            return compiled(data), given - asked, images

    made: Any = tf.function(fetched, reduce_retracing=True)
    return compiled, made


def _wait_for(logs: Any) -> None:
    """Until devices have come so far: only then are their numbers there."""
    for value in tf.nest.flatten(logs):
        value.numpy()
