"""Ray actors as workers."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from select import select
from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.images import photo
from tests.jobs.odd_files import DeadlyImage
from tests.loader.cases import everything
from tests.loader.loading import CROPPED, load
from tests.loader.samples import MemorySource
from tests.one_ray import one_ray
from tests.workers.contract import NAMES, WorkersContract, check_made, tasks
from tests.workers.toys import Toy
from variegate import transforms as T
from variegate.jobs.mapping import MapSpec
from variegate.jobs.regions.reading import HeldArray
from variegate.jobs.regions.run import ImageRun
from variegate.program.depth import Depth
from variegate.workers.ray_actors import RayPool

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module", autouse=True)
def _cluster(request: pytest.FixtureRequest) -> None:
    one_ray(request.config)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes as Linux lets one")
class TestRay(WorkersContract):
    kind: Any = RayPool
    death = "its worker process has died"
    names = NAMES[:1]  # an actor takes a second to start
    patience = 1.5

    # Several actors each, a second or two to start.
    @pytest.mark.slow
    def test_a_worker_that_hangs_is_replaced_and_an_item_that_hangs_them_all_is_named(self, folder: str) -> None:
        super().test_a_worker_that_hangs_is_replaced_and_an_item_that_hangs_them_all_is_named(folder)

    @pytest.mark.slow
    def test_a_device_that_cannot_be_opened_leaves_the_work_to_the_others(self) -> None:
        super().test_a_device_that_cannot_be_opened_leaves_the_work_to_the_others()

    def check_nothing_left(self, pid: int) -> None:
        # Ray ends actors without saying when they have ended.
        with suppress(ProcessLookupError):
            ended, _, _ = select([os.pidfd_open(pid)], [], [], 20)
            assert ended


@pytest.mark.slow
def test_actors_make_the_batches_of_the_local_loader() -> None:
    source, transform = MemorySource(50), T.Compose([CROPPED, T.Normalize(0.5, 0.25)])
    workers = vg.RayWorkers(count=(1, 2), cpus=1)
    expected = everything(load(source, transform, batch_size=24))
    assert everything(load(source, transform, batch_size=24, workers=workers)) == expected


def test_an_engine_takes_the_cluster_as_it_is() -> None:
    engine = vg.Engine(workers="ray")
    assert engine.devices == ("cpu:0",)
    assert engine.num_threads == 2
    check_made(list(engine.run(Toy(), tasks(8))), 8)


def test_tiles_are_read_in_the_object_store_and_those_of_a_lost_actor_made_again(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.touch()
    image, transform = photo(170, 230), T.Compose([T.Contrast(1.4), T.GaussianNoise()])
    engine, work = vg.Engine(["cpu:0"], "ray", num_threads=1), MapSpec(transform, 4, "float32", "NCHW", "composed")
    deadly: Any = DeadlyImage(HeldArray(image, Depth.UINT8), str(mark), 64)
    made = ImageRun(engine, work, deadly, 3, tile=64).run()
    assert not mark.exists()
    np.testing.assert_array_equal(made, vg.Augmenter(transform, seed=4)([image], ids=[3])[0].numpy())


def test_a_file_is_read_and_written_by_actors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = photo(90, 110)
    np.save(tmp_path / "a.npy", image)
    monkeypatch.chdir(tmp_path)
    assert vg.Engine(["cpu:0"], "ray", num_threads=1).map_image("a.npy", T.Invert(), out="b.npy", tile=64) is None
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), 255 - image)
