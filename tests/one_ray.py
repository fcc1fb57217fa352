"""One Ray for all tests of a process that need one: to start it takes seconds. They share a group of xdist's, "ray"."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest

# For two cores; examples/ray_data.py asks for the same.
ARGUMENTS: dict[str, Any] = {
    "address": "local",
    "num_cpus": 2,
    "include_dashboard": False,
    "logging_level": "error",
    "log_to_driver": False,
}


@cache
def one_ray(config: pytest.Config) -> dict[str, str]:
    """What it is told by: its "address", and the "session_dir" in which its logs are. It ends with the tests."""
    ray = pytest.importorskip("ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ["RAY_TQDM_PATCH_PRINT"] = "0"  # else it replaces ``print`` for all tests after
    context = ray.init(**ARGUMENTS, object_store_memory=256 << 20)
    config.add_cleanup(ray.shutdown)
    return context.address_info
