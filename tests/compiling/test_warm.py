"""``variegate warm``: afterwards nothing is compiled, nor even loaded, whatever is asked for on the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import variegate as vg
from tests.compiling.tiny import ROOT
from variegate import transforms as T
from variegate.apps.warm_commands import COMMANDS as COMMAND_KERNELS
from variegate.cli import main
from variegate.jobs import warm
from variegate.jobs.warm import ENTRIES, NotKeptError, Warmth, is_ready, make_ready
from variegate.program import compiled

# In a process of its own: here, other tests have loaded kernels already.
EVERYTHING = """
import io, json
import numpy as np
from PIL import Image

from variegate.jobs import warm

warm._run_everything()  # warm() would load nothing where all is on disk
warm._use_targets()

from variegate.program.compiled import KERNELS

def made_ready():
    return {
        f"{kernel.py_func.__module__.removeprefix('variegate.')}.{kernel.py_func.__name__}": sum(
            (kernel.stats.cache_hits + kernel.stats.cache_misses).values()
        )
        for kernel in KERNELS
    }

before = made_ready()
entries = warm.ENTRIES + warm.TARGET_ENTRIES
assert {name for name in entries if before.get(name) != 1} == set(), before
# One type for each argument: a kernel that is compiled twice costs the first batch seconds.
assert {name for name, number in before.items() if name.startswith("executors.cpu.") and number > 1} == set(), before

import variegate as vg
from tests.targets.test_property import GEOMETRY, MIXES
from tests.ops.examples import EXAMPLES
from variegate import transforms as T
from variegate.transforms import functional as F

rng = np.random.default_rng(0)
batches = [[rng.integers(0, 256, size, dtype=np.uint8) for size in sizes] for sizes in (
    [(37, 53, 3), (64, 64, 3)], [(37, 53, 1), (64, 64)],
)]
runs = 0

def run(t, **arguments):
    global runs
    for images in batches:
        for geometry in ("composed", "exact"):
            for layout in ("NCHW", "NHWC"):
                try:
                    vg.Augmenter(t, geometry=geometry, layout=layout, **arguments)(images, ids=[3, 4], epoch=1)
                    runs += 1
                except ValueError:  # it takes other images
                    pass

for examples in EXAMPLES.values():
    for t in examples:
        run(t)
        run(T.Compose([t, T.Normalize(0.5, 0.5)]), dtype="float16", num_threads=1)
for name in ("imagenet", "pba-cifar10", "rand-m9-mstd0.5-inc1", "trivialaugment", "augmix", "3-augment"):
    run(vg.load_policy(name))

files = []
for form in ("JPEG", "PNG"):
    file = io.BytesIO()
    Image.fromarray(batches[0][1]).save(file, form)
    files.append(file.getvalue())
t = T.Compose([T.RandomResizedCrop(24), T.RandAugment(), T.Normalize(0.5, 0.5)])
vg.Augmenter(t).decode_and_run(files)
vg.Augmenter(t).explain(id=3)
source = vg.open_source((np.zeros((8, 40, 40, 3), np.uint8), np.zeros(8, np.int64)))
for _ in vg.Loader(source, t, batch_size=4, device="cpu", shuffle=True):
    runs += 1
F.gaussian_blur(F.rotate(batches[0][0], 30.0, device="cpu"), 3, device="cpu")
F.equalize(batches[1][1], device="cpu")
sample = {"image": batches[0][0], "masks": np.zeros((1, 37, 53), np.int32), "boxes": [[1, 1, 4, 4]]}
for t in {**GEOMETRY, **MIXES}.values():
    vg.Augmenter(t)([sample] * 4, ids=range(4), partners="batch" if t in MIXES.values() else None)
    runs += 1
large = [np.zeros((900, 900, 3), np.uint8)] * 2  # written past the caches
vg.Augmenter(T.Normalize(0.5, 0.5))(large)
after = made_ready()
print(json.dumps({"runs": runs, "more": [name for name in after if after[name] != before.get(name, 0)]}))
"""


@pytest.mark.process
def test_nothing_is_left_to_compile() -> None:
    run = subprocess.run([sys.executable, "-c", EVERYTHING], capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    done = json.loads(run.stdout.splitlines()[-1])
    assert done["runs"] > 1000
    assert done["more"] == []


COMMANDS = """
import json, sys
import numpy as np
from PIL import Image

from tests.formats.annotated.made import put_coco
from pathlib import Path
from variegate.jobs import warm
from variegate.cli import main
from variegate.apps.warm_commands import COMMANDS

warm._run_everything()  # warm() would load nothing where all is on disk
warm._use_targets()
warm._use_an_index()
for use in COMMANDS.values():
    use()

from variegate.program.compiled import KERNELS

def made_ready():
    return {
        f"{kernel.py_func.__module__}.{kernel.py_func.__name__}": sum(
            (kernel.stats.cache_hits + kernel.stats.cache_misses).values()
        )
        for kernel in KERNELS
    }

before = made_ready()
folder, rng = Path(sys.argv[1]), np.random.default_rng(0)
for number in range(6):
    photo = rng.integers(0, 256, (6, 8, 3), np.uint8) if number != 5 else photo
    place = folder / "photos" / "ab"[number % 2] / f"{number}.jpg"
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(photo).resize((80, 60)).save(place)
put_coco(folder / "coco")
for name, shape in (("colour", (150, 200, 3)), ("gray", (150, 200))):
    np.save(folder / f"{name}.npy", rng.integers(0, 256, shape, np.uint8))
coco = ["augment", "coco/images", "--annotations", "coco/instances.json", "--workers", "thread", "--size", "16"]
tiles = ["--tile", "64", "--workers", "thread", "--epoch", "3"]
wanted = [
    *(["check", "photos"], ["preview", "photos"], ["index", "photos", "--out", "i.vgjpeg"]),
    *(["pack", "photos", "packed"], [*coco, "coco-1"], [*coco, "coco-2", "--format", "png"]),
]
for policy in ("imagenet", "randaugment", "augmix", "pba-cifar10", "trivialaugment", "3-augment", "none"):
    for name in ("colour", "gray"):
        wanted.append(["augment", f"{name}.npy", f"{name}-{policy}.npy", "--policy", policy, *tiles])
wanted.append(["augment", "colour.npy", "small.npy", "--policy", "none", "--size", "50", *tiles])
import os
os.chdir(folder)
codes = [main(command) for command in wanted]
after = made_ready()
print(json.dumps({"codes": codes, "more": [name for name in after if after[name] != before.get(name, 0)]}))
"""


@pytest.mark.process
def test_commands_have_nothing_left_to_compile(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", COMMANDS, tmp_path], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    done = json.loads(run.stdout.splitlines()[-1])
    assert done["codes"].count(0) >= len(done["codes"]) - 2, run.stderr  # check finds the image that is there twice
    assert done["more"] == []


@pytest.mark.process
def test_to_find_everything_there_takes_milliseconds() -> None:
    make_ready()
    probe = """
import time
from variegate.jobs.warm import is_ready
import variegate as vg
vg.Collate
seconds = []
for _ in range(5):
    began = time.process_time()
    assert is_ready()
    seconds.append(time.process_time() - began)
from variegate.program.compiled import KERNELS
assert not any(kernel.overloads for kernel in KERNELS)
print(min(seconds))
"""
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=ROOT)
    # 2 ms of processor time on a machine that has nothing else to do, 10 on one that has too much.
    assert float(run.stdout) < 0.02


def test_the_command_when_all_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    warm.warm(more=COMMAND_KERNELS)
    assert main(["warm"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith(f"all kernels are compiled already: {compiled.cache_folder()} (")
    assert main(["warm", "--json"]) == 0
    said = capsys.readouterr()
    line = json.loads(said.out)
    assert (said.err, line["event"], line["was_ready"], line["compiled"]) == ("", "done", True, 0)
    assert (line["folder"], line["bytes"] > 1e6) == (compiled.cache_folder(), True)


def test_the_command_shows_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def pretend(progress: Any, more: Any) -> Warmth:
        for done in (1, 2):
            progress(done, 104, 10.0 * done)
        return Warmth(False, 2, 71.3, "/kept", 13_100_000)

    monkeypatch.setattr(warm, "warm", pretend)
    monkeypatch.setattr("variegate.cli.preview._SAY_EVERY", 0.0)
    assert main(["warm"]) == 0
    said = capsys.readouterr()
    assert said.out == "kernels compiled in 71 s: /kept (13.1 MB)\n"
    assert said.err == "1 of about 104 kernels, 10 s\n2 of about 104 kernels, 20 s\n"
    assert main(["warm", "--json"]) == 0
    said = capsys.readouterr()
    events = [json.loads(line) for line in said.out.splitlines()]
    assert [(event["event"], event.get("done")) for event in events] == [
        ("compiling", 1),
        ("compiling", 2),
        ("done", None),
    ]
    assert said.err == ""


class Compiles:
    """Stands for an empty cache."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        monkeypatch.setattr(warm, "is_ready", lambda: False)
        monkeypatch.setattr(warm, "_folder", lambda: None)
        monkeypatch.setattr(warm, "_run_everything", self._count)

    def _count(self) -> None:
        self.times += 1


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_the_command_where_nothing_can_be_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    compiles = Compiles(monkeypatch)
    monkeypatch.setattr(compiled, "cache_folder", lambda: None)
    assert main(["warm", *arguments]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "variegate: error: kernels cannot be cached: neither variegate's own folder nor the user's cache can be "
        "written; set NUMBA_CACHE_DIR to a folder that can"
    ]
    assert compiles.times == 0


def test_a_cache_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    compiles = Compiles(monkeypatch)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "/dev/null/x")
    with pytest.raises(NotKeptError, match="NUMBA_CACHE_DIR: got '/dev/null/x', which cannot be written; accepted: "):
        warm.warm()
    assert compiles.times == 0


def test_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    compiles = Compiles(monkeypatch)
    monkeypatch.setattr(compiled.TURN, "failure", OSError(28, "No space left on device"))
    with pytest.raises(NotKeptError, match=r"kernels cannot be cached in .*: No space left on device"):
        warm.warm()
    assert compiles.times == 1


def test_entries_are_kernels() -> None:
    make_ready()
    named = {f"variegate.{name}" for name in ENTRIES}
    assert named <= {f"{kernel.py_func.__module__}.{kernel.py_func.__name__}" for kernel in compiled.KERNELS}
    assert is_ready()


def test_targets_are_made_ready_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing of them were there: once for a Collate that has targets, not for others."""
    used = []
    monkeypatch.setattr(warm, "_are_there", lambda names: names is not warm.TARGET_ENTRIES)
    monkeypatch.setattr(warm, "_use_targets", lambda: used.append(1))
    vg.Collate(T.RandomHorizontalFlip())
    assert not used
    vg.Collate(T.RandomHorizontalFlip(), targets=vg.Targets())
    assert used == [1]


# -- before workers start ----------------------------------------------------------------------------------------------

PHOTOS = [(np.zeros((8, 8, 3), np.uint8), 0)] * 4


@pytest.mark.process
def test_collate_and_as_transform_compile_where_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    compiles = Compiles(monkeypatch)
    collate = vg.Collate(T.Invert())
    assert compiles.times == 1
    vg.as_transform(T.Invert())
    assert compiles.times == 2
    for _ in DataLoader(PHOTOS, 2, num_workers=2, collate_fn=collate):
        pass
    assert compiles.times == 2


def test_a_worker_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a data set makes its transform in every worker, kernels are compiled by the first that needs them."""
    compiles = Compiles(monkeypatch)
    monkeypatch.setattr("variegate.integrations.torch_data.parent_process", lambda: object())
    vg.Collate(T.Invert())
    assert compiles.times == 0


def test_the_reference_needs_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    compiles = Compiles(monkeypatch)
    vg.Collate(T.Invert(), device="reference")
    assert compiles.times == 0


@pytest.mark.process
@pytest.mark.parametrize(("workers", "times"), [("process", 1), ("thread", 0)])
def test_an_engine_compiles_before_its_processes_start(
    monkeypatch: pytest.MonkeyPatch, workers: str, times: int
) -> None:
    compiles = Compiles(monkeypatch)
    engine = vg.Engine(["cpu:0"], workers, transform=T.Invert(), num_threads=1)
    assert len(list(engine.map([image for image, _ in PHOTOS]))) == 4
    assert compiles.times == times
