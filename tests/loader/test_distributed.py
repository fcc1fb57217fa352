"""Two processes of torch.distributed: each finds its part by itself, they stay in step, and a resume may have another
number of them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from tests.children import start_python
from tests.loader.loading import load, pixels
from tests.loader.samples import MemorySource

pytestmark = pytest.mark.process

PROGRAM = """
import hashlib, json, os, sys
import torch.distributed as dist
from tests.loader.samples import MemorySource
from tests.loader.loading import load

out, state, steps = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("gloo")
broken = {3: b"no image", 4: b"", 5: b"no image either"}
loader = load(MemorySource(21, broken), batch_size=3, on_error="skip")
if state:
    loader.load_state_dict(state)
found = {}
for step, batch in enumerate(loader):
    # Hangs, or fails, where one rank has a batch more than the other.
    dist.barrier()
    for sample_id, image, is_padding in zip(batch.ids.tolist(), batch.images, batch.padding, strict=True):
        if not is_padding:
            found[sample_id] = hashlib.sha256(image.numpy().tobytes()).hexdigest()
    if step + 1 == steps:
        break
with open(f"{out}/{dist.get_rank()}.json", "w") as file:
    json.dump({"pixels": found, "state": loader.state_dict(), "world": loader.world_size}, file)
dist.destroy_process_group()
"""


def launch(folder: Path, program: str, processes: int, *arguments: str) -> None:
    """By torch's launcher."""
    folder.mkdir()
    script = folder / "program.py"
    script.write_text(program)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    subprocess.run(
        [*launcher, str(script), str(folder), *arguments],
        check=True,
        capture_output=True,
        timeout=240,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": "."},
    )


def fork(folder: Path, program: str, processes: int, *arguments: str) -> None:
    """In processes that find what the launcher tells its own; torch is imported already."""
    folder.mkdir()
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # type: ignore[attr-defined]
    alike = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "WORLD_SIZE": str(processes)}
    alike |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    with ExitStack() as ranks:
        began = []
        for rank in range(processes):
            surroundings = os.environ | alike | {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            began.append(ranks.enter_context(start_python(program, folder, *arguments, env=surroundings)))
            ranks.callback(began[-1].kill)
        assert [one.wait(240) for one in began] == [0] * processes


def run(begin: Callable[..., None], folder: Path, processes: int, state: Any, steps: int) -> list[dict[str, Any]]:
    begin(folder, PROGRAM, processes, json.dumps(state), str(steps))
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(processes)]


# The launcher imports torch three times.
@pytest.mark.parametrize("begin", [fork, pytest.param(launch, marks=pytest.mark.slow)])
def test_two_ranks_and_a_resume_on_one(tmp_path: Path, begin: Callable[..., None]) -> None:
    first = run(begin, tmp_path / "two", 2, None, 2)
    assert [rank["world"] for rank in first] == [2, 2]
    assert first[0]["state"] == first[1]["state"]
    assert first[0]["state"]["done"] == 12
    (rest,) = run(fork, tmp_path / "one", 1, first[0]["state"], 0)
    parts = [first[0]["pixels"], first[1]["pixels"], rest["pixels"]]
    assert sum(map(len, parts)) == 18
    expected = {
        str(sample_id): hashlib.sha256(data).hexdigest()
        for sample_id, data in pixels(load(MemorySource(21))).items()
        if sample_id - 1000 not in (3, 4, 5)
    }
    assert parts[0] | parts[1] | parts[2] == expected


DIFFERENT = """
import json, sys
import torch
import torch.distributed as dist
from torch.utils.data import RandomSampler
from tests.loader.samples import MemorySource
from tests.loader.loading import load

dist.init_process_group("gloo")
errors = []
try:
    iter(load(MemorySource(20 + dist.get_rank())))
except ValueError as error:
    errors.append(str(error))
torch.manual_seed(7)
loader = load(MemorySource(20), sampler=RandomSampler(range(20)))
ids = [i for batch in loader for i in batch.ids[~batch.padding].tolist()]
torch.manual_seed(dist.get_rank())
try:
    iter(loader)
except ValueError as error:
    errors.append(str(error))
with open(f"{sys.argv[1]}/{dist.get_rank()}.json", "w") as file:
    json.dump({"ids": ids, "errors": errors}, file)
dist.destroy_process_group()
"""


def test_ranks_that_see_different_samples_or_orders_are_told(tmp_path: Path) -> None:
    """Otherwise one of them would wait for ever, or some samples would be trained on twice, and others never."""
    fork(tmp_path / "different", DIFFERENT, 2)
    found = [json.loads((tmp_path / "different" / f"{rank}.json").read_text()) for rank in range(2)]
    assert sorted(found[0]["ids"] + found[1]["ids"]) == list(range(1000, 1020))
    for rank in range(2):
        samples, orders = found[rank]["errors"]
        assert samples.startswith("source: rank 1 has 21 samples (memory-21), rank 0 has 20 samples (memory-20)")
        assert orders.startswith("source: rank 1 has 20 samples (memory-20) in the order asked in each epoch, ")
