"""For a process of its own: a small search over and over, killed at each of its system calls in turn, and then again.

Prints a line of JSON: how many places there were to be killed at, and what went wrong.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import torch

from tests.jobs.resuming import KILLED, fail_at, in_a_child
from tests.learn.search.runs import contents, small_run
from variegate.learn.driver import LocalSearch
from variegate.learn.events import SearchProgress
from variegate.learn.policy import SearchSpace

torch.set_num_threads(1)
SPACE = SearchSpace(("Rotate", "Invert"), copies=1, space="pba-relative")
RUN = replace(small_run(size=2, interval=1, epochs=3, space=SPACE), model="tests.learn.search.crashing:linear")


def linear(num_classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 3, num_classes))


def search(place: Path) -> None:
    """Beside the place it is noted which steps it set out for, and which it said were over."""

    def note(progress: SearchProgress) -> None:
        with open(place.with_suffix(".told"), "a", encoding="ascii") as told:
            told.write(f"{'over' if progress.rows else 'towards'} {progress.step}\n")

    LocalSearch(RUN, place, ["cpu"]).run(note)


def killed_search(place: Path, step: int) -> int:
    def act() -> None:
        fail_at(step, is_kill=True)
        search(place)

    return in_a_child(act)


def seen_wrong(place: Path, whole: dict[str, bytes]) -> list[str]:
    """What nobody may ever see there, at whatever moment."""
    found = contents(place) if place.is_dir() else {}
    wrong = [
        f"{name} is not whole"
        for name in ("search.json", "schedule.json")
        if found.get(name, whole[name]) != whole[name]
    ]
    if "schedule.json" in found and found["population.jsonl"] != whole["population.jsonl"]:
        wrong.append("a schedule without its log")
    return wrong


def trained_again(place: Path) -> list[str]:
    """No step may be trained again once it was said to be over."""
    told = place.with_suffix(".told")
    lines = [line.split() for line in told.read_text(encoding="ascii").splitlines()] if told.exists() else []
    over, wrong = 0, []
    for what, number in lines:
        if what == "over":
            over = int(number)
        elif int(number) < over:
            wrong.append(f"step {over} was trained again")
    return wrong


def main(root: Path, every: int) -> None:
    """``every``: 1 for each system call, 5 for every fifth."""
    search(root / "whole")
    whole = contents(root / "whole")
    place = root / "out"
    wrong: list[str] = []
    step, code = 0, KILLED
    while code == KILLED:
        step += every
        shutil.rmtree(place, ignore_errors=True)
        place.with_suffix(".told").unlink(missing_ok=True)
        code = killed_search(place, step)
        wrong += [f"killed at {step}: {what}" for what in seen_wrong(place, whole)]
        # Now and then the next life is killed too, somewhere else each time.
        if step % 3 == 0:
            second = killed_search(place, 1 + step * 7 % 41)
            wrong += [f"killed at {step} and then: {what}" for what in seen_wrong(place, whole)]
            wrong += [f"killed at {step}, then it failed"] if second not in (0, KILLED) else []
        search(place)
        if contents(place) != whole:
            wrong.append(f"killed at {step}, it ended with {sorted(contents(place))}")
        wrong += [f"killed at {step}: {what}" for what in trained_again(place)]
    if code != 0:
        wrong.append(f"not killed, it ended with {code}")
    print(json.dumps({"steps": step - every, "wrong": wrong}))
