"""Options of runs on an engine."""

from __future__ import annotations

from typing import Literal, get_args

OnError = Literal["raise", "skip"]
ON_ERROR: tuple[OnError, ...] = get_args(OnError)
