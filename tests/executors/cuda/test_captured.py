"""A captured run: one set of launches and memory for many programs. Here launches repeat; on a GPU a graph does it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.executors.poison import poisoned_executor
from tests.images import gray, photo
from variegate import IMAGENET_MEAN, IMAGENET_STD, Augmenter
from variegate import transforms as T
from variegate.executors.cpu import executor as cpu
from variegate.executors.cuda.executor import CapturedRun
from variegate.executors.cuda.images import DeviceImages, place_tensor
from variegate.program.lowering import lower
from variegate.program.program import Program
from variegate.transforms import Transform

IMAGES = np.stack([photo(23, 40), photo(23, 40, "coffee"), photo(23, 40, "chelsea")])
NORMALIZE = T.Normalize(IMAGENET_MEAN, IMAGENET_STD)
POLICIES: dict[str, Transform] = {
    "RandAugment": T.Compose([T.RandomHorizontalFlip(), T.RandAugment(3, 9), NORMALIZE]),
    "AugMix": T.AugMix(interpolation="nearest"),
    "crop": T.Compose([T.RandomResizedCrop(12), T.TrivialAugmentWide()]),
}


def _programs(transform: Transform, first: int, number: int, shape: tuple[int, ...] = (23, 40, 3)) -> list[Program]:
    augmenter = Augmenter(transform)
    return [augmenter.program([shape] * 3, ids=[0, 1, 2], epoch=first + e) for e in range(number)]


def _placed() -> DeviceImages:
    return place_tensor(torch.from_numpy(IMAGES), is_channels_last=True)


@pytest.mark.parametrize("name", POLICIES)
def test_new_programs_run_in_the_same_memory(name: str) -> None:
    transform = POLICIES[name]
    samples = [lower(program, measured_once=True) for program in _programs(transform, 0, 12)]
    captured = CapturedRun(poisoned_executor("cpu"), samples, _placed())
    output, ran = captured.output, []
    for program in _programs(transform, 100, 5):
        ran.append(captured.run(lower(program, measured_once=True)))
        for out, wanted in zip(output, cpu.run(program, list(IMAGES), 1), strict=True):
            np.testing.assert_array_equal(out.numpy(), wanted)
    assert captured.output is output
    assert sum(ran) >= 3, "most programs fit into the room of others"


def test_a_program_that_does_not_fit_is_launched_by_itself() -> None:
    flips = [lower(program, measured_once=True) for program in _programs(T.RandomHorizontalFlip(), 0, 4)]
    captured = CapturedRun(poisoned_executor("cpu"), flips, _placed())
    for chain in ([T.Equalize()], [T.Sharpness(1.5)], [T.Invert(), T.Contrast(0.5), T.Sharpness(0.5), T.Equalize()]):
        program = _programs(T.Compose(chain), 0, 1)[0]
        assert not captured.run(lower(program, measured_once=True))
        for out, wanted in zip(captured.output, cpu.run(program, list(IMAGES), 1), strict=True):
            np.testing.assert_array_equal(out.numpy(), wanted)
    # And what had been there still runs.
    assert captured.run(flips[0])
    np.testing.assert_array_equal(captured.output.numpy(), np.stack(cpu.run(flips[0], list(IMAGES), 1)))


def test_new_images_are_read_by_the_next_run() -> None:
    images = torch.from_numpy(IMAGES.copy())
    programs = [lower(p, measured_once=True) for p in _programs(T.Compose([T.Equalize()]), 0, 2)]
    captured = CapturedRun(poisoned_executor("cpu"), programs, place_tensor(images, is_channels_last=True))
    images.copy_(torch.from_numpy(IMAGES[::-1].copy()))
    captured.run(programs[0])
    wanted = cpu.run(_programs(T.Compose([T.Equalize()]), 0, 1)[0], list(IMAGES[::-1]), 1)
    np.testing.assert_array_equal(captured.output.numpy(), np.stack(wanted))


def test_outputs_of_several_shapes_are_refused() -> None:
    ragged = Augmenter(T.Invert()).program([photo(9, 9), gray(9, 9)], ids=[0, 1])
    with pytest.raises(ValueError, match="capture: outputs differ in shape; accepted: a transform that makes them all"):
        CapturedRun(poisoned_executor("cpu"), [lower(ragged, measured_once=True)], _placed())


def test_only_cuda_devices_capture() -> None:
    with pytest.raises(ValueError, match="capture: this Augmenter runs on 'cpu'; accepted: one on a CUDA device"):
        Augmenter(T.Invert()).capture(IMAGES)
