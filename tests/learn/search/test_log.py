"""The log on disk: appended to, torn, cut back, and read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.learn.search.searches import SMALL, drawn, run
from variegate.learn.history import History, LogError, PopulationLog, Settings, read_log
from variegate.learn.population import Population

SETTINGS = Settings(size=3, space=SMALL, seed=1, interval=2, epochs=8)
SCORES = drawn(lost=0.2)


def write(path: Path, steps: int = 4) -> bytes:
    population = Population(SETTINGS)
    with PopulationLog(path, SETTINGS) as log:
        for _ in range(steps):
            log.append(population.advance(SCORES(population)).rows)
    return path.read_bytes()


def plain(history: History) -> list[object]:
    """NaN is not equal to itself; as JSON it is."""
    return [row.to_dict() for row in history.rows]


def test_reads_what_was_written(tmp_path: Path) -> None:
    data = write(tmp_path / "log")
    history = read_log(tmp_path / "log")
    assert history.settings == SETTINGS
    assert plain(history) == plain(run(SETTINGS, SCORES))
    assert "NaN" not in data.decode()
    assert list(json.loads(data.splitlines()[1])) == ["step", "epoch", "member", "score", "policy", "copied_from"]


def test_is_whole_after_every_torn_end_and_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    """Killed at any byte: whole steps are read, and the search goes on from them as if nothing had been."""
    path = tmp_path / "log"
    whole = write(path)
    lines = whole.splitlines(keepends=True)
    ends = [len(b"".join(lines[: 1 + 3 * step])) for step in range(5)]
    for length in {*range(0, ends[0] + 3), *range(ends[0], len(whole), 29), *ends, *(end - 1 for end in ends[1:])}:
        path.write_bytes(whole[:length])
        steps = sum(end <= length for end in ends) - 1
        if steps >= 0:
            assert len(read_log(path).steps) == steps
        steps = max(steps, 0)
        population = Population(SETTINGS)
        for _ in range(steps):
            population.advance(SCORES(population))
        with PopulationLog(path, SETTINGS, steps) as log:
            while not population.is_done:
                log.append(population.advance(SCORES(population)).rows)
        assert path.read_bytes() == whole


def test_steps_after_the_checkpoint_are_cut_off(tmp_path: Path) -> None:
    whole = write(tmp_path / "log")
    PopulationLog(tmp_path / "log", SETTINGS, steps=1).close()
    assert len(read_log(tmp_path / "log").steps) == 1
    assert whole.startswith((tmp_path / "log").read_bytes())
    PopulationLog(tmp_path / "log", SETTINGS).close()
    assert len(read_log(tmp_path / "log").steps) == 0


@pytest.mark.parametrize("content", [b"hello\n", b'{"format": "other"}\n', b"[]\n", b"\xff\xfe\n", b""])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(LogError, match="log: line 1: accepted: the settings of a search, in format variegate-"):
        read_log(tmp_path / "log")


def test_damage_before_the_end_is_named(tmp_path: Path) -> None:
    lines = write(tmp_path / "log").splitlines(keepends=True)
    (tmp_path / "log").write_bytes(b"".join([*lines[:5], b"{broken\n", *lines[6:]]))
    with pytest.raises(LogError, match=r"log: line 6: got b'\{broken'; accepted: step, epoch, member"):
        read_log(tmp_path / "log")
    (tmp_path / "log").write_bytes(b"".join([*lines[:5], *lines[6:]]))
    with pytest.raises(LogError, match="log: step 2: got 3 rows; accepted: one per member, after epoch 4"):
        read_log(tmp_path / "log")
