"""Programs of these tests are validated before and after they are lowered."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def _validated(validated: None) -> None:
    pass
