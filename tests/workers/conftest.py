"""No test of an engine may hang."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.jobs.bounded import fail_after


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    with fail_after(60):
        yield
