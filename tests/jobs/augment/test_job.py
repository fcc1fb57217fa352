"""What a worker makes of items: the same bytes however they are put together, and bad samples named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.jobs.output.runs import tree
from variegate import transforms as T
from variegate.data.objects.arrays import open_arrays
from variegate.data.samples import Samples
from variegate.data.storage import open_storage
from variegate.jobs.augment import Plan
from variegate.jobs.augment import job as job_module
from variegate.jobs.augment.job import ExpansionJob, ExpansionSpec
from variegate.jobs.augment.writing import ItemOutputs
from variegate.transforms import Transform
from variegate.workers.protocol import Result


def photos(number: int = 7) -> Samples:
    rng = np.random.default_rng(3)
    images = [rng.integers(0, 256, (20 + 3 * n, 31 - 2 * n, 3)).astype(np.uint8) for n in range(number)]
    return open_arrays(images, [n % 3 for n in range(number)])


def plan(source: Any = None, transform: Transform | None = None, **settings: Any) -> Plan:
    policy = transform or T.Compose([T.RandomResizedCrop(16), T.RandAugment()])
    options = {"copies": 3, "seed": 5, "format": "png"} | settings
    return Plan(source if source is not None else photos(), policy, **options)


def run(job: ExpansionJob, start: int, stop: int) -> tuple[list[ItemOutputs | None], dict[int, str]]:
    beats: list[int] = []
    outputs, failed = job.run(range(start, stop), None, lambda: beats.append(1))
    assert len(beats) >= stop - start
    return list(outputs), failed


def test_a_sample_that_the_transform_does_not_take_is_named() -> None:
    outputs, failed = run(ExpansionJob(ExpansionSpec(plan(transform=T.RandomCrop(28)), None), "cpu", 1), 0, 7)
    assert set(failed) == {item for item in range(7) if min(20 + 3 * item, 31 - 2 * item) < 28}
    assert all("not taken by the transform" in reason for reason in failed.values())
    assert [item for item, made in enumerate(outputs) if made is None] == sorted(failed)


@pytest.mark.parametrize("layout", ["folder", "webdataset"])
def test_an_item_of_which_a_copy_fails_has_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """Also if the part was made in pieces."""
    encode = job_module.encode_image  # type: ignore[attr-defined]
    seen: list[int] = []

    def fails_once(*arguments: Any) -> bytes:
        seen.append(1)
        if len(seen) == 5:  # copy 1 of the second sample, after copy 0 of all three and copy 1 of the first
            raise ValueError("webp holds at most 16,383 pixels a side")
        return encode(*arguments)

    monkeypatch.setattr(job_module, "encode_image", fails_once)
    chosen = plan(photos(3), layout=layout, shard_size=9)
    whole, pieced = (ExpansionSpec(chosen, open_storage(tmp_path / name)) for name in ("whole", "pieced"))
    job = ExpansionJob(whole, "cpu", 1)
    outputs, failed = run(job, 0, 3)
    assert failed == {}
    assert list(outputs[0].failed) == [1]  # type: ignore[union-attr]
    monkeypatch.undo()
    job = ExpansionJob(pieced, "cpu", 1)
    pieces = [job.run(range(item, item + 1), None, lambda: None).outputs[0] for item in range(3)]
    result = Result(pieces, {1: "webp holds at most 16,383 pixels a side"})
    joined = job.join(range(3), None, result, lambda item: None)
    assert joined.outputs == outputs
    assert tree(tmp_path / "whole") == tree(tmp_path / "pieced")
    names = [path.name for path in (tmp_path / "pieced").rglob("*.*")]
    assert sum(name.endswith(".png") for name in names) == (6 if layout == "folder" else 0)
    assert sum(name.endswith(".tar") for name in names) == (layout == "webdataset")


def test_a_mistake_in_a_transform_costs_the_images_it_shows_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transform, "registry", dict(Transform.registry))

    class Odd(T.RandomHorizontalFlip):
        def sample(self, sampling: Any, rows: Any, slot: int) -> None:
            if (sampling.size[rows, 0] == 26).any():
                raise ZeroDivisionError("26")
            super().sample(sampling, rows, slot)

    outputs, failed = run(ExpansionJob(ExpansionSpec(plan(transform=Odd()), None), "cpu", 1), 0, 7)
    assert failed == {2: "not taken by the transform: ZeroDivisionError: 26"}
    assert [made is None for made in outputs] == [item == 2 for item in range(7)]


def test_no_room_on_the_device_is_nobodys_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    job = ExpansionJob(ExpansionSpec(plan(), None), "cpu", 1)

    def full(*_: object) -> None:
        raise MemoryError("none left")

    monkeypatch.setattr(job, "_augment", full)
    with pytest.raises(MemoryError):
        job.run(range(2), None, lambda: None)
