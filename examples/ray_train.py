"""Train two processes on batches made by four workers of a Ray cluster, kill some of them, and compare the losses.

``python examples/ray_train.py`` starts a Ray cluster of a head and two nodes on this machine, and trains four times by
``torchrun``: undisturbed; while workers are killed; while a node is lost; while a trainer is killed, which torchrun
restarts from a checkpoint. The losses of all four are the same to the bit. It takes a few minutes.

On a cluster of your own, start the trainers yourself. All machines must see the folders by the same paths:
``torchrun --nproc-per-node 8 --max-restarts 3 examples/ray_train.py --address auto --photos /shared/photos --out
/shared/run`` (with gloo also ``TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1``, see below). It needs Variegate's extra ``ray``.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # before Ray is imported

import numpy as np
import torch
from PIL import Image

import variegate as vg
from variegate import transforms as T

POLICY = T.Compose([
    T.RandomResizedCrop(32, scale=(0.5, 1.0)), T.RandomHorizontalFlip(), T.TrivialAugmentWide(),
    T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD),
])  # fmt: skip
TRAINERS, EPOCHS, BATCH_SIZE, CHECKPOINT_STEPS = 2, 6, 16, 5


def train(address: str, photos: Path, run: Path) -> None:
    """One rank: ``torchrun`` starts it, and starts it again from the last checkpoint."""
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(0)
    # From one to two actors per trainer: training continues while one is being replaced.
    workers = vg.RayWorkers(address, count=(1, 2), cpus=1)
    loader = vg.Loader(photos, POLICY, batch_size=BATCH_SIZE, seed=0, workers=workers)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(16, 4),
    )  # fmt: skip
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    parts: dict[str, Any] = {"loader": loader, "model": model, "optimizer": optimizer}
    step, checkpoint = 0, run / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        step = state["step"]
        for name, part in parts.items():
            part.load_state_dict(state[name])
    (run / f"pid-{rank}").write_text(str(os.getpid()))
    with open(run / f"losses-{rank}.txt", "a", encoding="ascii") as losses:
        for epoch in range(loader.epoch, EPOCHS):
            loader.set_epoch(epoch)
            for images, labels in loader:
                loss = torch.nn.functional.cross_entropy(parallel(images), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(step, float(loss).hex(), file=losses, flush=True)
                step += 1
                if rank == 0 and step % CHECKPOINT_STEPS == 0:
                    # The state of the loader is the same on every rank.
                    state = {name: part.state_dict() for name, part in parts.items()} | {"step": step}
                    torch.save(state, run / "checkpoint.new")
                    os.replace(run / "checkpoint.new", checkpoint)
    torch.distributed.destroy_process_group()


def write_photos(folder: Path, size: int = 64) -> None:
    """Cut-outs of four photos, a class each."""
    rng = np.random.default_rng(0)
    for label, photo in enumerate(vg.sample_images(4)):
        (folder / str(label)).mkdir(parents=True)
        for number in range(96):
            top, left = rng.integers(0, np.array(photo.shape[:2]) - size)
            image = Image.fromarray(photo[top : top + size, left : left + size])
            image.save(folder / str(label) / f"{number:02d}.jpg", quality=90)


def run_trainers(address: str, photos: Path, run: Path, disturb: Callable[[Path], None] | None = None) -> Any:
    """Losses of all ranks by step. ``disturb`` is called when a third of the steps is done."""
    run.mkdir()
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(TRAINERS)]
    script = [__file__, "--address", address, "--photos", str(photos), "--out", str(run)]
    # Restarted gloo trainers find what those before them left in a shared store, and wait for ever (PyTorch 2.13).
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    with open(run / "log.txt", "wb") as log:
        trainers = subprocess.Popen(
            [*launcher, "--max-restarts", "1", *script], stdout=log, stderr=subprocess.STDOUT, env=environment
        )
        try:
            while trainers.poll() is None:
                lines = count_lines(run / "losses-0.txt")
                if disturb is not None and lines >= 24:
                    disturb(run)
                    disturb = None
                time.sleep(0.02)
        finally:
            trainers.terminate()
    if trainers.returncode:
        raise SystemExit((run / "log.txt").read_text(encoding="utf-8", errors="replace"))
    assert disturb is None, "the training ended before it was disturbed"
    found: dict[tuple[int, int], str] = {}
    for rank in range(TRAINERS):
        for line in (run / f"losses-{rank}.txt").read_text(encoding="ascii").splitlines():
            step, loss = line.split()
            # A restarted trainer repeats the steps after its checkpoint.
            assert found.setdefault((int(step), rank), loss) == loss, f"step {step} was repeated with another loss"
    return found


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_actors(raylets: list[int], _: Path) -> None:
    """Kill one worker on each node."""
    for raylet in raylets:
        children = Path(f"/proc/{raylet}/task/{raylet}/children").read_text(encoding="ascii").split()
        actors = [pid for pid in children if b"_Actor" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(int(actors[0]), signal.SIGKILL)


def lose_node(raylet: int, add: Callable[[], Any], _: Path) -> None:
    """Kill the raylet of a node, with which its workers end; another node joins."""
    os.kill(raylet, signal.SIGKILL)
    add()


def kill_rank(run: Path) -> None:
    os.kill(int((run / "pid-1").read_text(encoding="ascii")), signal.SIGKILL)


def raylet_of(node: Any) -> int:
    pid: int = node.all_processes["raylet"][0].process.pid
    return pid


def main(root: Path) -> None:
    from ray.cluster_utils import Cluster

    # Two nodes on which two workers have room, besides the one that the trainers connect to.
    memory = {"object_store_memory": 100 << 20}
    cluster: Any = Cluster(True, head_node_args={"num_cpus": 0, "include_dashboard": False, **memory})
    nodes = [cluster.add_node(num_cpus=2, **memory) for _ in range(2)]
    cluster.wait_for_nodes()
    photos = root / "photos"
    write_photos(photos)
    try:
        run = partial(run_trainers, cluster.address, photos)
        expected = run(root / "undisturbed")
        steps = max(expected)[0] + 1
        for step in (0, steps - 1):
            print(f"step {step}: loss {float.fromhex(expected[step, 0]):.4f}")
        raylets = [raylet_of(node) for node in nodes]
        add = partial(cluster.add_node, num_cpus=2, **memory)
        disturbances: dict[str, Callable[[Path], None]] = {
            "two workers killed": partial(kill_actors, raylets),
            "a node lost": partial(lose_node, raylets[0], add),
            "a trainer killed": kill_rank,
        }
        for name, disturb in disturbances.items():
            same = run(root / name.replace(" ", "-"), disturb) == expected
            print(f"{name}: losses of {steps} steps equal to the bit: {same}")
            assert same
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", help="of the Ray cluster")
    parser.add_argument("--photos", type=Path, help="folder of images")
    parser.add_argument("--out", type=Path, help="folder for checkpoints and losses")
    given = parser.parse_args()
    if "RANK" in os.environ:
        train(given.address, given.photos, given.out)
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
