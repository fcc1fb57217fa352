"""A folder of images that a small model tells apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def stripes(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for number in range(60):
        pixels = rng.integers(60, 120, (8, 8, 3)).astype(np.uint8)
        pixels[:: 1 + number % 2] += 60
        path = tmp_path / "stripes" / ("all", "half")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return tmp_path / "stripes"
