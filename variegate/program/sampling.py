"""Sampling: the state of a batch while transforms read sizes, draw random numbers and emit instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from variegate.program import rng
from variegate.program.channels import color_of, count_channels, refuse_color
from variegate.program.mixing import Mix, join_mixes, mixed_by
from variegate.program.ops import NUM_ARGS, SPECS, Op
from variegate.program.program import (
    INSTRUCTION_ARRAYS,
    MAX_SIDE,
    RECORD,
    Blend,
    Grouping,
    Output,
    Program,
    empty_instructions,
)
from variegate.program.table_builder import TableBuilder

if TYPE_CHECKING:
    from variegate.program.boxes import SampledBoxes

Rows = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]

# Name in errors for an operation that differs between rows.
CHOICE = "a choice of operations"


class Sampling(TableBuilder):
    """Collects instructions per row. Transforms may read ``size``, ``channels``, ``epoch`` and ``given``.

    Attributes:
        partners: int32[outputs, K], images that each output may be mixed with. Images after the outputs are partners
            only. None: every image is an output, and mixing is not possible.
        boxes: boxes of the images; None for samples without boxes.
        mixes: mixes that transforms requested so far.
        max_side: longest side of an operation's output in pixels.
    """

    partners: npt.NDArray[np.int32] | None = None
    boxes: SampledBoxes | None = None
    mixes: Sequence[Mix] = ()
    max_side = MAX_SIDE

    def __init__(
        self,
        shapes: npt.NDArray[np.int32],
        ids: npt.NDArray[np.uint64],
        key: npt.NDArray[np.uint32],
        num_slots: int,
        epoch: int = 0,
        given: Mapping[str, npt.NDArray[np.generic]] | None = None,
        first_key: npt.NDArray[np.uint32] | None = None,
    ) -> None:
        """Start a batch of N images without instructions.

        ``shapes``: int32[N, 3] of height, width, channels. ``ids``: uint64[N]. ``key``: uint32[2] or [N, 2].
        ``num_slots``: number of slots of random numbers. ``given``: further arrays per image. ``first_key``: ``key`` of
        epoch 0, for numbers that are the same in every epoch.
        """
        self._first_slot = 0
        count = len(ids)
        self.epoch = epoch
        self.given = dict(given or {})
        self.key = rng.keys_of(key, count)  # uint32[N, 2]: copies of a sample have different keys
        self.source = np.arange(count, dtype=np.int32)
        self.shape = np.asarray(shapes, dtype=np.int32).reshape(count, 3)
        super().__init__(count_channels(self.shape))
        self.size = self.shape[:, :2].copy()
        self.length = np.zeros(count, dtype=np.int32)
        self.output = Output()
        self._ids = ids
        self._first_key = self.key if first_key is None and not epoch else first_key
        self._num_slots = num_slots
        self._grids = empty_instructions(count, 0)
        self._blend_weight: npt.NDArray[np.float32] | None = None
        self._is_mixed = np.zeros(count, np.bool_)  # per image: blended from several rows already
        self._grouping: Grouping | None = None
        self._alike = count  # number of images that share one output format: all, or the current group's

    @property
    def channels(self) -> npt.NDArray[np.int32]:
        return self.shape[:, 2]

    # -- drawing -----------------------------------------------------------------------------------------------

    @cached_property
    def _words(self) -> npt.NDArray[np.uint32]:
        slots = np.arange(max(self._num_slots, 1), dtype=np.uint32) + np.uint32(self._first_slot)
        return rng.words_of_slots(self._ids, self.key, slots)

    def set_slots(self, first: int, number: int) -> None:
        """Make slots ``first`` to ``first + number - 1`` available."""
        self._first_slot, self._num_slots = first, number
        self.__dict__.pop("_words", None)

    @cached_property
    def row_ids(self) -> npt.NDArray[np.uint64]:
        """Sample id of each row, uint64[R]."""
        return self._ids if len(self.source) == len(self._ids) else self._ids[self.source]

    @cached_property
    def row_keys(self) -> npt.NDArray[np.uint32]:
        """Stream key of each row, uint32[R, 2]."""
        return self.key if len(self.source) == len(self._ids) else self.key[self.source]

    def words(self, rows: Rows, slot: int, count: int = 1) -> npt.NDArray[np.uint32]:
        """Return random words of ``count`` slots, uint32[R, count, 4], the same for all rows of an image."""
        first = slot - self._first_slot
        return self._words[self.source[rows], first : first + count]

    def uniform(self, rows: Rows, slot: int, word: Any = slice(None)) -> Floats:
        """Return uniform numbers in [0, 1) from one slot, float64[R, 4], or float64[R] for a single ``word``."""
        return rng.to_unit(self._words[self.source[rows], slot - self._first_slot, word])

    def epoch_invariant_words(self, rows: Rows, slot: int) -> npt.NDArray[np.uint32]:
        """Return random words of one slot that are the same in every epoch, uint32[R, 4].

        Raises ValueError if the key of epoch 0 is not known.
        """
        if self._first_key is None:
            raise ValueError(f"first_key: got None in epoch {self.epoch}; accepted: the key of epoch 0")
        source = self.source[rows]
        keys = rng.keys_of(self._first_key, len(self._ids))[source]
        return rng.noise_words(self._ids[source], keys, slot, 1)[:, 0]

    def streams(self, rows: Rows) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """Return ids uint64[R] and keys uint32[R, 2], for transforms that draw a variable number of words."""
        source = self.source[rows]
        return self._ids[source], np.ascontiguousarray(self.key[source])

    # -- emitting ----------------------------------------------------------------------------------------------

    def emit(
        self,
        rows: Rows,
        op: Op | npt.NDArray[np.int16],
        *args: npt.ArrayLike,
        flags: npt.ArrayLike = 0,
        fill: Sequence[int] | None = None,
        size: npt.NDArray[np.int32] | None = None,
        name: str | None = None,
    ) -> None:
        """Append an instruction to ``rows``.

        Args:
            rows: rows of the batch, without duplicates.
            op: an opcode, or an opcode per row.
            args: up to 8 arguments, broadcast over rows.
            flags: see ``Program.flags``.
            fill: color from 0 to 255, one value per channel or equal values; None: black.
            size: height and width after the instruction, int32[R, 2] or [2]; None: unchanged.
            name: the operation's name if it differs from the instruction's.

        Raises ValueError if the operation may not follow the operations so far, needs RGB images, or exceeds
        ``max_side``.
        """
        refuse_color(op, name, self.num_channels)
        if len(rows) == 0:
            return
        # Instructions after a blend run on each of its rows.
        commutes = isinstance(op, Op) and SPECS[op].commutes_with_blend
        if not commutes and self.are_blended(rows):
            raise after_blend(_title(op))
        check_place(_title(op), op, args, self.output, self.mixer_of(rows))
        if size is not None and int(np.max(size)) > self.max_side:
            height, width = np.reshape(size, (-1, 2)).max(axis=0).tolist()
            raise too_large(_title(op), height, width, self.max_side)
        self.append(rows, op, args, flags, fill, size, name)

    def append(
        self,
        rows: Rows,
        op: Op | npt.NDArray[np.int16],
        args: Sequence[npt.ArrayLike],
        flags: npt.ArrayLike = 0,
        fill: Sequence[int] | None = None,
        size: npt.NDArray[np.int32] | None = None,
        name: str | None = None,
    ) -> None:
        """Append an instruction like ``emit``, without its checks."""
        at = self.length[rows]
        if int(at.max()) >= self.slots:
            self.reserve(max(8, 2 * self.slots))
        # A flat index is several times faster than a pair of indices. Defaults are not written: unused slots have them.
        grids = self._grids
        flat = rows * grids["opcode"].shape[1] + at
        grids["opcode"].reshape(-1)[flat] = op
        if args:
            args_grid = grids["args"].reshape(-1, NUM_ARGS)
            for i, value in enumerate(args):
                args_grid[flat, i] = value
        if np.any(flags):
            grids["flags"].reshape(-1)[flat] = flags
        if fill is not None:
            grids["fill"].reshape(-1, 3)[flat] = color_of(
                f"{name or _title(op)}: fill", fill, self.num_channels, self.add
            )
        if size is not None:
            self.size[rows] = size
        grids["out_size"].reshape(-1, 2)[flat] = self.size[rows]
        if name is not None:
            grids["label"].reshape(-1)[flat] = self.name_index(name)
        self.length[rows] = at + 1

    # -- packed instructions -------------------------------------------------------------------------------------

    def append_records(self, rows: Rows, records: Sequence[Sequence[bytes]], sizes: npt.ArrayLike) -> None:
        """Append each row's instructions, packed as ``RECORD``. ``sizes``: height and width after them, int[R, 2]."""
        if not len(rows):
            return
        counts = np.array([len(each) for each in records], np.intp)
        numbers = np.frombuffer(b"".join(chain.from_iterable(records)), RECORD)
        at = np.repeat(rows, counts)
        in_row = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        place = self.length[at] + in_row
        self.reserve(int(place.max(initial=-1)) + 1)
        for name in INSTRUCTION_ARRAYS:
            self._grids[name][at, place] = numbers[name]
        self.length[rows] += counts.astype(np.int32)
        self.size[rows] = sizes

    def records_of(self, row: int, first: int) -> list[bytes]:
        """Return the instructions of a row from index ``first``, each packed as a ``RECORD``."""
        end = int(self.length[row])
        numbers = np.empty(end - first, RECORD)
        for name in INSTRUCTION_ARRAYS:
            numbers[name] = self._grids[name][row, first:end]
        return [each.tobytes() for each in numbers]

    def of_rows(self, rows: Rows) -> Sampling:
        """Copy rows of one image into a batch of that image. The copy shares the side tables."""
        images = self.source[rows[:1]]
        batch = copy(self)
        for name in ("_words", "row_ids", "row_keys"):
            batch.__dict__.pop(name, None)
        batch._grids = {name: grid[rows] for name, grid in self._grids.items()}
        for name in ("shape", "size", "length"):
            setattr(batch, name, getattr(self, name)[rows])
        for name in ("_ids", "key", "_is_mixed"):
            setattr(batch, name, getattr(self, name)[images])
        batch.source = np.zeros(len(rows), np.int32)
        batch.given = {name: values[images] for name, values in self.given.items()}
        if self._first_key is not None:
            batch._first_key = rng.keys_of(self._first_key, len(self._ids))[images]
        if self._blend_weight is not None:
            batch._blend_weight = self._blend_weight[rows]
        if self.boxes is not None:
            batch.boxes = self.boxes.of_rows(rows, int(images[0]))
        batch.partners, batch.mixes, batch._grouping, batch._alike = None, (), None, 1
        return batch

    def widen(self, rows: Rows, title: str) -> None:
        """Expand gray images among ``rows`` to three equal channels before their first instruction.

        Raises ValueError if an instruction so far would make the channels differ.
        """
        rows = rows[self.shape[rows, 2] == 1]
        opcode, args = self._grids["opcode"][rows], self._grids["args"][rows]
        for op in np.unique(opcode).tolist():
            check_equal(op, bool((args[opcode == op, 2] != 0).any()), title)
        self._grids["fill"][rows] = self._grids["fill"][rows][..., :1]
        self.shape = self.shape.copy()
        self.shape[rows, 2] = 3

    # -- blending ----------------------------------------------------------------------------------------------

    def fork(self, rows: Rows, copies: int) -> npt.NDArray[np.intp]:
        """Append ``copies`` copies of ``rows``, including their instructions. Returns the new rows, int[copies, R]."""
        start = len(self.length)
        again = np.tile(rows, copies)
        for name, grid in self._grids.items():
            self._grids[name] = np.concatenate([grid, grid[again]])
        for name in ("source", "shape", "size", "length"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(self, name)[again]]))
        self.__dict__.pop("row_ids", None)
        self.__dict__.pop("row_keys", None)
        if self.boxes is not None:
            self.boxes.fork(again)
        return np.arange(start, start + len(again)).reshape(copies, len(rows))

    def blend(self, rows: Rows, weight: npt.ArrayLike) -> None:
        """Set the blend weights of ``rows``. Other rows keep weight 1. A program has at most one blend."""
        if self._blend_weight is None:
            self._blend_weight = np.ones(len(self.length), np.float32)
        missing = np.ones(len(self.length) - len(self._blend_weight), np.float32)
        self._blend_weight = np.concatenate([self._blend_weight, missing])
        self._blend_weight[rows] = weight
        self._is_mixed[self.source[rows]] = True

    @property
    def is_blended(self) -> bool:
        return self._blend_weight is not None

    def are_blended(self, rows: Rows) -> bool:
        """Return whether any image of ``rows`` is blended from several rows."""
        return self._blend_weight is not None and bool(self._is_mixed[self.source[rows]].any())

    def check_after_blend(self, lengths: npt.NDArray[np.int32]) -> None:
        """Raise ValueError if instructions after the first ``lengths`` of blended rows may not follow a blend."""
        slot = np.arange(self.slots)
        is_new = (slot >= lengths[:, None]) & (slot < self.length[:, None]) & self._is_mixed[self.source][:, None]
        for op in np.unique(self._grids["opcode"][is_new]).tolist():
            if not SPECS[Op(op)].commutes_with_blend:
                raise after_blend(SPECS[Op(op)].name)

    def mixer_of(self, rows: Rows) -> str | None:
        """Return the name of the transform that mixed any image of ``rows`` with other samples; None if unmixed."""
        return (mixed_by(self.mixes, self.source[rows]) or None) if self.mixes else None

    def with_forks(self, rows: Rows) -> Rows:
        """Return ``rows`` and all other rows of their images."""
        if self._blend_weight is None:
            return rows
        return np.flatnonzero(np.isin(self.source, self.source[rows]))

    # -- views -------------------------------------------------------------------------------------------------

    def split(self, grouping: Grouping, num_slots: int) -> Rows:
        """Replace each image by its views, each with a separate key. Returns rows, int[images, views].

        Must be called before the first instruction.
        """
        views = grouping.places
        number, count = len(views), len(self._ids)
        self.key = rng.view_keys(self.key, views).reshape(-1, 2)
        if self._first_key is not None:
            first = rng.keys_of(self._first_key, count)
            self._first_key = rng.view_keys(first, views).reshape(-1, 2)
        for name in ("_ids", "shape", "size", "length", "_is_mixed"):
            setattr(self, name, np.repeat(getattr(self, name), number, axis=0))
        self.given = {name: np.repeat(values, number, axis=0) for name, values in self.given.items()}
        self.source = np.arange(count * number, dtype=np.int32)
        self._grids = empty_instructions(count * number, 0)
        self._num_slots = num_slots
        for name in ("_words", "row_ids", "row_keys"):
            self.__dict__.pop(name, None)
        self._grouping = grouping
        return np.arange(count * number).reshape(count, number)

    def expect(self, rows: Rows) -> None:
        """Start a group: ``rows`` are all rows that share one output format."""
        self._alike = len(rows)

    def covers_group(self, rows: Rows) -> bool:
        """Return whether ``rows`` include all images of the current group."""
        if len(rows) < self._alike or len(self.source) == len(self._ids):
            return len(rows) >= self._alike
        return len(np.unique(self.source[rows])) == self._alike

    # -- mixing ------------------------------------------------------------------------------------------------

    @property
    def instructions(self) -> dict[str, npt.NDArray[np.generic]]:
        """Per-instruction arrays of all rows, as of ``empty_instructions``."""
        return self._grids

    def mix(self, mix: Mix) -> None:
        """Mix outputs from several samples. The images are mixed as after their last instruction."""
        if len(mix.samples):
            self.mixes = [*self.mixes, mix]

    # -- the result --------------------------------------------------------------------------------------------

    def finish(self, output: Output) -> Program:
        self.reserve(1)
        blend = mixture = None
        kept: Any = slice(None)
        if self.partners is not None:
            blend, mixture, kept = join_mixes(self, self._blend_weight)
        elif self._blend_weight is not None:
            blend = Blend(target=self.source.copy(), weight=self._blend_weight)
        longest = max(1, int(self.length.max(initial=0)))
        source = self.source[kept]
        program = Program(
            **{name: np.ascontiguousarray(grid[kept, :longest]) for name, grid in self._grids.items()},  # type: ignore[arg-type]
            length=self.length[kept],
            source=source if self._grouping is None else source // np.int32(self._grouping.views),
            in_shape=self.shape[kept],
            ids=self._ids[source],
            key=self.key[source],
            output=output,
            tables=self.tables(),
            blend=blend,
            grouping=self._grouping,
            mixture=mixture,
            names=tuple(self._names),
            dropped_boxes=None if self.boxes is None else self.boxes.dropped_boxes[kept],
            min_box=None if self.boxes is None else self.boxes.min_box,
        )
        return program

    @property
    def slots(self) -> int:
        """Capacity of each row in instructions."""
        return int(self._grids["opcode"].shape[1])

    def reserve(self, slots: int) -> None:
        """Grow the capacity of each row to at least ``slots`` instructions."""
        if slots <= self.slots:
            return
        widened: dict[str, Any] = empty_instructions(len(self.length), slots)
        if self.slots:
            for name, grid in self._grids.items():
                widened[name][:, : self.slots] = grid
        self._grids = widened


def check_place(title: str, op: Any, args: Sequence[Any], output: Output, mixer: str | None = None) -> None:
    """Raise ValueError if an operation may not follow the operations so far.

    Args:
        title: the operation's name in errors.
        op, args: the instruction. ``op`` is not an ``Op`` if it differs between rows.
        output: the output format so far.
        mixer: name of a transform that mixed the images with other samples; None if unmixed.
    """
    if output.steps:
        raise after_steps(title, output.steps)
    # Only ERASE with its argument "normalized" set can write to a float output.
    if isinstance(op, Op) and op is Op.ERASE and len(args) == NUM_ARGS and np.all(args[NUM_ARGS - 1]):
        return
    if mixer:
        raise after_mixer(title, mixer)
    if output.is_float:
        raise ValueError(f"{title} after Normalize: only RandomErasing may follow it. Put Normalize last.")


def too_large(title: str, height: int, width: int, max_side: int) -> ValueError:
    """Return the error for an operation whose output is too large."""
    return ValueError(f"{title} to {height}x{width}; accepted: sides of at most {max_side:,} pixels")


def after_blend(title: str) -> ValueError:
    """Return the error for an operation that may not follow AugMix."""
    return ValueError(
        f"{title} after AugMix: images are already mixed there; only flips, quarter turns, crops, constant pads, "
        "erasing with a constant and Normalize may follow. Put it before AugMix."
    )


def after_mixer(title: str, mixer: str) -> ValueError:
    """Return the error for an operation that may not follow a mix of samples."""
    return ValueError(
        f"{title} after {mixer}: images are already mixed with others there; only Normalize may follow. "
        f"Put it before {mixer}."
    )


def after_steps(title: str, steps: tuple[object, ...]) -> ValueError:
    """Return the error for an operation after operations on the result tensor."""
    return ValueError(
        f"{title} after {steps[0]}, which is done to the finished tensor: only what is done to that as well may "
        f"follow it. Put {title} before it."
    )


def check_equal(op: int, is_random: bool, title: str) -> None:
    """Raise ValueError if an instruction can make three equal channels differ.

    ``is_random``: whether an ERASE fills with random values.
    """
    spec = SPECS.get(Op(op))
    if spec is not None and (spec.colors_gray or spec.per_channel or (op == Op.ERASE and is_random)):
        raise ValueError(
            f"{title} of a gray image after {spec.name}, which would differ between channels; accepted: "
            f"{title} before it"
        )


def _title(op: Op | npt.NDArray[np.int16]) -> str:
    return SPECS[op].name if isinstance(op, Op) else CHOICE
