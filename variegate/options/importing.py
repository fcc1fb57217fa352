"""Import modules that a user names on a command line, such as custom operations."""

from __future__ import annotations

import importlib
from typing import Any


def import_user_module(option: str, name: str) -> Any:
    """The module. Raises ValueError where it cannot be imported."""
    accepted = "a module that can be imported, such as one of a folder in PYTHONPATH"
    try:
        return importlib.import_module(name)
    except Exception as error:  # a module is anybody's code
        raise ValueError(f"{option}: got {name!r} ({type(error).__name__}: {error}); accepted: {accepted}") from error


def import_modules(names: str | None) -> None:
    """Import modules separated by commas. Raises ValueError."""
    for name in (names or "").split(","):
        if name.strip():
            import_user_module("import", name.strip())
