"""Two gloo processes, each way of keeping them together: steps per second, what is learnt, and what is sent.

What is sent is counted by the kernel: the bytes that left each TCP socket of the process (TCP_INFO), gloo's among them.
"""

from __future__ import annotations

import os
import socket
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.process import Process
from benchmarks.training.watching import at_each_step, serve
from variegate.apps.train import TrainOptions, train
from variegate.apps.train.learner import Learner

# tcpi_bytes_sent in struct tcp_info of Linux 4.19 and later.
_BYTES_SENT, _LENGTH = 200, 232
TRAINED = 1280
WARM_UP = 24  # steps, after those in which the learning rate rises and all ways send the same


def bytes_sent() -> int:
    """By all TCP sockets of this process, from their beginning."""
    total = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as one:
                told = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH)
        except OSError:  # closed meanwhile, or of another kind
            continue
        if len(told) >= _BYTES_SENT + 8:
            total += struct.unpack_from("=Q", told, _BYTES_SENT)[0]
    return total


def by_formula(parameters: int, options: TrainOptions, ranks: int) -> float:
    """Bytes a step that a rank sends: an all-reduce in a ring sends 2 (n - 1) / n of float32 numbers. What is split is
    gathered twice and its gradients are added up once, (n - 1) / n each time."""
    times = 3 if options.shard else 2
    return 4 * parameters * times * (ranks - 1) / ranks / max(1, options.period)


def answer(config: dict[str, Any]) -> dict[str, Any]:
    """One rank's part."""
    from sklearn.datasets import load_digits

    torch.set_num_threads(1)
    found = load_digits()
    pixels, labels = (found.images * 15.9).astype(np.uint8)[..., None], found.target.astype(np.int64)
    seen: list[tuple[float, int, int]] = []
    sizes: list[int] = []

    def look(learner: Learner, steps: int) -> None:
        sizes.append(sum(weight.numel() for weight in learner.module.parameters()))
        if not seen and steps >= WARM_UP:
            seen.append((time.perf_counter(), bytes_sent(), steps))
        if seen:
            del seen[1:]
            seen.append((time.perf_counter(), bytes_sent(), steps))

    at_each_step(look)
    options = TrainOptions(
        model=config["model"],
        policy="crop",
        padding=1,
        epochs=config["epochs"],
        warmup=1.0,
        batch_size=32 // config["accumulate"],
        lr=0.1,
        device="cpu",
        threads=1,
        out=Path(config["out"]),
        **{name: config[name] for name in ("averaging", "accumulate", "shard")},
    )
    rest = (pixels[TRAINED:], labels[TRAINED:])
    losses: list[float] = []
    last = train(
        (pixels[:TRAINED], labels[:TRAINED]),
        options,
        validation=rest,
        tell=lambda line: losses.append(line["loss"]) if "loss" in line else None,
    )
    (begun, before, first), (ended, after, end) = seen[0], seen[-1]
    return {
        "steps_per_second": (end - first) / (ended - begun),
        "sent": (after - before) / (end - first),
        "formula": by_formula(sizes[0], options, 2),
        "loss": statistics.mean(losses[-TRAINED // 64 :]) if losses else None,
        "top1": last.get("top1"),
    }


def on_two(config: dict[str, Any]) -> dict[str, Any]:
    """The answer of rank 0. Raises RuntimeError."""
    with tempfile.TemporaryDirectory() as folder:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            port = str(bound.getsockname()[1])
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
        told = {**config, "out": str(Path(folder, "out"))}
        begun = [
            Process(sys.executable, told, "benchmarks.training.ranks", where | {"RANK": str(rank)}) for rank in range(2)
        ]
        try:
            for one in begun:
                one.send({"command": "train"})
            every = [one.receive(600) for one in begun]
            return every[0]
        finally:
            for one in begun:
                one.close()


if __name__ == "__main__":
    serve(answer)
