"""``vg.load_model``: a file is a model that scores as its run did, and runs nothing that it names."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import variegate as vg
from tests.learn.train.digits import PLAIN, digits, options, top1, without_statistics
from tests.needed import needs
from variegate import transforms as T
from variegate.learn.models import ModelError, build_model
from variegate.learn.trainer import train

pytestmark = needs("sklearn")

SMALL: dict[str, Any] = {"model": "wrn-10-1", "epochs": 2, "lr": 0.1}


def accuracy(loaded: Any, source: Any, batch_size: int = 32) -> float:
    model, scoring, _ = loaded
    right, total = 0, 0
    with torch.inference_mode():
        for images, labels in vg.Loader(source, scoring, batch_size, "cpu", shuffle=False):
            right, total = right + int((model(images).argmax(1) == labels).sum()), total + len(labels)
    return right / total


@pytest.mark.parametrize("changes", [{}, {"ema": 0.8}, {"model": "airbench-94x0.05", "size": "12"}])
def test_it_scores_as_the_last_scoring_did(tmp_path: Path, changes: dict[str, Any]) -> None:
    source, validation = digits(256)
    train(source, options(tmp_path, **{**SMALL, **changes}), validation=validation)
    loaded = vg.load_model(tmp_path / "model.pt")
    assert accuracy(loaded, validation) == top1(tmp_path)
    model, scoring, classes = vg.load_model(str(tmp_path), device="cpu")  # the folder is enough
    assert not model.training
    assert classes == tuple("0123456789")
    side = 12 if "size" in changes else 8
    # A photo of any size and mode, and a batch.
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 30, 3)).astype(np.uint8))
    assert scoring(photo).shape == (1, side, side)
    assert classes[model(scoring(photo)[None]).argmax()] in classes
    batch = vg.Augmenter(scoring, "cpu")(validation[0][:4])
    assert isinstance(batch, torch.Tensor)
    assert torch.equal(batch[3], scoring(validation[0][3]))


def test_colors_and_other_sides(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (48, 20, 28, 3)).astype(np.uint8), np.arange(48) % 2
    images[::2] //= 2
    for name, size in (("kept", "auto"), ("cut", "12x16")):
        chosen = options(tmp_path / name, **{**SMALL, "size": size, "batch_size": 8})
        train((images, labels), chosen, validation=(images, labels))
        loaded = vg.load_model(tmp_path / name)
        assert accuracy(loaded, (images, labels), batch_size=7) == top1(tmp_path / name)
        assert T.from_dict(torch.load(tmp_path / name / "model.pt", weights_only=True)["scoring"]) == loaded[1]
    assert loaded[1].transforms[-1] == T.Normalize(vg.IMAGENET_MEAN, vg.IMAGENET_STD)  # type: ignore[attr-defined]


def test_the_model_comes_alone_and_draws_nothing(tmp_path: Path) -> None:
    train(digits(64)[0], options(tmp_path, **{**SMALL, "epochs": 1}))
    before = torch.random.get_rng_state()
    vg.load_model(tmp_path)
    assert torch.equal(torch.random.get_rng_state(), before)
    with pytest.raises(ValueError, match="device: got 'gpu'"):
        vg.load_model(tmp_path, device="gpu")
    with pytest.raises(TypeError, match=r"load_model.* unexpected keyword argument 'devcie'"):
        vg.load_model(tmp_path, devcie="cpu")  # type: ignore[call-arg]


def test_code_of_ones_own_is_for_the_caller_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, validation = digits(64)
    train(source, options(tmp_path, epochs=1), validation=validation)
    said = f"has weights of {PLAIN}, which a file cannot have imported; accepted: model='{PLAIN}' if you trust it"
    assert "tests.learn.train.digits" in sys.modules
    with pytest.raises(ModelError, match=said):
        vg.load_model(tmp_path)
    by_name, by_module = vg.load_model(tmp_path, model=PLAIN), vg.load_model(tmp_path, model=without_statistics(10))
    assert accuracy(by_name, validation) == accuracy(by_module, validation) == top1(tmp_path)
    with pytest.raises(ModelError, match=r"model\.pt: its weights are not those of wrn-10-1 \("):
        vg.load_model(tmp_path, model="wrn-10-1")


@pytest.mark.parametrize("name", ["os:abort", "timm:hf-hub:someone/else", "mine_evil:net", "timm:../x", ""])
def test_a_file_imports_nothing_and_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "mine_evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    train(digits(64)[0], options(tmp_path / "run", **{**SMALL, "epochs": 1}))
    saved = torch.load(tmp_path / "run" / "model.pt", weights_only=True)
    torch.save({**saved, "model": name}, tmp_path / "model.pt")
    with pytest.raises(ModelError, match="which a file cannot have imported"):
        vg.load_model(tmp_path / "model.pt")


def test_a_model_of_timm_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def create_model(name: str, num_classes: int, in_chans: int, **more: Any) -> torch.nn.Module:
        asked.append((name, in_chans, more))
        return build_model("wrn-10-1", num_classes, in_chans)

    timm: Any = ModuleType("timm")
    timm.create_model = create_model
    monkeypatch.setitem(sys.modules, "timm", timm)
    source, validation = digits(64)
    chosen = {**SMALL, "model": "timm:resnet18", "pretrained": True, "epochs": 1}
    train(source, options(tmp_path, **chosen), validation=validation)
    assert accuracy(vg.load_model(tmp_path), validation) == top1(tmp_path)
    # The weights of the file are loaded, not timm's.
    assert ("resnet18", 1, {"pretrained": True}) in asked
    assert asked[-1] == ("resnet18", 1, {})


def test_a_file_of_before_is_written_again_by_its_command(tmp_path: Path) -> None:
    source, validation = digits(64)
    chosen = options(tmp_path, **{**SMALL, "epochs": 1})
    train(source, chosen, validation=validation)
    log, path = (tmp_path / "log.jsonl").read_text(), tmp_path / "model.pt"
    saved = torch.load(path, weights_only=True)
    torch.save({name: saved[name] for name in ("model", "classes", "weights")}, path)
    with pytest.raises(ModelError, match=r"model\.pt: lacks channels, scoring; .* The same train command"):
        vg.load_model(path)
    train(source, replace(chosen), validation=validation)
    assert (tmp_path / "log.jsonl").read_text() == log
    assert accuracy(vg.load_model(path), validation) == top1(tmp_path)


class Loud:
    def __reduce__(self) -> Any:
        return print, ("called",)


def test_what_is_no_model_is_named_and_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.pt"
    with pytest.raises(FileNotFoundError, match=r"model\.pt"):
        vg.load_model(tmp_path)
    path.write_bytes(b"half")
    with pytest.raises(ModelError, match=r"model\.pt: is damaged, or no model\.pt of variegate train \("):
        vg.load_model(path)
    path.write_bytes(pickle.dumps(Loud(), 2))
    with pytest.raises(ModelError, match=r"is damaged, or no model\.pt"):
        vg.load_model(path)
    torch.save(Loud(), path)
    with pytest.raises(ModelError, match=r"is damaged, or no model\.pt"):
        vg.load_model(path)
    torch.save([1, 2], path)
    with pytest.raises(ModelError, match=r"model\.pt: lacks model, .*; accepted: what variegate train wrote"):
        vg.load_model(path)
    assert capsys.readouterr().out == ""
