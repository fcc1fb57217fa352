"""The image that a pipeline's function gets: it has sizes and no pixels, and records what is done to it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from variegate.errors import shown
from variegate.ops.base import Recorded, Transform
from variegate.program.boxes import SampledBoxes
from variegate.program.one_image import OneImage
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.program.sampling import Sampling

if TYPE_CHECKING:
    from variegate.pipelines.run import Run

_UINT8 = Output(layout="NHWC")

# Of one sample: a loop without an end would go on forever.
MAX_STEPS = 10_000

_NO_PIXELS = "values that are drawn, values given with the batch, and image.height, .width and .channels"


class PipelineError(ValueError):
    """Raised for a pipeline's function that fails, naming it, its line and the sample; and for draws outside of one."""


def refuse(what: str, accepted: str = "") -> NoReturn:
    raise PipelineError(what + (f"; accepted: {accepted}" if accepted else ""))


class State(NamedTuple):
    """Properties that few operations change: output, channels that are read, boxes, and the rows made by AugMix."""

    output: Output
    channels: int
    boxes: SampledBoxes | None
    batch: Sampling | None

    @property
    def is_shared(self) -> bool:
        """True if several images may be in one recorder, each with the records up to its own."""
        return self.boxes is None and self.batch is None


class Recorder(OneImage):
    """Records the operations on an image. ``state``: of the newest image in it; None where it can have one alone."""

    state: State | None = None

    def update_state(self) -> State:
        """The state after an operation."""
        state = self.state
        sampling = self.sampling
        channels = self.in_shape[2]
        if (
            state is None
            or state.output is not sampling.output
            or state.channels != channels
            or self._batch is not None
        ):
            state = State(sampling.output, channels, sampling.boxes, self._batch)
            self.state = state if state.is_shared else None
        return state

    def copied(self, number: int, size: tuple[int, int], state: State) -> Recorder:
        """A recorder of its own for an image of which this one has the first ``number`` records."""
        copied = object.__new__(Recorder)
        copied.__dict__.update(self.__dict__)
        copied.__dict__.pop("shape", None)
        copied.records = self.records[:number]
        copied.height, copied.width = size
        copied.output, channels, copied.boxes, copied._batch = state
        copied.in_shape = (*self.in_shape[:2], channels)
        copied.state = state
        if not state.is_shared:
            copied.boxes = None if state.boxes is None else _copied_boxes(state.boxes)
            copied._batch = None if state.batch is None else _copied_batch(state.batch, copied.boxes)
            copied.state = None
        return copied


class PipelineImage(Recorded):
    """An image after some operations. It never changes: each operation returns another image.

    The operations are in a ``Recorder``, to which those on the newest image append. An operation on an older image
    copies what was recorded up to there.

    Attributes:
        height, width: in pixels.
        channels: 1, 3, or those of an image of many channels.
    """

    __slots__ = ("_number", "_recorder", "_row", "_run", "_state", "channels", "height", "width")
    __hash__ = object.__hash__

    def __init__(self, run: Run, row: int, recorder: Recorder, state: State, channels: int) -> None:
        self._run = run
        self._row = row
        self._recorder = recorder
        self._state = state
        self.channels = channels
        self._number = len(recorder.records)
        self.height = recorder.height
        self.width = recorder.width
        if state.batch is not None:
            self.height, self.width = state.batch.size[0].tolist()

    def __repr__(self) -> str:
        return f"<image {self.height}x{self.width}>"

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels

    @property
    def area(self) -> int:
        return self.height * self.width

    @property
    def aspect(self) -> float:
        return self.width / self.height

    # -- operations --------------------------------------------------------------------------------------------

    def through(self, transform: Transform, others: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return self._run.apply(transform, self, others, named)

    def recorder(self) -> Recorder:
        """The recorder of the next operation."""
        recorder = self._recorder
        if self._is_newest_in(recorder):
            return recorder
        return recorder.copied(self._number, (self.height, self.width), self._state)

    def after(self, device: str, op: Op, args: Sequence[float], flags: int, fill: Any, size: Any) -> PipelineImage:
        recorder = self._recorder
        if device != "cpu" or self._number >= MAX_STEPS or not self._is_newest_in(recorder):
            steps = self.function_recorder()
            steps.add(op, *args, flags=flags, fill=fill, size=size)
            return self.recorded(steps, device, _UINT8)
        # As nearly always: without calls that can be left out.
        recorder.add(op, *args, flags=flags, fill=fill, size=size)
        return PipelineImage(self._run, self._row, recorder, self._state, self.channels)

    def function_recorder(self) -> OneImage:
        if self._state.batch is None:
            return self.recorder()
        # One row, which ``recorded`` repeats for all.
        return self._run.new_recorder((self.height, self.width, self._state.channels), self._state.output)

    def recorded(self, recorder: OneImage, device: str, output: Output) -> PipelineImage:
        if device != "cpu":
            refuse(f"device={shown(device)}", "nothing: the Augmenter has a device")
        if output is not _UINT8 and output.is_float:
            refuse("F.normalize of an image of a pipeline", "T.Normalize(mean, std)(image)")
        if self._state.batch is not None:
            recorder = self._repeated(recorder)
        if self._number >= MAX_STEPS:
            refuse(f"more than {MAX_STEPS:,} operations on one image", "loops that end")
        state = self._state
        if recorder is not self._recorder:
            assert isinstance(recorder, Recorder)
            state = recorder.update_state()
        return PipelineImage(self._run, self._row, recorder, state, self.channels)

    def _repeated(self, recorder: OneImage) -> Recorder:
        """The instructions of ``recorder`` for all rows of this image."""
        all_rows = self.recorder()
        images = all_rows.forked()
        for op, flags, height, width, label, red, green, blue, *args in recorder.records:
            size = (height, width) if (height, width) != (self.height, self.width) else None
            name = recorder._names[label] if label >= 0 else None
            images.add(op, *args, flags=flags, fill=(red, green, blue), size=size, name=name)
        return all_rows

    def noise_slot(self) -> int:
        return self._run.noise_slot()

    def result(self) -> tuple[Recorder, State]:
        """The record of this image, and of none that came after it."""
        return self.recorder() if self._state.is_shared else self._recorder, self._state

    def _is_newest_in(self, recorder: Recorder) -> bool:
        is_size = recorder.height == self.height and recorder.width == self.width
        return is_size and recorder.state is self._state and len(recorder.records) == self._number

    # -- pixels ------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse_pixels(f"image.{name}")

    def refuse_pixels(self, what: str) -> NoReturn:
        self._run.refuse(f"{what} depends on pixels, which do not exist while operations are chosen", _NO_PIXELS)


def _copied_boxes(boxes: SampledBoxes) -> SampledBoxes:
    copied = copy(boxes)
    copied.dropped = boxes.dropped.copy()
    copied.least = boxes.least.copy()
    return copied


def _copied_batch(batch: Sampling, boxes: SampledBoxes | None) -> Sampling:
    copied = copy(batch)
    copied._grids = {name: grid.copy() for name, grid in batch._grids.items()}
    copied.size = batch.size.copy()
    copied.length = batch.length.copy()
    copied._is_mixed = batch._is_mixed.copy()
    copied.boxes = boxes
    if batch._blend_weight is not None:
        copied._blend_weight = batch._blend_weight.copy()
    return copied


def _pixels(what: str) -> Any:
    def refused(self: PipelineImage, *_: Any, **__: Any) -> NoReturn:
        self.refuse_pixels(what)

    return refused


_UNARY = ["bool", "float", "int", "index", "len", "iter", "neg", "abs", "invert"]
_UNARY += ["array", "array_ufunc", "array_function"]
_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "matmul"]
for _name in (*_UNARY, *_BINARY, *(f"r{_each}" for _each in _BINARY), "lt", "le", "gt", "ge", "eq", "ne", "getitem"):
    setattr(PipelineImage, f"__{_name}__", _pixels({"getitem": "image[...]", "bool": "bool(image)"}.get(_name, "this")))
