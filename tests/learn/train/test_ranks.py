"""A training by two processes: what it computes, what they tell each other, and how it goes on with more or fewer."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.learn.train.digits import Centring, Seen, digits, lines, losses, on_ranks, options, top1
from tests.needed import needs
from variegate.data.base import SourceError
from variegate.learn.averaging import DistError, joined
from variegate.learn.checkpoints import check_ranks
from variegate.learn.models import ModelError
from variegate.learn.trainer import train

# What two processes did is looked at by one.
pytestmark = [needs("sklearn"), pytest.mark.process, pytest.mark.xdist_group("ranks")]

# Of statistics by batch, as most models have.
NORMED: dict[str, Any] = {"model": "tests.learn.train.test_trainer:with_dropout", "batch_size": 16, "epochs": 2}
# What else a checkpoint has to hold, and what changes by the epoch.
ADAMW: dict[str, Any] = {"model": "tests.learn.train.digits:Centring", "batch_size": 16, "epochs": 3, "images": 128}
ADAMW |= {"optimizer": "adamw", "lr": 0.02, "ema": 0.9, "mixup": 0.2}
WAYS = ("sync", "periodic:4", "async")
ADAPTED: dict[str, Any] = {
    **NORMED,
    "policy": "randaugment",
    "adapt": "entropy",
    "averaging": "periodic:4",
    "epochs": 3,
}


def stopped(name: str, step: int, chosen: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs: whole-NAME, halves-NAME, cut in two by a stop after so many steps, and fewer-NAME, its first half."""
    halves = {"out": f"halves-{name}", **chosen}
    return [{"out": f"whole-{name}", **chosen}, {**halves, "stop_after": step, "kept_as": f"fewer-{name}"}, halves]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that two processes do in these tests: starting them takes the most."""
    folder = tmp_path_factory.mktemp("ranks")
    runs: list[dict[str, Any]] = [{"out": "parts", "batch_size": 8, "accumulate": 2}]
    for way in ("sync", "periodic:1"):
        runs.append({"out": f"linear-{way}", "batch_size": 16, "averaging": way, "epochs": 1, "clip": 0, "warmup": 0.2})
    for way in WAYS:
        runs.append({"out": f"learns-{way}", "batch_size": 16, "averaging": way, "epochs": 4, "lr": 0.15, "ema": 0.5})
        runs += stopped(way, 11, {**NORMED, "averaging": way, "policy": "randaugment", "images": 256})
    runs += stopped("adamw", 7, ADAMW)
    runs += stopped("adapted", 6, {**ADAPTED, "images": 128})
    on_ranks(folder, runs)
    return folder


def test_two_processes_and_small_batches_equal_one_large_batch(ran: Path, tmp_path: Path) -> None:
    source, validation = digits()
    train(source, options(tmp_path), validation=validation)
    assert losses(ran / "parts") == pytest.approx(losses(tmp_path), abs=1e-4)
    assert top1(ran / "parts") == pytest.approx(top1(tmp_path), abs=0.01)


def test_weights_averaged_in_every_step_are_those_of_averaged_gradients(ran: Path) -> None:
    """Without clipping, a step is linear in its gradients."""
    one, other = (torch.load(ran / f"linear-{way}" / "model.pt")["weights"] for way in ("sync", "periodic:1"))
    assert all(torch.allclose(one[name], other[name], atol=1e-4) for name in one)


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_of_averaging_learn(ran: Path, way: str) -> None:
    assert top1(ran / f"learns-{way}") > 0.8


@pytest.mark.parametrize("way", WAYS)
def test_a_stop_changes_nothing(ran: Path, way: str) -> None:
    assert lines(ran / f"halves-{way}") == lines(ran / f"whole-{way}")


def test_a_stop_changes_nothing_of_another_optimiser(ran: Path) -> None:
    assert lines(ran / "halves-adamw") == lines(ran / "whole-adamw")
    assert len(losses(ran / "whole-adamw")) == 12
    source, validation = digits(128)
    chosen = {name: value for name, value in ADAMW.items() if name != "images"} | {"batch_size": 32}
    train(source, options(ran / "fewer-adamw", **chosen), validation=validation)
    # The mean of two ranks' statistics is not what one process has.
    assert losses(ran / "fewer-adamw") == pytest.approx(losses(ran / "whole-adamw"), rel=0.1)


def test_all_ranks_begin_with_what_the_first_made_of_the_images(ran: Path, tmp_path: Path) -> None:
    source, validation = digits(128)
    begun: list[float] = []

    def keep(model: Centring, images: torch.Tensor) -> None:
        begun.append(images.mean().item())

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Centring, "initialize", keep)
        chosen = {name: value for name, value in ADAMW.items() if name != "images"} | {"epochs": 1}
        train(source, options(tmp_path, **chosen), validation=validation)
    offset = torch.load(ran / "whole-adamw" / "model.pt")["weights"]["offset"].item()
    assert abs(begun[0]) > 0.5
    assert offset == pytest.approx(begun[0], abs=0.3)  # of AdamW's 24 steps, each moves by at most 0.02


def test_ways_of_averaging_differ(ran: Path) -> None:
    assert len({tuple(losses(ran / f"whole-{way}")) for way in WAYS}) == 3


@pytest.mark.parametrize("way", WAYS)
def test_one_process_goes_on_with_what_is_left(ran: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number = 5 + 4 * WAYS.index(way)
    before = [one for rank in range(2) for one in json.loads((ran / f"seen-{number}-{rank}.json").read_text())]
    source, validation = digits(256)
    seen = Seen().watch(monkeypatch)
    chosen = {**NORMED, "averaging": way, "policy": "randaugment", "batch_size": 32}
    train(source, options(ran / f"fewer-{way}", **chosen), validation=validation)
    # The first epoch is over, of the second every image comes once: before the stop, or after it.
    assert len(before) == 11 * 32
    assert sorted([*before[128:176], *before[304:], *seen]) == list(range(256))
    assert losses(ran / f"fewer-{way}")[:11] == losses(ran / f"whole-{way}")[:11]
    assert len(losses(ran / f"fewer-{way}")) == 16


def test_a_checkpoint_has_a_file_for_each_rank(ran: Path) -> None:
    for way in WAYS:
        (latest,) = (ran / f"fewer-{way}" / "checkpoints").glob("step-00000011")
        assert sorted(path.name for path in latest.iterdir()) == ["facts.json", "rank-0.pt", "rank-1.pt"]


def test_ranks_adapt_together_and_go_on(ran: Path) -> None:
    assert lines(ran / "halves-adapted") == lines(ran / "whole-adapted")
    # Every image has a magnitude in the second epoch, whichever rank it trained on.
    first, second = (np.load(ran / "whole-adapted" / "magnitudes" / f"000{epoch}.npy") for epoch in range(2))
    assert (first == 0).all()
    assert (second > 0).mean() > 0.9
    assert len(set(second.tolist())) > 10


def test_one_process_goes_on_adapting(ran: Path) -> None:
    source, validation = digits(128)
    train(source, options(ran / "fewer-adapted", **{**ADAPTED, "batch_size": 32}), validation=validation)
    found, whole = lines(ran / "fewer-adapted"), lines(ran / "whole-adapted")
    assert len(losses(ran / "fewer-adapted")) == 12
    assert found[:7] == whole[:7]
    # The second epoch's magnitudes were decided before the stop.
    rest = [[line["magnitude"] for line in log if line.get("step") in (7, 8)] for log in (found, whole)]
    assert rest[0] == pytest.approx(rest[1], abs=2e-6)
    tables = [np.load(ran / f"{name}-adapted" / "magnitudes" / "0002.npy") for name in ("whole", "fewer")]
    assert np.corrcoef(tables[0], tables[1])[0, 1] > 0.5


@pytest.fixture
def first_of_two(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """As torchrun starts a process; a socket on its port."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = str(bound.getsockname()[1])
        environment = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield bound


def test_a_rank_that_never_comes(first_of_two: socket.socket) -> None:
    first_of_two.close()
    said = r"the 2 ranks did not meet at 127\.0\.0\.1:\d+ within 1 s \(.*\); start all of them"
    with pytest.raises(DistError, match=said), joined("cpu", 1.0):
        pass


def test_a_port_in_use(first_of_two: socket.socket) -> None:
    first_of_two.listen()
    with (
        pytest.raises(DistError, match=r"127\.0\.0\.1:\d+ within 1 s \(.*in use.* a port that is free"),
        joined("cpu", 1.0),
    ):
        pass


def test_a_rank_that_is_lost_within_a_model_is_no_failure_of_the_model() -> None:
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        where = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534]"
        closed = (f"{where} Connection closed by peer [127.0.0.1]:4", DistError, r"\(Connection closed by peer \[127")
        for said, kind, told in (closed, ("sizes", ModelError, "sizes")):
            with pytest.raises(kind, match=told), joined("cpu", 5.0):
                raise ModelError(f"model mine: fails on images: {said}") from RuntimeError(said)
    finally:
        torch.distributed.destroy_process_group()


def test_ranks_that_see_other_images_or_were_told_otherwise() -> None:
    first = {"source": "ab", "classes": 3, "batch_size": 16}
    check_ranks([first, dict(first)])
    with pytest.raises(SourceError, match="rank 1 has classes 2, rank 0 has 3; accepted: the same on every rank"):
        check_ranks([first, {**first, "classes": 2}])
    with pytest.raises(SourceError, match="rank 2 has --batch-size 8, rank 0 has 16"):
        check_ranks([first, first, {**first, "batch_size": 8}])
