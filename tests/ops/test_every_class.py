"""What holds for every transform: it round-trips, fits every size, and draws for an image alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import yaml

from tests import oracle
from tests.ops.examples import BY_BOXES, EXAMPLES, MIXERS
from tests.validating import validate
from variegate import transforms as T
from variegate.executors.runners.host import take_host_batch, widened
from variegate.program.ops import LAYER_PLANES, LIGHTNESSES, LayerMode, Op
from variegate.program.program import Program

CASES = [
    pytest.param(example, id=f"{name}-{i}") for name, examples in EXAMPLES.items() for i, example in enumerate(examples)
]
ALONE_NOT = [example for examples in (MIXERS | BY_BOXES).values() for example in examples]
ODD_SIZES = [(1, 1, 3), (1, 7, 3), (7, 1, 1), (37, 53, 3), (223, 225, 3), (225, 223, 1), (2, 2, 3), (64, 64, 3)]


def test_examples_are_of_their_class() -> None:
    for name, examples in (EXAMPLES | MIXERS | BY_BOXES).items():
        assert {type(example).__name__ for example in examples} == {name}


@pytest.mark.parametrize("transform", [*CASES, *ALONE_NOT])
def test_round_trip(transform: T.Transform) -> None:
    described = transform.to_dict()
    assert described["type"] == type(transform).__name__
    for again in (described, json.loads(json.dumps(described)), yaml.safe_load(yaml.safe_dump(described))):
        revived = T.from_dict(again)
        assert revived == transform
        assert revived.to_dict() == described
        assert revived.num_slots == transform.num_slots


def test_defaults_are_left_out() -> None:
    assert T.RandomAffine(10).to_dict() == {"type": "RandomAffine", "degrees": [-10, 10]}
    assert T.Rotate(10).to_dict() == {"type": "Rotate", "degrees": 10}
    assert T.RandomErasing().to_dict() == {"type": "RandomErasing"}


def rows_of(program: Program, row: int) -> tuple[Any, ...]:
    """Content of a row, with entries of the side tables in the place of their indices."""
    n = int(program.length[row])
    args = program.args[row, :n].copy()
    tables = []
    for k in range(n):
        table = table_of(program, row, k)
        if table is not None:
            tables.append(table.tolist())
            args[k, 0] = 0
    return (
        program.opcode[row, :n].tolist(),
        np.nan_to_num(args, nan=-1.0).tolist(),
        program.flags[row, :n].tolist(),
        program.fill[row, :n].tolist(),
        program.out_size[row, :n].tolist(),
        tables,
    )


def table_of(program: Program, row: int, k: int) -> Any:
    """Entries of the side table that an instruction's first argument refers to; None for other instructions."""
    op, args, tables = Op(int(program.opcode[row, k])), program.args[row, k].tolist(), program.tables
    first = int(args[0]) if op in (Op.ERASE, Op.LUT, Op.CONVOLVE_FLOAT, Op.DISPLACE, Op.OVERLAY) else 0
    if op is Op.ERASE:
        return tables.rectangles[first : first + int(args[1])]
    if op is Op.LUT:
        return tables.luts[first]
    if op is Op.CONVOLVE_FLOAT:
        return tables.filters[first : first + int(args[1] * args[2] * args[3])]
    if op is Op.DISPLACE:
        return tables.grids[first : first + 2 * int(args[1] * args[2])]
    if op is Op.OVERLAY:
        planes, mode = divmod(int(program.flags[row, k]), LAYER_PLANES)
        size = 4 * LIGHTNESSES if mode == LayerMode.CURVE else int(planes * args[1] * args[2])
        return tables.grids[first:].view(np.uint8)[:size]
    return None


@pytest.mark.parametrize("transform", CASES)
def test_a_row_depends_on_its_own_image_alone(draw: Any, transform: T.Transform) -> None:
    sizes = ODD_SIZES * 4
    ids = [int(i) for i in np.random.default_rng(5).permutation(1 << 20)[: len(sizes)]]
    together = draw(transform, sizes, ids=ids, epoch=3)
    order = np.random.default_rng(6).permutation(len(sizes))
    shuffled = draw(transform, [sizes[i] for i in order], ids=[ids[i] for i in order], epoch=3)
    for position, row in enumerate(order):
        assert rows_of(shuffled, position) == rows_of(together, int(row))
    for row in range(8):
        assert rows_of(draw(transform, [sizes[row]], ids=[ids[row]], epoch=3), 0) == rows_of(together, row)


@pytest.mark.parametrize("transform", CASES)
def test_programs_run_and_give_the_sizes_they_state(draw: Any, transform: T.Transform) -> None:
    program = validate(draw(transform, ODD_SIZES, seed=7))
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, size, np.uint8) for size in ODD_SIZES]
    # The reference executor compares each stage's size with the program's.
    outputs = oracle.run(program, widened(take_host_batch(images), program).images)
    assert len(outputs) == len(ODD_SIZES)
    for output, channels in zip(outputs, program.in_shape[:, 2], strict=True):
        assert np.isfinite(output).all()
        assert channels in (output.shape[0], output.shape[-1])


@pytest.mark.parametrize("transform", CASES)
def test_a_batch_may_be_empty(draw: Any, transform: T.Transform) -> None:
    assert draw(transform, []).num_rows == 0
