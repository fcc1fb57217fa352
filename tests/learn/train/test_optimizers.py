"""Optimisers and losses: what they are, and that a stop changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.children import run_python
from tests.learn.train.digits import digits, lines, losses, options, stopped_after
from tests.needed import needs
from variegate.learn.fit import MovingAverage
from variegate.learn.step import groups_by_decay, make_optimizer
from variegate.learn.trainer import train
from variegate.options.training import TrainOptions

pytestmark = needs("sklearn")


@pytest.mark.parametrize(
    ("name", "chosen"),
    [("sgd", {"lr": 0.2}), ("adamw", {"lr": 0.01}), ("adamw", {"lr": 0.01, "precision": "float16"})],
)
def test_each_learns_and_a_stop_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, chosen: dict[str, Any]
) -> None:
    monkeypatch.setattr("variegate.learn.progress._TELL_SECONDS", 0.0)
    source, validation = digits(192)
    chosen = {"optimizer": name, "weight_decay": 0.01, "epochs": 4, **chosen}
    train(source, options(tmp_path / "whole", **chosen), validation=validation)
    train(source, options(tmp_path / "parts", **chosen), validation=validation, **stopped_after(13))
    assert len(losses(tmp_path / "parts")) < 24
    train(source, options(tmp_path / "parts", **chosen), validation=validation)
    assert losses(tmp_path / "whole")[-1] < 0.97 * losses(tmp_path / "whole")[0]
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")


def test_biases_and_norms_do_not_decay_with_adamw() -> None:
    for name, decayed in (("sgd", 6), ("adamw", 2)):
        torch.manual_seed(0)
        layers = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 2))
        for weight in layers.parameters():
            torch.nn.init.ones_(weight)
            weight.grad = torch.zeros_like(weight)
        chosen: Any = {"optimizer": name, "weight_decay": 0.5, "momentum": 0.0}
        make_optimizer(layers, torch.tensor(0.1), TrainOptions(**chosen)).step()
        assert sum(bool((weight < 1).all()) for weight in layers.parameters()) == decayed


def test_frozen_weights_are_left_out() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].requires_grad_(False)
    decayed, kept = groups_by_decay(model, 0.1)
    assert (decayed["params"], kept["params"]) == ([model[0].weight], [model[0].bias])


def test_a_moving_average_forgets_how_it_began() -> None:
    module, end = torch.nn.Linear(1, 1, bias=False), torch.tensor([[2.0]])
    torch.nn.init.constant_(module.weight, 100.0)
    average = MovingAverage(module, 0.99)
    module.weight.data.copy_(end)
    for steps in range(1, 41):
        average.update(module, steps)
    assert average.module.weight.item() == pytest.approx(2.0, abs=0.01)  # type: ignore[union-attr, operator]


def test_of_a_moving_average_its_decay_is_left() -> None:
    """And less after the first steps: (1 + n) / (10 + n) after n."""
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    average = MovingAverage(model, 0.9)
    torch.nn.init.ones_(model.weight)
    found = []
    for steps in (1, 1000):
        average.update(model, steps)
        found.append(average.module.weight.item())  # type: ignore[union-attr, operator]
    assert found == pytest.approx([1 - 2 / 11, 1 - 2 / 11 * 0.9])


@pytest.mark.parametrize(
    ("name", "torchs"),
    [
        ("sgd", lambda weights, lr: torch.optim.SGD(weights, lr, 0.9, weight_decay=0.1, nesterov=True, fused=True)),
        ("adamw", lambda weights, lr: torch.optim.AdamW(weights, lr, (0.9, 0.999), weight_decay=0.1, fused=True)),
    ],
)
def test_steps_are_torchs_own(name: Any, torchs: Any) -> None:
    chosen, ends = TrainOptions(optimizer=name, weight_decay=0.1), []
    for make in (lambda model, lr: make_optimizer(model, lr, chosen), lambda model, lr: torchs(model.parameters(), lr)):
        torch.manual_seed(0)
        model, lr = torch.nn.Linear(5, 3, bias=False), torch.tensor(0.1)
        optimizer = make(model, lr)
        for step in range(4):
            optimizer.zero_grad(set_to_none=True)
            model(torch.full((2, 5), 0.1 * step)).square().sum().backward()
            optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
        assert torch.is_grad_enabled()
        ends.append([weight.detach().clone() for weight in model.parameters()])
    assert all(map(torch.equal, *ends))


@pytest.mark.process
def test_a_step_does_not_wait_for_torchs_compiler() -> None:
    """Its import takes some 5 s of processor time, as much as a short search."""
    probe = (
        "import sys, torch; from variegate.learn.step import make_sgd; from variegate.options.fit import *\n"
        "model = torch.nn.Linear(2, 2); optimizer = make_sgd(model, torch.tensor(0.1), FitOptions(epochs=1))\n"
        "model(torch.ones(1, 2)).sum().backward(); optimizer.step(); optimizer.zero_grad(); optimizer.state_dict()\n"
        "print('torch._dynamo' in sys.modules)"
    )
    assert run_python(probe).stdout == "False\n"
