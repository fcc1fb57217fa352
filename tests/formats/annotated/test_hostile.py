"""Annotations that are nearly right: every sample is read or refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.mutating import check
from tests.soak.parsers.annotated import PARSERS

NAMED = {parser.name: parser for parser in PARSERS}


@pytest.mark.parametrize("name", ["outlines", "coco", "voc", "yolo", "members"])
def test_mutated_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    check(NAMED[name], 0, range(60), tmp_path)
