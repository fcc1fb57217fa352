"""``vg.studio``: loaded from the package variegate-studio, which is installed separately."""

from __future__ import annotations

from typing import Any, NoReturn

from variegate.errors import STUDIO_MISSING


def _missing_studio(*args: Any, **options: Any) -> NoReturn:
    raise ImportError(STUDIO_MISSING)


try:
    from variegate_studio.opening import studio
except ModuleNotFoundError as error:
    if error.name != "variegate_studio":
        raise
    studio = _missing_studio
