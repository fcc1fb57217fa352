"""kill -9 of the parent and of workers, then the same command again, as a user would do it.

Quicker tests: ``tests/jobs/test_resume.py`` (files, records, manifest) and ``tests/workers/test_process.py``
(workers that are gone, or whose parent is). ``tests/soak`` is the same as a command.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.jobs.bounded import fail_after
from tests.soak.kills import Kills
from variegate.apps.demo import write_photos

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="finds workers in /proc")]
_AUGMENT = ("--copies", "20", "--size", "128", "--shard-size", "100", "--layout")
_PACK = ("--size", "100", "--shard-size", "4", "--format")
_COMMANDS: list[tuple[str, ...]] = [("augment", *_AUGMENT, layout) for layout in ("folder", "webdataset", "parquet")]
_COMMANDS += [("pack", *_PACK, format) for format in ("webdataset", "raw")]


@pytest.mark.parametrize(("command", "arguments"), [(command, list(options)) for command, *options in _COMMANDS])
def test_what_is_killed_goes_on_to_the_same_bytes(tmp_path: Path, command: str, arguments: list[str]) -> None:
    write_photos(tmp_path / "photos")
    with fail_after(600):  # some ten runs, each of which starts three processes
        kills = Kills(tmp_path / "photos", tmp_path, [*arguments, "--devices", "cpu:0,cpu:1"], 3, command=command)
        for target in ("parent", "worker") * 3:
            kills.kill(target)
        kills.complete()
    assert kills.killed["parent"] > 0
