"""For a process of its own: a small run over and over, killed at each of its system calls in turn, and then again.

Prints a line of JSON: how many places there were to be killed at, and what went wrong.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.jobs.output.runs import COPIES, ITEMS, file_of, run, tree
from variegate.jobs.output.journal import Journal

CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "rmdir", "ftruncate")
KILLED = 9


def killed_at(step: int) -> None:
    """Make the process end at its call number ``step``; one that writes gets half of it done."""
    count = 0

    def counted(real: Callable[..., Any], is_write: bool) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                if is_write:
                    real(arguments[0], memoryview(arguments[1])[: len(arguments[1]) // 2])
                os._exit(KILLED)
            return real(*arguments, **options)

        return call

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name), name == "write"))


def in_a_child(act: Callable[[], Any]) -> int:
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def seen_wrong(place: Path, whole: dict[str, bytes | None], lost: tuple[str, ...] = ()) -> list[str]:
    """What nobody may ever see there, at whatever moment; but for what was ``lost`` before."""
    found = tree(place) if place.exists() else {}
    outputs = [file_of(item, copy) for item in range(ITEMS) for copy in range(COPIES)]
    wrong = [f"{name} is not whole" for name in found if name in whole and found[name] != whole[name]]
    wrong = [what for what in wrong if not what.startswith(lost)] if lost else wrong
    if "manifest.parquet" in found:
        wrong += [f"{name} is listed and missing" for name in outputs if name not in (*found, *lost)]
    if "variegate.json" not in found:
        wrong += [f"{name} is there without settings" for name in outputs if name in found]
    return wrong


def killed_run(place: Path, step: int, kind: str) -> int:
    def act() -> None:
        killed_at(step)
        run(place, resume=kind != "again")

    return in_a_child(act)


def lay(kind: str, root: Path, place: Path) -> None:
    """What the run that is to be killed finds."""
    shutil.rmtree(place, ignore_errors=True)
    if kind == "fresh":
        return
    shutil.copytree(root / ("begun" if kind == "begun" else "whole"), place)
    if kind in ("lost", "begun"):
        (place / LOST[0]).unlink()
        (place / LOST[1]).write_bytes(b"cut")


def begin(place: Path) -> None:
    """A run of which all but one item is done, and in its journal."""

    def act() -> None:
        count = 0
        real = Journal.append

        def append(self: Journal, *arguments: Any) -> None:
            nonlocal count
            real(self, *arguments)
            count += 1
            if count == ITEMS - 1:
                self.flush()
                os._exit(KILLED)

        Journal.append = append  # type: ignore[method-assign, assignment]
        run(place)

    assert in_a_child(act) == KILLED


LOST = (file_of(2, 1), file_of(3, 0))


def main(root: Path, kind: str, every: int) -> None:
    """Of a run that begins ("fresh"); of one that is complete and done again without resuming ("again"), or has lost
    outputs ("lost"); of one that was killed and has lost outputs ("begun"). Killed at every ``every``-th system call.
    """
    run(root / "whole")
    begin(root / "begun")
    whole = tree(root / "whole")
    place = root / "out"
    unseen = LOST if kind in ("lost", "begun") else ()
    wrong: list[str] = []
    step, code = 0, KILLED
    gc.freeze()  # so that children copy less memory
    while code == KILLED:
        step += every
        lay(kind, root, place)
        code = killed_run(place, step, kind)
        wrong += [f"killed at {step}: {what}" for what in seen_wrong(place, whole, unseen)]
        # Now and then the next life is killed too, somewhere else each time.
        if step % 3 == 0:
            second = killed_run(place, 1 + step * 7 % 41, "resumed" if kind == "again" else kind)
            wrong += [f"killed at {step} and then: {what}" for what in seen_wrong(place, whole, unseen)]
            wrong += [f"killed at {step}, then it failed"] if second not in (0, KILLED) else []
        run(place)
        if tree(place) != whole:
            wrong.append(f"killed at {step}, it ended with {sorted(tree(place))}")
    if code != 0:
        wrong.append(f"not killed, it ended with {code}")
    print(json.dumps({"steps": step - every, "wrong": wrong}))
