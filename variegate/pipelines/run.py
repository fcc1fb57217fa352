"""One call of a pipeline: its function runs for each row of a batch, or for one image, and draws are read in turn."""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from itertools import chain as chained
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from variegate.errors import shown
from variegate.ops.arguments import ArgumentError
from variegate.ops.base import Transform
from variegate.ops.compose import IMAGE_VALUES
from variegate.pipelines.image import MAX_STEPS, PipelineError, PipelineImage, Recorder, State, refuse
from variegate.pipelines.sites import chain_of, frames_below, is_users, slot_of
from variegate.program import rng
from variegate.program.one_image import OneImage, Record
from variegate.program.ops import NUM_ARGS, Op
from variegate.program.planes import refuse_colour
from variegate.program.program import Output
from variegate.program.sampling import Floats, Rows, Sampling

Words = npt.NDArray[np.uint32]

# Of the numbers of a record, those of each array of instructions.
_COLUMNS: dict[str, Any] = {
    **{
        "opcode": 0,
        "flags": 1,
        "out_size": slice(2, 4),
        "label": 4,
        "fill": slice(5, 8),
        "args": slice(8, 8 + NUM_ARGS),
    }
}
_RECORD = 8 + NUM_ARGS
# Blocks of random numbers that are kept for a batch, in all.
_MAX_BLOCKS = 1 << 16
# Visits of a site that are drawn for all rows at once.
_MAX_SHARED = 64


class _WordsAt:
    """Words of the slots from ``first`` on, indexed by slot, as ``Sampling`` reads those from 0 on."""

    __slots__ = ("_first", "_words")

    def __init__(self, words: Words, first: int) -> None:
        self._words = words
        self._first = first

    def item(self, place: int) -> int:
        return self._words.item(place - 4 * self._first)

    def __getitem__(self, where: Any) -> Any:
        rows, slot, *rest = where
        if isinstance(slot, slice):
            return self._words[(rows, slice(slot.start - self._first, slot.stop - self._first), *rest)]
        return self._words[(rows, slot - self._first, *rest)]


class Draw:
    """The numbers of all rows at one site and visit, or of the row at hand alone."""

    __slots__ = ("_is_alone", "_run", "_second", "_words", "slot", "units")

    def __init__(self, run: Run, slot: int, is_alone: bool) -> None:
        self._run = run
        self.slot = slot
        self._is_alone = is_alone
        self.units: list[float] | None = None
        self._second: list[float] | None = None
        self._words: Words | None = None

    def unit(self) -> float:
        """A number in [0, 1) of the row at hand."""
        if self.units is None:
            run = self._run
            if run.number == 1:
                first, second = run.reader.units(self.slot)
                self.units = [first]
                self._second = [second]
            else:
                self.units, self._second = rng.to_unit(run.words(self.slot, 1, self._rows)[:, 0, :2]).T.tolist()
        return self.units[self._place]

    def second_unit(self) -> float:
        """Another one."""
        self.unit()
        assert self._second is not None
        return self._second[self._place]

    @property
    def _rows(self) -> slice:
        row = self._run.row
        return slice(row, row + 1) if self._is_alone else slice(None)

    @property
    def _place(self) -> int:
        return 0 if self._is_alone else self._run.row

    def words(self, count: int) -> Words:
        """Of the row at hand, those of ``count`` slots: uint32[1, count, 4]."""
        run = self._run
        if self._is_alone or count * run.number > _MAX_BLOCKS:
            return run.words(self.slot, count, slice(run.row, run.row + 1))
        if self._words is None or self._words.shape[1] < count:
            self._words = run.words(self.slot, count)
        return self._words[run.row : run.row + 1]


class Site:
    """A call that draws, and how often the row at hand has come by."""

    __slots__ = ("chain", "draws", "row", "visits")

    def __init__(self, chain: str) -> None:
        self.chain = chain
        self.row = -1
        self.visits = 0
        self.draws: list[Draw] = []


class Run:
    """One call of ``pipeline`` for ``rows`` of ``sampling``. ``slot``: the pipeline's own."""

    def __init__(self, pipeline: Any, sampling: Sampling, rows: Rows, slot: int) -> None:
        self.pipeline = pipeline
        self.sampling = sampling
        self.rows = rows
        self.number = len(rows)
        self.row = 0
        self._slot = slot
        self._given: dict[str, list[Any]] = {}
        self._in_order = [self.given(name) for name in pipeline.in_order]
        self._by_name = {name: self.given(name) for name in pipeline.by_name}
        self._function: Callable[..., Any] = pipeline.function
        self._has_names = bool(self._by_name or pipeline.given_constants)
        self._sites: dict[Any, Site] = {}
        self._by_chain: dict[str, Site] = {}
        self._refusal: PipelineError | None = None

    def given(self, name: str) -> list[Any]:
        """Values of the rows: of their images as they came, or given with the batch."""
        if name not in self._given:
            self._given[name] = self._values(name)
        return self._given[name]

    def _values(self, name: str) -> list[Any]:
        sampling = self.sampling
        if name == "epoch":
            return [sampling.epoch] * self.number
        if name in IMAGE_VALUES:
            values: list[Any] = IMAGE_VALUES[name](sampling.size[self.rows], sampling.channels[self.rows]).tolist()
            return values
        if name not in sampling.given:
            listed = ", ".join(map(repr, sampling.given)) or "nothing"
            accepted = f'conditions={{"{name}": values}}, one value per image; given with this batch: {listed}'
            raise ArgumentError(self.pipeline, name, None, accepted)
        found = np.asarray(sampling.given[name])
        return found[sampling.source[self.rows]].tolist()

    # -- draws -------------------------------------------------------------------------------------------------

    @cached_property
    def streams(self) -> tuple[npt.NDArray[np.uint64], Words]:
        """Ids and keys of the rows."""
        return self.sampling.streams(self.rows)

    @cached_property
    def reader(self) -> rng.SlotReader:
        """Of one row."""
        return rng.SlotReader(*self.streams)

    def words(self, slot: int, count: int, rows: slice = slice(None)) -> Words:
        """uint32[N, count, 4]"""
        ids = self.streams[0][rows]
        keys = self.streams[1][rows]
        blocks = [rng.noise_words(ids, keys, slot + place, 1) for place in range(count)]
        return blocks[0] if count == 1 else np.concatenate(blocks, axis=1)

    def unit(self, frame: types.FrameType) -> float:
        """The next number in [0, 1) at the site of ``frame``."""
        draw = self.next_draw(frame)
        units = draw.units
        return draw.unit() if units is None else units[self.row]

    def next_draw(self, frame: types.FrameType) -> Draw:
        """The next draw at the site of ``frame``, or of the first of the user's frames around it."""
        key: Any = frame.f_lasti
        caller = frame.f_back
        if caller is None or caller.f_code is not _ROOT:
            key = _key_of(frame)
        site = self._sites.get(key)
        if site is None:
            # A call has several offsets, as Python adapts its bytecode.
            chain = self._chain(key, frame)
            site = self._sites[key] = self._by_chain.setdefault(chain, Site(chain))
        if site.row != self.row:
            site.row = self.row
            site.visits = 0
        visit = site.visits
        site.visits = visit + 1
        if visit < len(site.draws):
            return site.draws[visit]
        if visit >= MAX_STEPS:
            self.refuse(f"more than {MAX_STEPS:,} draws of one call", "loops that end")
        # In loops of many turns, few rows come this far.
        is_alone = visit >= _MAX_SHARED and self.number > 1
        draw = Draw(self, slot_of(site.chain, visit, self._slot), is_alone)
        if not is_alone:
            site.draws.append(draw)
        return draw

    def _chain(self, key: Any, frame: types.FrameType) -> str:
        known: dict[Any, tuple[str, Any]] = self.pipeline._chains
        found = known.get(key)
        if found is None:
            if len(known) >= MAX_STEPS:
                known.clear()
            frames = list(frames_below(frame, _ROOT))
            users = [(f.f_code, f.f_lasti) for f in frames if is_users(f.f_code)]
            found = known[key] = chain_of(users[::-1]), [f.f_code for f in frames]  # whose ids are in the key
        return found[0]

    def noise_slot(self) -> int:
        return self.next_draw(sys._getframe(1)).slot

    # -- operations --------------------------------------------------------------------------------------------

    def apply(self, transform: Transform, image: PipelineImage, others: tuple[Any, ...], named: dict[str, Any]) -> Any:
        name = type(transform).__name__
        if others or named:
            refuse(f"{name}: got {len(others) + len(named)} arguments besides the image", "one image of a pipeline")
        if transform._mixers or transform._is_alone or transform._object_labels:
            self.refuse(f"{name} within a function of a pipeline", f"T.Compose with the pipeline and {name}")
        recorder = image.recorder()
        slot = 0
        if transform.num_slots:
            draw = self.next_draw(sys._getframe(3))
            slot = draw.slot
            words: Any = _WordsAt(draw.words(transform.num_slots), slot)
            recorder._words = words
            if recorder._batch is not None:
                recorder._batch._words = words
        transform.draw(recorder.forked(), slot)
        if len(recorder.records) > MAX_STEPS:
            refuse(f"more than {MAX_STEPS:,} operations on one image", "loops that end")
        return PipelineImage(self, image._row, recorder, recorder.update_state(), image.channels)

    def new_recorder(self, shape: tuple[int, int, int], output: Output) -> Recorder:
        """A recorder of instructions alone, which shares the tables of the batch."""
        recorder = Recorder(shape, 0, (0, 0), 0)
        self.share_tables(recorder)
        recorder.output = output
        return recorder

    def share_tables(self, recorder: Recorder) -> None:
        shared = self.sampling
        recorder._parts = shared._parts
        recorder._counts = shared._counts
        recorder._points = shared._points
        recorder._names = shared._names
        recorder.planes = shared.planes
        recorder.max_side = shared.max_side

    # -- the user's function -----------------------------------------------------------------------------------

    def result_of(self, recorder: Recorder, state: State, channels: int) -> tuple[Recorder, State]:
        """The record of the function for the row at hand. Raises PipelineError naming its line, and the sample."""
        image = PipelineImage(self, self.row, recorder, state, channels)
        self._refusal = None
        try:
            result = self._call(image)
            if self._refusal is not None:
                raise self._refusal
            return self.image_of(result, self.pipeline.name).result()
        except Exception as error:  # the user's function may raise anything
            raise self._located(error) from error

    def _call(self, image: PipelineImage) -> Any:
        row = self.row
        in_order = [values[row] for values in self._in_order]
        if not self._has_names:
            return self._function(image, *in_order)
        by_name = {name: values[row] for name, values in self._by_name.items()}
        return self._function(image, *in_order, **by_name, **self.pipeline.given_constants)

    def image_of(self, result: Any, name: str) -> PipelineImage:
        """The image that the function ``name`` returns. Raises PipelineError for anything else."""
        if type(result) is not PipelineImage:
            is_list = isinstance(result, (tuple, list)) and bool(result)
            if is_list and all(isinstance(one, _VALUES) for one in result[1:]):
                return self.image_of(result[0], name)  # values come with the batch, and go on beside it
            refuse(f"{name} returns {'nothing' if result is None else shown(result)}", "the image")
        if result._run is not self or result._row != self.row:
            refuse(f"{name} returns an image of another sample", "its own")
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
                code = frame.tb_frame.f_code
                line = frame.tb_lineno
            frame = frame.tb_next
        message = str(error)
        if isinstance(error, ArgumentError):
            message = f"{error.argument}={shown(error.got)}; accepted: {error.accepted}"
        elif not isinstance(error, PipelineError):
            message = f"{type(error).__name__}: {message}"
        sample = self.streams[0][self.row].item()
        return PipelineError(f"{shown_place(code.co_filename, line)}: {self.pipeline.name}, sample {sample}: {message}")


_VALUES = (bool, int, float, str, np.generic)


def shown_place(file: str, line: int) -> str:
    code = linecache.getline(file, line).strip()
    return f"{file}:{line}" + (f": `{code}`" if code else "")


_current: ContextVar[Run | None] = ContextVar("run", default=None)


@contextmanager
def running(run: Run) -> Iterator[None]:
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


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


# -- into programs -----------------------------------------------------------------------------------------------


def run_one(run: Run, image: OneImage) -> None:
    """Run the function for one image, and append what it records."""
    fields = image.__dict__
    words = fields.pop("_words", None)
    recorder = object.__new__(Recorder)
    recorder.__dict__.update(fields)
    with running(run):
        result, _ = run.result_of(recorder, recorder.update_state(), int(image.channels[0]))
    # Nothing stays of what was computed of the image before; and calls of transforms have left words of their slots.
    fields.clear()
    fields.update(result.__dict__)
    fields.pop("_words", None)
    if words is not None:
        fields["_words"] = words
    if image._batch is not None:
        image._batch._words = image._words


def run_rows(run: Run) -> None:
    """Run the function for each of the rows, and append what it records."""
    sampling = run.sampling
    rows = run.rows
    channels = sampling.channels[rows].tolist()
    results = []
    lengths = []
    is_changed = sampling.boxes is not None
    with running(run):
        for number, (recorder, state) in enumerate(_recorders(run)):
            run.row = number
            lengths.append(len(recorder.records))
            result, last_state = run.result_of(recorder, state, channels[number])
            results.append(result)
            is_changed = is_changed or last_state is not state
    if is_changed:
        _set_output(run, results)
        for row, result, before in zip(rows.tolist(), results, sampling.shape[rows, 2].tolist(), strict=True):
            if result.in_shape[2] != before:
                sampling.widen(np.array([row]), "Grayscale(num_output_channels=3)")
    if sampling.planes is not None:
        sampling.differs_by_channel |= any(result.differs_by_channel for result in results)
    _append(sampling, rows, results, lengths)


def _recorders(run: Run) -> Iterator[tuple[Recorder, State]]:
    """The recorder of each row, and its state."""
    sampling = run.sampling
    rows = run.rows
    first = run.new_recorder((1, 1, 3), sampling.output)
    first.epoch = sampling.epoch
    template = first.__dict__
    states = {channels: State(sampling.output, channels, None, None) for channels in (1, 3)}
    sources = sampling.source[rows]
    first_keys: Any = [None] * len(rows)
    if sampling._first_key is not None:
        first_keys = rng.keys_of(sampling._first_key, len(sampling._ids))[sources].tolist()
    ids, keys = sampling.streams(rows)
    shapes = np.column_stack([sampling.size[rows], sampling.shape[rows, 2], sampling.length[rows], rows, sources])
    for shape, sample_id, key, first_key in zip(shapes.tolist(), ids.tolist(), keys.tolist(), first_keys, strict=True):
        height, width, channels, length, row, source = shape
        recorder = object.__new__(Recorder)
        recorder.__dict__ = fields = template.copy()
        fields["height"] = height
        fields["width"] = width
        fields["in_shape"] = (height, width, channels)
        fields["sample_id"] = sample_id
        fields["stream"] = tuple(key)
        fields["_first_stream"] = first_key and tuple(first_key)
        fields["records"] = []
        fields["state"] = states[channels]
        if sampling.given:
            fields["given"] = {name: values[source : source + 1] for name, values in sampling.given.items()}
        if length and (sampling.boxes is not None or channels == 1):
            # Boxes are where the instructions so far have moved them; and these may be widened to three channels.
            fields["records"] = _records_of(sampling, row)
            fields["in_shape"] = tuple(sampling.shape[row].tolist())
        if sampling.boxes is None:
            yield recorder, states[channels]
        else:
            fields["boxes"] = sampling.boxes.of_row(row, source)
            fields["state"] = None
            yield recorder, recorder.update_state()


def _records_of(sampling: Sampling, row: int) -> list[Record]:
    """The instructions of a row so far."""
    return list(map(tuple, _numbers_of(sampling.instructions, row, int(sampling.length[row])).tolist()))


def _numbers_of(grids: Mapping[str, npt.NDArray[Any]], row: int, length: int) -> Floats:
    """Instructions of a row as float64[length, numbers of a record]."""
    parts = [grids[name][row, :length] for name in ("opcode", "flags", "out_size", "label", "fill", "args")]
    return np.column_stack([part.astype(np.float64) for part in parts])


def _set_output(run: Run, results: list[Recorder]) -> None:
    """The format in which all images of the batch leave."""
    sampling = run.sampling
    outputs = {id(output): output for output in (result.sampling.output for result in results)}
    output, *others = outputs.values()
    if any(other != output for other in others) or (output is not sampling.output and not sampling.are_all(run.rows)):
        raise PipelineError(
            f"{run.pipeline.name} normalizes or converts some images of a batch and not others; accepted: one format "
            "for all of them: call Normalize, ToDtype or Grayscale() for every image"
        )
    sampling.output = output


def _append(sampling: Sampling, rows: Rows, results: list[Recorder], lengths: list[int]) -> None:
    """Append the records of each result beyond its ``lengths`` to its row."""
    is_joined = (sampling._is_mixed[sampling.source[rows]] | bool(sampling.mixes)).tolist()
    plain: list[int] = []
    others: list[int] = []
    for n, result in enumerate(results):
        (plain if result._batch is None and not is_joined[n] else others).append(n)
    recorded = [results[n].records[lengths[n] :] for n in plain]
    counts = np.array([len(records) for records in recorded], np.intp)
    flat = chained.from_iterable(chained.from_iterable(recorded))
    numbers = np.fromiter(flat, np.float64, int(counts.sum()) * _RECORD).reshape(-1, _RECORD)
    sizes = [(results[n].height, results[n].width) for n in plain]
    _write(sampling, rows[plain], counts, numbers, sizes)
    for n in plain if sampling.boxes is not None else ():
        _keep_boxes(sampling, rows[n : n + 1], results[n])
    for n in others:
        batch = results[n]._batch
        if batch is None or is_joined[n]:
            _emit(sampling, rows[n], results[n], lengths[n])
        else:
            _append_forks(sampling, rows[n], batch, lengths[n])


def _write(sampling: Sampling, rows: Rows, counts: Rows, numbers: Floats, sizes: Any) -> None:
    """Append ``counts`` instructions to each of ``rows``. ``numbers``: all of them, as records."""
    if not len(rows):
        return
    if sampling.planes is not None:
        refuse_colour(numbers[:, 0].astype(np.int16), None, sampling.planes)
    at = np.repeat(rows, counts)
    ends = np.cumsum(counts)
    place = sampling.length[at] + np.arange(len(at)) - np.repeat(ends - counts, counts)
    while place.max(initial=0) >= sampling.instructions["opcode"].shape[1]:
        sampling._widen()
    flat = at * sampling.instructions["opcode"].shape[1] + place  # one index, which is faster than a pair
    for name, columns in _COLUMNS.items():
        grid = sampling.instructions[name]
        grid.reshape(-1, *grid.shape[2:])[flat] = numbers[:, columns]
    sampling.length[rows] += counts
    sampling.size[rows] = sizes


def _append_forks(sampling: Sampling, row: int, batch: Sampling, first: int) -> None:
    """The rows that a transform such as AugMix has made of one, and their weights."""
    number = len(batch.length)
    rows = np.concatenate([[row], sampling.fork(np.array([row]), number - 1).ravel()])
    parts = [_numbers_of(batch.instructions, n, length)[first:] for n, length in enumerate(batch.length.tolist())]
    _write(sampling, rows, batch.length.astype(np.intp) - first, np.concatenate(parts), batch.size)
    assert batch._blend_weight is not None
    sampling.blend(rows, batch._blend_weight)
    if batch.boxes is not None:
        _keep_boxes(sampling, rows, batch)


def _keep_boxes(sampling: Sampling, rows: Rows, result: Sampling) -> None:
    assert sampling.boxes is not None
    assert result.boxes is not None
    sampling.boxes.dropped[rows] = result.boxes.dropped
    sampling.boxes.least[sampling.source[rows]] = result.boxes.least[0]


def _emit(sampling: Sampling, row: int, result: Recorder, first: int) -> None:
    """Append where images are joined of several already, which refuses most."""
    if result._batch is not None:
        raise ValueError("AugMix after images are mixed; accepted: AugMix before that")
    rows = np.array([row])
    for op, flags, height, width, label, *others in result.records[first:]:
        size = np.array([height, width], np.int32)
        changed = None if (sampling.size[row] == size).all() else size
        name = result._names[label] if label >= 0 else None
        sampling.emit(rows, Op(op), *others[3:], flags=flags, fill=others[:3], size=changed, name=name)
    if result.boxes is not None:
        _keep_boxes(sampling, rows, result)
