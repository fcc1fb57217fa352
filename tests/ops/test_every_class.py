"""What holds for every transform: it round-trips, fits every size, and draws for an image alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
import yaml

import variegate as vg
from tests import oracle
from tests.images import gray, photo
from tests.ops.examples import BY_BOXES, EXAMPLES, MIXERS
from tests.validating import validate
from variegate import transforms as T
from variegate.executors.runners.host import take_host_batch, widened
from variegate.interop import one_sample
from variegate.program.ops import LAYER_PLANES, LIGHTNESSES, LayerMode, Op
from variegate.program.program import Program

EVERY = EXAMPLES | MIXERS | BY_BOXES
every_class = pytest.mark.parametrize("name", EVERY)
# Of a single image.
every_single = pytest.mark.parametrize("name", EXAMPLES)
ODD_SIZES = [(1, 1, 3), (1, 7, 3), (7, 1, 1), (37, 53, 3), (223, 225, 3), (225, 223, 1), (2, 2, 3), (64, 64, 3)]


def test_examples_are_of_their_class() -> None:
    for name, examples in EVERY.items():
        assert {type(example).__name__ for example in examples} == {name}


@every_class
def test_round_trip(name: str) -> None:
    for transform in EVERY[name]:
        described = transform.to_dict()
        assert described["type"] == name
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
        return tables.curves[first]
    if op is Op.CONVOLVE_FLOAT:
        return tables.filters[first : first + int(args[1] * args[2] * args[3])]
    if op is Op.DISPLACE:
        return tables.grids[first : first + 2 * int(args[1] * args[2])]
    if op is Op.OVERLAY:
        planes, mode = divmod(int(program.flags[row, k]), LAYER_PLANES)
        size = 4 * LIGHTNESSES if mode == LayerMode.CURVE else int(planes * args[1] * args[2])
        return tables.grids[first:].view(np.uint8)[:size]
    return None


@every_single
def test_a_row_depends_on_its_own_image_alone(draw: Any, name: str) -> None:
    sizes = ODD_SIZES * 2
    ids = np.random.default_rng(5).permutation(1 << 20)[: len(sizes)].tolist()
    order = np.random.default_rng(6).permutation(len(sizes)).tolist()
    for transform in EXAMPLES[name]:
        together = draw(transform, sizes, ids=ids, epoch=3)
        shuffled = draw(transform, [sizes[i] for i in order], ids=[ids[i] for i in order], epoch=3)
        for position, row in enumerate(order):
            assert rows_of(shuffled, position) == rows_of(together, row)
        for row in range(5):
            alone = draw(transform, [sizes[row]], ids=[ids[row]], epoch=3)
            assert rows_of(alone, 0) == rows_of(together, row)
        assert draw(transform, []).num_rows == 0


@every_single
def test_programs_run_and_give_the_sizes_they_state(draw: Any, name: str) -> None:
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, size, np.uint8) for size in ODD_SIZES]
    for transform in EXAMPLES[name]:
        program = validate(draw(transform, ODD_SIZES, seed=7))
        # The reference executor compares each stage's size with the program's.
        outputs = oracle.run(program, widened(take_host_batch(images), program).images)
        for output, channels in zip(outputs, program.in_shape[:, 2], strict=True):
            assert np.isfinite(output).all()
            assert channels in (output.shape[0], output.shape[-1])


RANGES = {name: cls._typical_range for name, cls in T.Transform.registry.items() if cls._typical_range is not None}


@pytest.mark.parametrize("name", [name for name, typical in RANGES.items() if typical.identity is not None])
def test_the_identity_of_a_typical_range_changes_nothing(name: str) -> None:
    cls: Any = T.Transform.registry[name]
    value = RANGES[name].identity
    if cls._typical_range.build is None:
        transform = cls(**{cls._magnitude_name: int(value) if cls._magnitude_range.is_integer else value})
    else:
        transform = cls._typical_range.build(value)
    for image in (RGB, GRAY):
        out = vg.Augmenter(transform, layout="NHWC")([image, image], ids=[1, 2])
        np.testing.assert_array_equal(out[1], image)


RGB, GRAY = photo(30, 40), gray(30, 40)
# An image as a user may hold it, and its pixels.
FORMS: list[tuple[Any, Any]] = [
    (PIL.Image.fromarray(RGB), RGB),
    (PIL.Image.fromarray(GRAY[:, :, 0]), GRAY),
    (RGB, RGB),
    (GRAY[:, :, 0], GRAY),
    (torch.from_numpy(RGB).permute(2, 0, 1), RGB),
    (torch.from_numpy(GRAY).permute(2, 0, 1).contiguous(), GRAY),
]


@every_single
def test_every_form_of_an_image_is_called_as_the_augmenter_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for transform in EXAMPLES[name]:
        monkeypatch.setattr(one_sample, "_ids", one_sample.RunningIds())
        augmenter = vg.Augmenter(transform)
        for place, (image, pixels) in enumerate(FORMS):
            out = transform(image)
            assert torch.equal(out, augmenter([pixels], ids=[place])[0])
            assert out.ndim == (4 if isinstance(transform, T.FiveCrop) else 3)
