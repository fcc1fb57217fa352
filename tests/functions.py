"""Functions of ``F`` as transforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import variegate as vg
from variegate import transforms as T
from variegate.transforms import functional as F


def function(function: str, arguments: Mapping[str, Any]) -> T.Transform:
    """The pipeline of one function, at these arguments."""
    return vg.pipeline(lambda image: getattr(F, function)(image, **arguments))
