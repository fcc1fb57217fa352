"""The image inside a pipeline's function: it has sizes and no pixels, and records operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from variegate.errors import short_repr
from variegate.ops.base import Recorded, Transform
from variegate.ops.compose import IMAGE_VALUES
from variegate.program.boxes import SampledBoxes
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.program.sampling import Sampling
from variegate.program.scalar_draw import NeedsBatch, ScalarDraw, check_size, instruction
from variegate.program.table_builder import TableBuilder

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


class Recorder(ScalarDraw):
    """Records an operation on an image. It shares the side tables of the batch."""

    __slots__ = ("_run",)

    def __init__(self, run: Run, image: PipelineImage) -> None:
        self._run = run
        self.height, self.width, self.channels = image.height, image.width, image.channels
        self.output = image._output
        self.records = []

    @property
    def num_channels(self) -> int:
        return self._run.num_channels

    @property
    def epoch(self) -> int:
        return self._run.samples.epoch

    @property
    def max_side(self) -> int:
        return self._run.max_side

    @property
    def tables(self) -> TableBuilder:
        return self._run.tables

    def word(self, slot: int, word: int = 0) -> int:
        return self._run.words(slot + word // 4)[word % 4]

    def table(self, name: str, values: npt.ArrayLike) -> int:
        return self._run.table(name, values)

    def column(self, values: Callable[[Sampling], npt.ArrayLike]) -> NoReturn:
        raise NeedsBatch


class PipelineImage(Recorded):
    """An image after some operations. It never changes: each operation returns another image.

    ``_records`` are its instructions in the pipeline. ``_batch`` holds the rows that AugMix makes of an image, with all
    their instructions. ``_boxes`` are None until a transform changes them.

    Attributes:
        height, width: in pixels.
        channels: 1, 3, or the channels of a multi-channel image.
        area, aspect: see ``IMAGE_VALUES``.
    """

    __slots__ = (
        *("_batch", "_boxes", "_output", "_records", "_row", "_run"),
        *("channels", "height", "width"),
    )
    __hash__ = object.__hash__

    def __init__(
        self,
        run: Run,
        row: int,
        height: int,
        width: int,
        channels: int,
        output: Output,
        records: tuple[bytes, ...] = (),
        boxes: SampledBoxes | None = None,
        batch: Sampling | None = None,
    ) -> None:
        self._run, self._row, self._output, self._boxes, self._batch = run, row, output, boxes, batch
        self.height, self.width, self.channels, self._records = height, width, channels, records
        if len(records) > MAX_STEPS:
            refuse(f"more than {MAX_STEPS:,} operations on one image", "loops that end")

    def __repr__(self) -> str:
        return f"<image {self.height}x{self.width}>"

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.height, self.width, self.channels

    # -- operations --------------------------------------------------------------------------------------------

    def through(self, transform: Transform, others: tuple[Any, ...], named: dict[str, Any]) -> PipelineImage:
        run = self._run
        run.check_call(transform, others, named)
        slot = run.slot_of_call() if transform.num_slots else 0
        if self._batch is None:
            recorder = self.function_recorder()
            try:
                recorder.run(transform, slot)
                return self._after(recorder)
            except (NeedsBatch, ArithmeticError):
                pass  # drawn in Python for rows, or 1 / 0 in a branch that is not chosen, which the machine can do
        batch = self._as_batch(slot, transform.num_slots)
        transform.sample(batch, np.arange(len(batch.length)), slot)
        return self._after_batch(batch)

    def after(self, device: str, op: Op, args: Sequence[float], flags: int, fill: Any, size: Any) -> PipelineImage:
        if device != "cpu" or self._batch is not None:
            recorder = Recorder(self._run, self)
            recorder.add(op, *args, flags=flags, fill=fill, size=size)
            return self.recorded(recorder, device, _UINT8)
        run, output = self._run, self._output
        sides = (self.height, self.width) if size is None else check_size(size, run.max_side, op)
        record = instruction(run, output, op, args, flags, fill, sides)
        records = (*self._records, record)
        return PipelineImage(run, self._row, *sides, self.channels, output, records, self._boxes)

    def function_recorder(self) -> Recorder:
        return Recorder(self._run, self)

    def recorded(self, recorder: ScalarDraw, device: str, output: Output) -> PipelineImage:
        if device != "cpu":
            refuse(f"device={short_repr(device)}", "nothing: the Augmenter has a device")
        if output is not _UINT8 and output.is_float:
            refuse("F.normalize of an image of a pipeline", "T.Normalize(mean, std)(image)")
        if self._batch is None:
            return self._after(recorder)
        batch = self._as_batch(0, 0)
        number, before = len(batch.length), batch.length.copy()
        size = recorder.height, recorder.width
        batch.append_records(np.arange(number), [recorder.records] * number, [size] * number)
        batch.check_after_blend(before)
        return self._after_batch(batch)

    def _after(self, recorder: ScalarDraw) -> PipelineImage:
        size = recorder.height, recorder.width
        records = (*self._records, *recorder.records)
        return PipelineImage(self._run, self._row, *size, self.channels, recorder.output, records, self._boxes)

    def _as_batch(self, first_slot: int, num_slots: int) -> Sampling:
        """A batch of this image: one row, or AugMix's rows, with their instructions."""
        if self._batch is not None:
            batch = self._batch.of_rows(np.arange(len(self._batch.length)))
        else:
            batch = self._run.batch_of(self._row)
            if batch.shape[0, 2] == 1 and self.channels == 3:
                batch.shape[0, 2] = 3
            batch.append_records(np.zeros(1, np.intp), [self._records], [(self.height, self.width)])
            batch.output = self._output
            if self._boxes is not None:
                batch.boxes = self._boxes.of_rows(np.zeros(1, np.intp), 0)
        batch.set_slots(first_slot, num_slots)
        return batch

    def _after_batch(self, batch: Sampling) -> PipelineImage:
        run = self._run
        height, width = batch.size[0].tolist()
        # All sites, because a gray image that becomes RGB changes earlier instructions.
        records = tuple(batch.records_of(0, run.num_before(self._row)))
        rows = batch if len(batch.length) > 1 else None
        shape = height, width, int(batch.channels[0])
        return PipelineImage(run, self._row, *shape, batch.output, records, batch.boxes, rows)

    def as_one_image(self) -> ScalarDraw | None:
        """The instructions of the only sample; None if these are not all."""
        samples = self._run.samples
        if self._batch is not None or self.channels != samples.shapes[0][2]:
            return None
        low, high = samples.keys[0].tolist()
        image = ScalarDraw(samples.shapes[0], samples.ids[0].item(), (low, high), self._run.tables)
        image.records, image.height, image.width = list(self._records), self.height, self.width
        image.output = self._output
        return image

    def noise_slot(self) -> int:
        return self._run.slot_of_call()

    # -- pixels ------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in IMAGE_VALUES:
            return IMAGE_VALUES[name](*self.shape)
        self.refuse_pixels(f"image.{name}")

    def refuse_pixels(self, what: str) -> NoReturn:
        self._run.refuse(f"{what} depends on pixels, which do not exist while operations are chosen", _NO_PIXELS)


def _pixels(what: str) -> Any:
    def refused(self: PipelineImage, *_: Any, **__: Any) -> NoReturn:
        self.refuse_pixels(what)

    return refused


_UNARY = ["bool", "float", "int", "index", "len", "iter", "neg", "abs", "invert"]
_UNARY += ["array", "array_ufunc", "array_function"]
_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "matmul"]
for _name in (*_UNARY, *_BINARY, *(f"r{_each}" for _each in _BINARY), "lt", "le", "gt", "ge", "eq", "ne", "getitem"):
    setattr(PipelineImage, f"__{_name}__", _pixels({"getitem": "image[...]", "bool": "bool(image)"}.get(_name, "this")))
