"""One call of a pipeline: run its function for each row of a batch."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from variegate.arrays import UInt32Array, UInt64Array
from variegate.errors import short_repr
from variegate.ops.arguments import ArgumentError
from variegate.ops.base import Transform
from variegate.ops.compose import IMAGE_VALUES
from variegate.pipelines.image import MAX_STEPS, PipelineError, PipelineImage, refuse
from variegate.pipelines.sites import chain_of, frames_below, is_users, slot_of
from variegate.program import rng
from variegate.program.boxes import SampledBoxes
from variegate.program.program import MAX_SIDE, Output
from variegate.program.sampling import Rows, Sampling, after_blend, after_mixer
from variegate.program.table_builder import TableBuilder

# Blocks of random numbers that are kept for a batch, in all.
_MAX_BLOCKS = 1 << 16
# Slots of a pipeline whose numbers are drawn before its function asks for them.
_MOST_SLOTS = 64
_NO_SLOTS: tuple[tuple[int, ...], UInt32Array] = (), np.empty(0, np.uint32)


class Samples(NamedTuple):
    """Rows that a pipeline runs for, and what decides about their draws."""

    ids: UInt64Array  # of each row
    keys: UInt32Array  # [rows, 2], of the stream
    shapes: list[tuple[int, int, int]]  # height, width and channels each
    epoch: int
    output: Output
    rows: Rows  # of the batch
    sources: Any  # the image of each row
    given: Mapping[str, Any]  # values of each image of the batch


class Run:
    """One call of ``pipeline`` on a batch. ``slot``: the pipeline's own.

    ``batch`` holds their instructions; a function that makes one: it is needed only for transforms that draw for
    batches alone.
    """

    def __init__(self, pipeline: Any, samples: Samples, slot: int, batch: Sampling | Callable[[], Sampling]) -> None:
        self.pipeline, self.samples = pipeline, samples
        self.number, self.row = len(samples.ids), 0
        self._slot, self._batch = slot, batch
        self.tables = TableBuilder()
        self.max_side = MAX_SIDE
        if isinstance(batch, Sampling):
            self.tables, self.max_side = batch, batch.max_side
        self._given: dict[str, list[Any]] = {}
        self._in_order = [self.given(name) for name in pipeline.in_order]
        self._by_name = {name: self.given(name) for name in pipeline.by_name}
        self._constants = pipeline.given_constants
        self._known_tables: dict[tuple[str, str, bytes], int] = {}
        # Draws of each call for the current sample, and the words of each slot for all samples.
        self._visits: dict[str, int] = {}
        slots, memory = pipeline.slots.get(slot, _NO_SLOTS)
        self._words = dict(zip(slots, self._read(memory), strict=True)) if slots else {}
        self._refusal: PipelineError | None = None

    @property
    def sampling(self) -> Sampling:
        """The batch of the samples."""
        if not isinstance(self._batch, Sampling):
            self._batch = self._batch()
            self._batch.adopt_tables(self.tables)
        return self._batch

    @property
    def num_channels(self) -> int:
        return self.tables.num_channels

    def table(self, name: str, values: npt.ArrayLike) -> int:
        """The first index of ``values`` in the side table of this name: transforms have the same for every sample."""
        array = np.asarray(values)
        key = name, array.dtype.str, array.tobytes()
        known = self._known_tables.get(key)
        if known is None:
            known = self._known_tables[key] = self.tables.add(name, array)
        return known

    def given(self, name: str) -> list[Any]:
        """Values of the rows: of their images as they came, or given with the batch."""
        if name not in self._given:
            self._given[name] = self._values(name)
        return self._given[name]

    def _values(self, name: str) -> list[Any]:
        samples = self.samples
        if name == "epoch":
            return [samples.epoch] * self.number
        if name in IMAGE_VALUES:
            return [IMAGE_VALUES[name](*shape) for shape in samples.shapes]
        if name not in samples.given:
            listed = ", ".join(map(repr, samples.given)) or "nothing"
            accepted = f'conditions={{"{name}": values}}, one value per image; given with this batch: {listed}'
            raise ArgumentError(self.pipeline, name, None, accepted)
        values: list[Any] = np.asarray(samples.given[name])[samples.sources].tolist()
        return values

    # -- draws -------------------------------------------------------------------------------------------------

    def draw(self, frame: types.FrameType) -> list[int]:
        """The four words of the next draw at the site of ``frame``, which is the user's."""
        return self.words(self._next_slot(frame))

    def words(self, slot: int) -> list[int]:
        """Four random words of 32 bits of the current row."""
        known = self._words.get(slot)
        if known is None:
            memory = np.array([slot], np.uint32)
            if len(self._words) * self.number >= _MAX_BLOCKS:
                # Few of the others may ever come here.
                return self._read(memory, slice(self.row, self.row + 1))[0][0]
            known = self._words[slot] = self._read(memory)[0]
            self._expect(slot)
        return known[self.row]

    def _read(self, slots: UInt32Array, rows: slice = slice(None)) -> list[list[list[int]]]:
        """Words of slots, by slot and row."""
        samples = self.samples
        words = rng.words_of_slots(samples.ids[rows], samples.keys[rows], slots)
        by_slot: list[list[list[int]]] = words.swapaxes(0, 1).tolist()
        return by_slot

    def _expect(self, slot: int) -> None:
        """From the next call on, draw the random words of this slot together with other slots."""
        slots, _ = self.pipeline.slots.get(self._slot, _NO_SLOTS)
        if len(slots) < _MOST_SLOTS and slot not in slots:  # as another thread may have added it
            slots = (*slots, slot)
            self.pipeline.slots[self._slot] = slots, np.array(slots, np.uint32)

    def slot_of_call(self) -> int:
        """The slot of the next draw at the call that the user's function is in."""
        frame = sys._getframe(1)
        while not is_users(frame.f_code):
            assert frame.f_back is not None
            frame = frame.f_back
        return self._next_slot(frame)

    def _next_slot(self, frame: types.FrameType) -> int:
        key: Any = frame.f_lasti
        caller = frame.f_back
        if caller is None or caller.f_code is not _ROOT:
            key = _key_of(frame)
        known = self.pipeline.chains.get(key)
        # A call has several offsets, as Python adapts its bytecode, and one chain.
        chain = self._chain(key, frame) if known is None else known[0]
        visit = self._visits.get(chain, 0)
        self._visits[chain] = visit + 1
        if visit >= MAX_STEPS:
            self.refuse(f"more than {MAX_STEPS:,} draws of one call", "loops that end")
        return slot_of(chain, visit, self._slot)

    def _chain(self, key: Any, frame: types.FrameType) -> str:
        chains: dict[Any, tuple[str, Any]] = self.pipeline.chains
        if len(chains) >= MAX_STEPS:
            chains.clear()
        frames = list(frames_below(frame, _ROOT))
        users = [(f.f_code, f.f_lasti) for f in frames if is_users(f.f_code)]
        chain = chain_of(users[::-1])
        chains[key] = chain, [f.f_code for f in frames]  # whose ids are in the key
        return chain

    # -- operations --------------------------------------------------------------------------------------------

    def check_call(self, transform: Transform, others: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Refuse transforms that do not work inside a pipeline."""
        name = type(transform).__name__
        if others or named:
            refuse(f"{name}: got {len(others) + len(named)} arguments besides the image", "one image of a pipeline")
        if transform._mixers or transform._must_be_root or transform._object_labels:
            self.refuse(f"{name} within a function of a pipeline", f"T.Compose with the pipeline and {name}")

    def batch_of(self, row: int) -> Sampling:
        """The row and its instructions before the pipeline, as a batch."""
        return self.sampling.of_rows(self.samples.rows[row : row + 1])

    def num_before(self, row: int) -> int:
        """Instructions of a row before the pipeline."""
        return int(self.sampling.length[self.samples.rows[row]])

    # -- the user's function -----------------------------------------------------------------------------------

    def results(self) -> list[PipelineImage]:
        """Run the function for each of the rows."""
        output = self.samples.output
        results = []
        token = _current.set(self)
        try:
            for row, shape in enumerate(self.samples.shapes):
                self.row, self._visits = row, {}
                results.append(self._result_of(PipelineImage(self, row, *shape, output)))
        finally:
            _current.reset(token)
        return results

    def append(self, results: list[PipelineImage]) -> None:
        """Append each row's instructions to the batch."""
        self._set_output(results)
        self._append(results)

    def _result_of(self, image: PipelineImage) -> PipelineImage:
        """The image that the function returns for this row. Raises PipelineError naming its line, and the sample."""
        self._refusal = None
        try:
            result = self._call(image)
            if self._refusal is not None:
                raise self._refusal
            return self.image_of(result, self.pipeline)
        except Exception as error:  # the user's function may raise anything
            raise self._located(error) from error

    def _call(self, image: PipelineImage) -> Any:
        row = self.row
        in_order = [values[row] for values in self._in_order]
        by_name = {name: values[row] for name, values in self._by_name.items()}
        return self.pipeline.function(image, *in_order, **by_name, **self._constants)

    def image_of(self, result: Any, pipeline: Any) -> PipelineImage:
        """The image that the function of ``pipeline`` returns. Raises PipelineError for anything else."""
        if type(result) is not PipelineImage:
            is_list = isinstance(result, (tuple, list)) and bool(result)
            if is_list and all(isinstance(one, _VALUES) for one in result[1:]):
                return self.image_of(result[0], pipeline)  # values are loaded with the batch and indexed alongside it
            refuse(f"{pipeline.name} returns {'nothing' if result is None else short_repr(result)}", "the image")
        if result._run is not self or result._row != self.row:
            refuse(f"{pipeline.name} returns an image of another sample", "its own")
        return result

    def refuse(self, what: str, accepted: str) -> NoReturn:
        """Raise an error that stands, also if a ``try`` of the function catches it."""
        error = PipelineError(f"{what}; accepted: {accepted}")
        self._refusal = self._refusal or error
        raise error

    def _located(self, error: Exception) -> PipelineError:
        frame = error.__traceback__
        code = self.pipeline.function.__code__
        line = code.co_firstlineno
        while frame is not None:
            if is_users(frame.tb_frame.f_code):
                code, line = frame.tb_frame.f_code, frame.tb_lineno
            frame = frame.tb_next
        message = str(error)
        if isinstance(error, ArgumentError):
            message = f"{error.argument}={short_repr(error.got)}; accepted: {error.accepted}"
        elif not isinstance(error, PipelineError):
            message = f"{type(error).__name__}: {message}"
        sample = self.samples.ids[self.row].item()
        return PipelineError(f"{shown_place(code.co_filename, line)}: {self.pipeline.name}, sample {sample}: {message}")

    # -- into the batch ----------------------------------------------------------------------------------------

    def _set_output(self, results: list[PipelineImage]) -> None:
        """The format in which all images of the batch leave."""
        sampling = self.sampling
        output, *others = {id(result._output): result._output for result in results}.values()
        is_changed = output is not sampling.output and output != sampling.output
        if any(other != output for other in others) or (is_changed and not sampling.covers_group(self.samples.rows)):
            raise PipelineError(
                f"{self.pipeline.name} normalizes or converts some images of a batch and not others; accepted: one "
                "format for all of them: call Normalize, ToDtype or Grayscale() for every image"
            )
        sampling.output = output

    def _append(self, results: list[PipelineImage]) -> None:
        sampling, rows = self.sampling, self.samples.rows
        before = sampling.channels[rows]
        widened = np.array([result.channels for result in results]) != before
        if widened.any():
            sampling.widen(rows[widened], "Grayscale(num_output_channels=3)")
        for row, result in zip(rows, results, strict=True) if sampling.mixes else ():
            if result._records and (mixer := sampling.mixer_of(np.array([row]))):
                raise after_mixer(self.pipeline.name, mixer)
        single = [n for n, result in enumerate(results) if result._batch is None]
        lengths = sampling.length.copy()
        sizes = [(results[n].height, results[n].width) for n in single]
        sampling.append_records(rows[single], [results[n]._records for n in single], sizes)
        if sampling.is_blended:
            sampling.check_after_blend(lengths)
        for n, result in enumerate(results):
            if result._batch is not None:
                self._append_forks(int(rows[n]), result._batch)
            elif result._boxes is not None:
                _keep_boxes(sampling, rows[n : n + 1], result._boxes)

    def _append_forks(self, row: int, batch: Sampling) -> None:
        """The rows that AugMix has made of one, and their weights."""
        sampling, number = self.sampling, len(batch.length)
        if sampling.are_blended(np.array([row])):
            raise after_blend("AugMix")
        before = int(sampling.length[row])
        rows = np.concatenate([[row], sampling.fork(np.array([row]), number - 1).ravel()])
        sampling.append_records(rows, [batch.records_of(n, before) for n in range(number)], batch.size)
        assert batch._blend_weight is not None
        sampling.blend(rows, batch._blend_weight)
        if batch.boxes is not None:
            _keep_boxes(sampling, rows, batch.boxes)


_VALUES = (bool, int, float, str, np.generic)


def shown_place(file: str, line: int) -> str:
    code = linecache.getline(file, line).strip()
    return f"{file}:{line}" + (f": `{code}`" if code else "")


_current: ContextVar[Run | None] = ContextVar("run", default=None)


def run_for(what: str) -> Run:
    """The call that is running. Raises PipelineError where none is."""
    run = _current.get()
    if run is None:
        refuse(f"{what} outside of a pipeline", "it in a function under @vg.pipeline, while that runs")
    return run


_ROOT = Run._call.__code__


def _key_of(frame: types.FrameType | None) -> tuple[int, ...]:
    """All frames from ``frame`` out to the pipeline's function."""
    key: list[int] = []
    while frame is not None and frame.f_code is not _ROOT:
        key.append(id(frame.f_code))
        key.append(frame.f_lasti)
        frame = frame.f_back
    return tuple(key)


def _keep_boxes(sampling: Sampling, rows: Rows, boxes: SampledBoxes) -> None:
    assert sampling.boxes is not None
    sampling.boxes.dropped_boxes[rows] = boxes.dropped_boxes
    sampling.boxes.min_box[sampling.source[rows]] = boxes.min_box[0]
