"""What a training and a search go on from: checkpoints, and what lies beside them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from random import Random
from threading import Event

import numpy as np
import torch

from tests.learn.search.crashing import RUN
from tests.learn.train.digits import logged, options
from tests.soak.mutating import Parser, kept_folder, mutated, mutated_json
from variegate.learn.driver import LocalSearch
from variegate.learn.trainer import train

_SOURCE = (np.arange(64 * 64).astype(np.uint8).reshape(64, 8, 8, 1), np.arange(64) % 2)


def _train(out: Path, steps: int = 0) -> None:
    """So many steps, or as few as there can be."""
    stop = Event()
    if not steps:
        stop.set()
    torch.set_num_threads(1)
    given = options(out, ema=0.9, checkpoint_every=1)
    train(
        _SOURCE,
        given,
        validation=_SOURCE,
        stop=stop,
        on_event=lambda event: logged(event).get("step") == steps and stop.set(),
    )


def _search(out: Path, steps: int = 0) -> None:
    stop = Event()
    if not steps:
        stop.set()
    LocalSearch(RUN, out, ["cpu"]).run(lambda seen: seen.rows and seen.step == steps and stop.set(), stop)


@cache
def _begun(begin: Callable[[Path, int], None]) -> Path:
    out = kept_folder() / "out"
    begin(out, 2)
    return out


def _make(random: Random, folder: Path, begin: Callable[[Path, int], None], text: float) -> Path:
    """One file of what was begun, and with the chance ``text`` one of text."""
    out = folder / "out"
    shutil.copytree(_begun(begin), out)
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.stat().st_size)
    is_text = random.random() < text
    file = random.choice([one for one in files if is_text == one.suffix.startswith(".json")])
    data = file.read_bytes()
    lines = data.splitlines() if file.suffix == ".jsonl" else [data]
    if is_text and random.random() < 0.8:
        place = random.randrange(len(lines))
        lines[place] = mutated_json(json.loads(lines[place]), random)
        file.write_bytes(b"\n".join(lines) + b"\n")
    else:
        file.write_bytes(mutated(data, random))
    return out


PARSERS = (
    Parser("training", partial(_make, begin=_train, text=0.6), _train),
    Parser("search", partial(_make, begin=_search, text=0.8), _search),
)
