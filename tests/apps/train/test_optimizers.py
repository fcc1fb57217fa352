"""Optimisers and losses: what they are, and that a stop changes nothing."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.apps.train.digits import digits, lines, losses, options
from tests.needed import needs
from variegate.apps.train import TrainOptions, train
from variegate.apps.train.learner import MovingAverage
from variegate.apps.train.models import build_model
from variegate.apps.train.step import (
    OptimizerError,
    TrainingStep,
    binary_losses,
    descent,
    groups_by_decay,
    load_state,
    optimizer_of,
    state_of,
)
from variegate.augmenter.planner import MixedLabels
from variegate.options.search import Hyperparameters

pytestmark = needs("sklearn")


class CountingLamb(torch.optim.Optimizer):
    """Stands for timm's: it counts the steps of a group in the group."""

    def __init__(self, params: Any, lr: Any, betas: tuple[float, float], weight_decay: float) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            group["step"] = group.get("step", self.first()) + 1
            for weight in group["params"]:
                state = self.state[weight]
                state.setdefault("exp_avg", torch.zeros_like(weight)).lerp_(weight.grad, 1 - group["betas"][0])
                share = 1 - group["betas"][0] ** float(group["step"])
                weight -= group["lr"] * (state["exp_avg"] / share + group["weight_decay"] * weight)

    @staticmethod
    def first() -> Any:
        return 0


class CountingInTensors(CountingLamb):
    @staticmethod
    def first() -> Any:
        return torch.tensor(0.0)


def stand_in(monkeypatch: pytest.MonkeyPatch, lamb: Any) -> None:
    for name in ("timm", "timm.optim"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(importlib.import_module("timm.optim"), "Lamb", lamb, raising=False)


@pytest.mark.parametrize(
    ("name", "lamb", "chosen"),
    [
        ("sgd", None, {"decay_norms": False, "lr": 0.2}),
        ("adamw", None, {"lr": 0.01}),
        ("adamw", None, {"lr": 0.01, "decay_norms": False, "precision": "float16", "loss": "bce"}),
        ("lamb", CountingLamb, {"lr": 0.4}),
        ("lamb", CountingInTensors, {"lr": 0.4, "decay_norms": False}),
    ],
)
def test_each_learns_and_a_stop_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, lamb: Any, chosen: dict[str, Any]
) -> None:
    monkeypatch.setattr("variegate.apps.train.progress._TELL_SECONDS", 0.0)
    if lamb is not None:
        stand_in(monkeypatch, lamb)
    source, validation = digits(192)
    chosen = {"optimizer": name, "weight_decay": 0.01, "epochs": 4, **chosen}
    train(source, options(tmp_path / "whole", **chosen), validation=validation)
    stop = Event()
    tell = {"stop": stop, "tell": lambda line: stop.set() if line.get("step") == 13 else None}
    train(source, options(tmp_path / "parts", **chosen), validation=validation, **tell)
    assert len(losses(tmp_path / "parts")) < 24
    train(source, options(tmp_path / "parts", **chosen), validation=validation)
    assert losses(tmp_path / "whole")[-1] < 0.97 * losses(tmp_path / "whole")[0]
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")


def test_lamb_without_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.delitem(sys.modules, "timm.optim", raising=False)
    with pytest.raises(
        OptimizerError, match=r"optimizer: got 'lamb', which is timm's .*pip install timm; accepted wit"
    ):
        optimizer_of(torch.nn.Linear(2, 2), torch.tensor(0.1), TrainOptions(optimizer="lamb"))


@pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="needs timm")
def test_lamb_of_timm_goes_on() -> None:
    ends = []
    for stop in (None, 3):
        torch.manual_seed(0)
        model, chosen = torch.nn.Linear(4, 4), TrainOptions(optimizer="lamb", decay_norms=False)
        made = optimizer_of(model, torch.tensor(0.1), chosen)
        for step in range(6):
            made.zero_grad()
            (model(torch.eye(4) * (step + 1)) ** 2).sum().backward()
            made.step()
            if step == stop:
                kept = {name: one.clone() for name, one in state_of(made, model).items()}
                made = optimizer_of(model, torch.tensor(0.1), chosen)
                load_state(made, model, kept)
        ends.append(model.weight.detach().clone())
    assert torch.equal(*ends)


def test_biases_and_norms_can_be_left_to_themselves() -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(4, 2)
    )
    model[1].bias.requires_grad_(False)  # type: ignore[union-attr]
    decayed, kept = groups_by_decay(model, 0.1)
    assert [weight.dim() for weight in decayed["params"]] == [4, 2]
    assert [weight.dim() for weight in kept["params"]] == [1, 1, 1]
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.1, 0.0)
    for name in ("sgd", "adamw"):
        chosen: Any = {"optimizer": name, "weight_decay": 0.5, "momentum": 0.0}
        for decay_norms, moves in ((True, 5), (False, 2)):
            torch.manual_seed(0)
            layers = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 2))
            for weight in layers.parameters():
                torch.nn.init.ones_(weight)
                weight.grad = torch.zeros_like(weight)
            made = optimizer_of(layers, torch.tensor(0.1), TrainOptions(decay_norms=decay_norms, **chosen))
            made.step()
            assert sum(bool((weight < 1).all()) for weight in layers.parameters()) == moves + decay_norms


def test_bce_is_the_formula() -> None:
    scores = torch.tensor([[2.0, -1.0, 0.5], [0.0, 3.0, -2.0]])
    shares = np.array([[0.3, 0.7, 0.0], [0.15, 0.85, 0.0]])

    def by_hand(there: Any, smoothing: float) -> Any:
        wanted = np.array(there) * (1 - smoothing) + smoothing / 3
        chance = 1 / (1 + np.exp(-scores.double().numpy()))
        return -(wanted * np.log(chance) + (1 - wanted) * np.log(1 - chance)).mean(1)

    for smoothing in (0.0, 0.1):
        found = binary_losses(scores, torch.tensor([0, 2]), smoothing)
        assert found.numpy() == pytest.approx(by_hand([[1, 0, 0], [0, 0, 1]], smoothing), rel=1e-6)
        # Of mixed images, what has more than a fifth is there.
        found = binary_losses(scores, torch.from_numpy(shares), smoothing)
        assert found.numpy() == pytest.approx(by_hand([[1, 1, 0], [0, 1, 0]], smoothing), rel=1e-6)
    model = torch.nn.Identity()
    step = TrainingStep("identity", model, 3, None, label_smoothing=0.1, loss="bce")  # type: ignore[arg-type]
    mixed = MixedLabels(torch.tensor([1, 1]), torch.tensor([0, 0]), torch.tensor([0.3, 0.15]))
    assert step._losses(scores, mixed).numpy() == pytest.approx(by_hand([[1, 1, 0], [0, 1, 0]], 0.1), rel=1e-6)


def test_a_moving_average_forgets_how_it_began() -> None:
    module, end = torch.nn.Linear(1, 1, bias=False), torch.tensor([[2.0]])
    torch.nn.init.constant_(module.weight, 100.0)
    average = MovingAverage(module, 0.99)
    module.weight.data.copy_(end)
    for steps in range(1, 41):
        average.follow(module, steps)
    assert average.module.weight.item() == pytest.approx(2.0, abs=0.01)  # type: ignore[union-attr, operator]


def test_of_a_moving_average_its_decay_is_left() -> None:
    """And less after the first steps: (1 + n) / (10 + n) after n."""
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    average = MovingAverage(model, 0.9)
    torch.nn.init.ones_(model.weight)
    found = []
    for steps in (1, 1000):
        average.follow(model, steps)
        found.append(average.module.weight.item())  # type: ignore[union-attr, operator]
    assert found == pytest.approx([1 - 2 / 11, 1 - 2 / 11 * 0.9])


def test_descent_is_torchs_own_to_the_bit() -> None:
    recipe = Hyperparameters(1, weight_decay=0.01)
    ours, theirs = (build_model("wrn-10-1", 3, 3) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    lr = torch.tensor(0.1)
    more: dict[str, Any] = {"momentum": recipe.momentum, "weight_decay": recipe.weight_decay, "nesterov": True}
    pairs = [
        (ours, descent(ours, lr, recipe)),
        (theirs, torch.optim.SGD(theirs.parameters(), lr=lr, fused=True, **more)),
    ]
    images = torch.rand(4, 3, 8, 8)
    for step in range(3):
        lr.fill_(0.1 / (step + 1))
        for model, optimizer in pairs:
            optimizer.zero_grad()
            model(images).square().sum().backward()
            optimizer.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, other)
    assert str(pairs[0][1].state_dict()) == str(pairs[1][1].state_dict())
    state = pairs[1][1].state_dict()
    pairs[0][1].load_state_dict(state)
    assert pairs[0][1].state_dict()["param_groups"] == state["param_groups"]


@pytest.mark.process
def test_a_training_does_not_wait_for_the_import_of_torchs_compiler() -> None:
    probe = (
        "import sys, torch; from types import SimpleNamespace as S; from variegate.apps.train.step import descent; "
        "m = torch.nn.Linear(2, 2); o = descent(m, torch.tensor(0.1), S(momentum=0.9, weight_decay=0.1)); "
        "m(torch.ones(1, 2)).sum().backward(); o.step(); o.zero_grad(); o.load_state_dict(o.state_dict()); "
        "print('torch._dynamo' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=300)
    assert ran.stdout == "False\n"
