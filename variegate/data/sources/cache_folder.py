"""Where files that can be made again are kept: VARIEGATE_CACHE, or the user's folder for such files."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """``given``, or the variable, or the platform's place. It need not be there yet."""
    if given is not None:
        return Path(given).expanduser()
    if from_environment := os.environ.get("VARIEGATE_CACHE"):
        return Path(from_environment).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "variegate"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "variegate"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "variegate"
