"""Packages without which tests are skipped; to ask for one does not import it, which takes seconds of some."""

from __future__ import annotations

import importlib.util

import pytest


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {' and '.join(missing)}")
