"""A folder's lock, where it cannot be had."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from variegate.io.durable import WriteError
from variegate.jobs.output.run_folder import locked


def test_a_folder_in_which_nothing_can_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As below /proc, where a new file's folder is there and is not."""

    def nowhere(path: Any, *more: Any) -> int:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(os, "open", nowhere)
    with pytest.raises(WriteError, match=r"there: .*No such file or directory"), locked(tmp_path / ".lock", "there"):
        pass
