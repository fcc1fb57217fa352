"""Models by name, and what a Wide ResNet is made of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from variegate.learn.models import ModelError, WideResNet, build_model, model_to_train


# The sizes that the paper and others give for 10 classes, in millions of parameters.
@pytest.mark.parametrize(
    ("name", "millions"), [("wrn-28-2", 1.5), ("wrn-40-2", 2.2), ("wrn-16-1", 0.2), ("wrn-16-8", 11.0)]
)
def test_sizes_are_those_of_the_paper(name: str, millions: float) -> None:
    count = sum(parameter.numel() for parameter in build_model(name, 10).parameters())
    assert count / 1e6 == pytest.approx(millions, abs=0.06)


@pytest.mark.parametrize("side", [4, 8, 15, 32])
def test_any_side_gives_scores(side: int) -> None:
    model = WideResNet(10, 1, 7, in_channels=1)
    assert model(torch.zeros(3, 1, side, side)).shape == (3, 7)


def test_depth_counts_the_layers_with_weights() -> None:
    model = WideResNet(16, 2, 10)
    sizes = [module.kernel_size for module in model.modules() if isinstance(module, nn.Conv2d)]
    # The paper counts the three shortcuts of 1x1 instead of the last layer: 13 + 3.
    assert sizes.count((3, 3)) == 13
    assert sizes.count((1, 1)) == 3


def test_the_same_seed_makes_the_same_model() -> None:
    made = []
    for _ in range(2):
        torch.manual_seed(3)
        made.append(build_model("wrn-10-1", 4).state_dict())
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])


def test_a_factory_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_nets.py").write_text(
        "from torch import nn\n"
        "class Nets:\n"
        "    @staticmethod\n"
        "    def tiny(num_classes):\n"
        "        return nn.Sequential(nn.Flatten(), nn.Linear(48, num_classes))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert build_model("my_nets:Nets.tiny", 5)(torch.zeros(2, 3, 4, 4)).shape == (2, 5)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("resnet", r"model: got 'resnet'; accepted: wrn-DEPTH-WIDTH"),
        ("wrn-27-2", r"model wrn-27-2: depth: got 27; accepted: 6n \+ 4"),
        ("wrn-28-0", r"width: got 0"),
        ("timm:", r"model: got 'timm:'"),
        ("no.such.module:net", r"No module named 'no'"),
        ("torch.nn:Nonsense", r"has no attribute 'Nonsense'"),
        ("torch.nn:Linear", r"Linear\(num_classes=5\) failed"),
        ("builtins:dict", r"dict gave a dict; accepted: a torch.nn.Module"),
    ],
)
def test_models_that_cannot_be_made_are_named(name: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        build_model(name, 5)


@pytest.mark.parametrize(
    ("file", "name", "said"),
    [
        ("mine_torn.py", "mine_torn:net", r"model mine_torn:net: mine_torn cannot be imported \(SyntaxError: invalid"),
        ("timm.py", "timm:resnet18", r"model timm:resnet18: timm cannot be imported \(RuntimeError: no libfoo\)"),
    ],
)
def test_modules_that_cannot_be_imported_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, name: str, said: str
) -> None:
    (tmp_path / file).write_text("raise RuntimeError('no libfoo')" if file == "timm.py" else "def net(:")
    monkeypatch.syspath_prepend(tmp_path)
    for module in [one for one in sys.modules if one.partition(".")[0] == "timm"]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ModelError, match=said):
        build_model(name, 5)


def test_layers_without_a_size_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_lazy.py").write_text(
        "from torch import nn\ndef net(num_classes):\n    return nn.LazyLinear(num_classes)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelError, match=r"model mine_lazy:net: has layers that learn their sizes from images"):
        model_to_train("mine_lazy:net", 5, 3, "cpu", 0)
