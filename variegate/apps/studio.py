"""``vg.studio``: loaded from the package variegate-studio, which is installed separately."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from variegate.errors import STUDIO_MISSING

__all__ = ["studio"]


def _missing_studio(*args: Any, **options: Any) -> NoReturn:
    raise ImportError(STUDIO_MISSING)


studio: Callable[..., Any] = _missing_studio
try:
    from variegate_studio import opening
except ModuleNotFoundError as error:
    if error.name != "variegate_studio":
        raise
else:
    studio = opening.studio
