"""Programs of these tests are validated before they are lowered and after every rewrite."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def _validated(validated: None) -> None:
    pass
