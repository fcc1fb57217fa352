"""Ray actors as workers."""

from __future__ import annotations

import os
from contextlib import suppress
from select import select

import pytest

import variegate as vg
from tests.jobs.workers.contract import NAMES, WorkersContract, check_made, tasks
from tests.jobs.workers.toys import Toy
from tests.one_ray import one_ray
from variegate.jobs.ray_workers import RayWorkers

pytestmark = [pytest.mark.process, pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module", autouse=True)
def _cluster(request: pytest.FixtureRequest) -> None:
    one_ray(request.config)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes as Linux lets one")
class TestRay(WorkersContract):
    kind = RayWorkers
    death = "its worker process has died"
    names = NAMES[:1]  # an actor takes a second to start
    patience = 1.5

    def check_nothing_left(self, pid: int) -> None:
        # Ray ends actors without saying when they have ended.
        with suppress(ProcessLookupError):
            ended, _, _ = select([os.pidfd_open(pid)], [], [], 20)
            assert ended


def test_an_engine_takes_the_cluster_as_it_is() -> None:
    engine = vg.Engine(workers="ray")
    assert engine.devices == ("cpu:0",)
    assert engine.num_threads == 2
    check_made(list(engine.run(Toy(), tasks(8))), 8)
