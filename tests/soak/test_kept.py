"""What Variegate finds again of its own, in small: taken, or refused in a line that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.mutating import Parser, check
from tests.soak.parsers import kept, trained


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("parser", [*kept.PARSERS, *trained.PARSERS], ids=lambda parser: parser.name)
def test_mutated_files_are_taken_or_refused(parser: Parser, tmp_path: Path) -> None:
    check(parser, 0, range(15), tmp_path)
