"""What every test shares: the ``gpu`` marker."""

from __future__ import annotations

import os

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked ``gpu`` where there is no CUDA device, unless the run says that there must be one.

    A machine meant to run them sets VARIEGATE_REQUIRE_GPU=1, so that a lost driver fails instead of passing quietly.
    """
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked or os.environ.get("VARIEGATE_REQUIRE_GPU") == "1":
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(
                pytest.mark.skip(reason="needs a CUDA device (VARIEGATE_REQUIRE_GPU=1 makes this an error)")
            )
