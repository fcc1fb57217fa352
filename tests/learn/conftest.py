"""Trainings of these tests share two cores with other tests; threads that wait for each other would take the most."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from variegate.learn.fit import one_thread_each


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    with one_thread_each("cpu"):
        yield
