"""What the executor launches: how often, with which features, and from what memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.executors.poison import poisoned_executor
from tests.images import gray, photo
from tests.programs import SEMANTIC, Step, program_of, random_program, step
from tests.validating import validate
from variegate import IMAGENET_MEAN, IMAGENET_STD, Augmenter
from variegate import transforms as T
from variegate.executors.cuda.executor import CudaExecutor, PreparedLaunches, upload_images
from variegate.executors.cuda.pack import Packer
from variegate.program.depth import Depth
from variegate.program.lowering import lower
from variegate.program.ops import Op
from variegate.program.program import Program


def _prepare(
    program: Program, executor: CudaExecutor | None = None, depth: Depth = Depth.UINT8
) -> tuple[Program, PreparedLaunches]:
    program = program.for_depth(depth)
    fused = validate(lower(program, measured_once=True))
    executor = executor or poisoned_executor("cpu")
    images = [np.zeros(shape, depth.dtype) for shape in fused.in_shape[np.unique(fused.source, return_index=True)[1]]]
    return fused, executor.prepare(fused, upload_images(executor, images), np.zeros(fused.num_outputs, np.int64))


def test_no_more_launches_than_the_deepest_sample_has_passes_and_two() -> None:
    for seed in range(40):
        program, _, _ = random_program(seed, SEMANTIC)
        fused, work = _prepare(program)
        assert len(work.launches) <= int(fused.num_passes.max()) + 2, seed


def test_launches_of_randaugment_and_augmix() -> None:
    flip = T.RandomHorizontalFlip()
    last = T.Normalize(IMAGENET_MEAN, IMAGENET_STD)
    for transform, expected in (
        (T.Compose([flip, last]), ["run_pass"]),
        (T.Compose([T.RandomResizedCrop(32), flip, last]), ["prepare", "run_pass"]),
        (T.Compose([flip, T.RandAugment(2, 9), last]), ["prepare", "run_pass", "run_pass"]),
        (T.Compose([T.AugMix(), last]), ["prepare", "run_pass", "run_pass", "run_pass", "blend_rows"]),
    ):
        _, work = _prepare(Augmenter(transform).program([(48, 64)] * 64, ids=np.arange(64)))
        assert [launch.kernel.fn.__name__ for launch in work.launches] == expected


@pytest.mark.parametrize(("depth", "rounds"), [(Depth.UINT16, 1), (Depth.FLOAT32, 3)], ids=["uint16", "float32"])
def test_launches_of_percentiles_of_deep_images(depth: Depth, rounds: int) -> None:
    stretch, search = step(Op.PERCENTILE_STRETCH, 1, 99), ["search"] * rounds
    for chains, expected in (
        ([[stretch], [step(Op.EQUALIZE)]], ["prepare", *search, "run_pass"]),
        ([[step(Op.INVERT), stretch], [step(Op.INVERT)]], ["run_pass", *search, "run_pass"]),
        ([[stretch, stretch]], ["prepare", *search, "run_pass", *search, "run_pass"]),
    ):
        _, work = _prepare(program_of(chains, [photo(20, 30)] * len(chains)), depth=depth)
        assert [launch.kernel.fn.__name__ for launch in work.launches] == expected


def _passes(*chain: Step) -> int:
    program = program_of([list(chain)], [photo(20, 30)])
    return int(validate(lower(program, measured_once=True)).num_passes[0])


def test_a_contrast_is_the_first_statistic_of_its_pass() -> None:
    """The sum of lumas is measured before any table of the pass is known; counts of levels go through tables."""
    contrast, autocontrast, equalize = step(Op.CONTRAST, 0.5), step(Op.AUTOCONTRAST), step(Op.EQUALIZE)
    assert _passes(autocontrast, equalize) == 1
    assert _passes(step(Op.INVERT), contrast, equalize) == 1
    assert _passes(autocontrast, contrast) == 2
    assert _passes(contrast, contrast) == 2
    assert int(lower(program_of([[autocontrast, contrast]], [photo(20, 30)])).num_passes[0]) == 1


def test_kernels_are_compiled_for_what_a_batch_holds_and_never_unlearn() -> None:
    executor = poisoned_executor("cpu")
    image = photo(20, 30)

    def features(*chain: Step) -> dict[str, bool]:
        _, work = _prepare(program_of([list(chain)], [image]), executor)
        return {name for name, value in work.launches[-1].constants.items() if name.startswith("HAS") and value}  # type: ignore[return-value]

    assert features(step(Op.HFLIP)) == set()
    assert features(step(Op.SHARPNESS, 0.5)) == {"HAS_FILTER"}
    assert features(step(Op.HUE, 0.1)) == {"HAS_FILTER", "HAS_HUE"}
    assert features(step(Op.HFLIP)) == {"HAS_FILTER", "HAS_HUE"}


def test_the_program_travels_in_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = poisoned_executor("cpu")
    program = Augmenter(T.Compose([T.RandAugment(2, 9)])).program([(48, 64)] * 16, ids=np.arange(16))
    fused = lower(program, measured_once=True)
    placed = upload_images(executor, [photo(48, 64)] * 16)
    copied: list[int] = []
    upload = executor.memory.upload

    def counted(staging: torch.Tensor, size: int) -> torch.Tensor:
        copied.append(len(staging))
        return upload(staging, size)

    monkeypatch.setattr(executor.memory, "upload", counted)
    executor.prepare(fused, placed, np.zeros(16, np.int64))
    assert copied == [Packer(fused).uploaded]


def test_memory_known_by_address_alone_is_held() -> None:
    """Canvases and images are reached through numbers in the program; nothing else would keep them."""
    images = [photo(20, 30), gray(20, 30)]
    program = program_of([[step(Op.EQUALIZE), step(Op.SHARPNESS, 0.5), step(Op.EQUALIZE)]] * 2, images)
    executor = poisoned_executor("cpu")
    placed = upload_images(executor, images)
    work = executor.prepare(lower(program, measured_once=True), placed, np.zeros(2, np.int64))
    held = {tensor.data_ptr() for tensor in work.owners}
    assert placed.owners[0].data_ptr() in held
    assert len(work.owners) == 2


def test_a_row_must_read_an_image_of_the_batch() -> None:
    program = program_of([[step(Op.HFLIP)]] * 2, [photo(20, 30)] * 2)
    executor = poisoned_executor("cpu")
    placed = upload_images(executor, [photo(20, 30)])
    with pytest.raises(IndexError, match="not among the 1 of the batch"):
        executor.prepare(lower(program, measured_once=True), placed, np.zeros(2, np.int64))
