"""Whatever is wrong with a ``model.pt``: one printable line, soon, before anything large is built."""

from __future__ import annotations

import io
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from variegate.learn.models import ModelError, build_model

CONTROLS = "\x1b[2J\nred\u202e"
WRONG: tuple[Any, ...] = (
    *(None, True, 0, -1, 5, 2**70, 0.5, float("nan"), "", CONTROLS, "x" * 3000, b"x", [], {}),
    [None],
    [[1]],
)
WRONG += ({CONTROLS: 1}, {"type": CONTROLS}, torch.zeros(2), {"head.bias": 1}, {1: torch.zeros(1)})


@pytest.fixture(scope="module")
def saved() -> dict[str, Any]:
    weights = build_model("wrn-10-1", 2).state_dict()
    scoring = {"type": "Normalize", "mean": [0.5], "std": [0.5]}
    return {"model": "wrn-10-1", "classes": ["a", "b"], "weights": weights, "channels": 3, "scoring": scoring}


def refusal(path: Path, limit: float = 5.0) -> str:
    started = time.process_time()
    with pytest.raises(ModelError, match=str(path)) as caught:
        vg.load_model(path)
    assert time.process_time() - started < limit
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) <= 1000
    return message


def test_wrong_entries(saved: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save(saved, path)
    assert vg.load_model(path)[2] == ("a", "b")
    for key in saved:
        for value in WRONG:
            torch.save({**saved, key: value}, path)
            refusal(path)
        torch.save({name: value for name, value in saved.items() if name != key}, path)
        assert f"lacks {key}" in refusal(path)
        torch.save({CONTROLS if name == key else name: value for name, value in saved.items()}, path)
        refusal(path)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"classes": 5}, "classes: got 5; accepted: a list of the names"),
        ({"channels": 0}, "channels: got 0; accepted: 1 to 32"),
        ({"channels": 4}, "its weights are not those of wrn-10-1"),
        ({"classes": ["a"] * 3}, "its weights are not those of wrn-10-1"),
        ({"scoring": {"type": "Rotate", "degrees": CONTROLS}}, "scoring.degrees: got"),
        ({"weights": {CONTROLS: torch.zeros(1)}}, "its weights are not those of wrn-10-1"),
    ],
)
def test_messages(saved: dict[str, Any], tmp_path: Path, entry: dict[str, Any], message: str) -> None:
    entry = {name: {**saved[name], **value} if name == "weights" else value for name, value in entry.items()}
    torch.save({**saved, **entry}, tmp_path / "model.pt")
    assert message in refusal(tmp_path / "model.pt")


@pytest.mark.parametrize(
    "name",
    ["wrn-16-100", "wrn-100000-1", "wrn-10-9999999999999", f"wrn-{'4' * 90}-1", "airbench-94x999", "airbench-94x1e9"],
)
def test_a_model_is_no_larger_than_its_weights(saved: dict[str, Any], tmp_path: Path, name: str) -> None:
    """None of it is built: the largest of these names would take terabytes."""
    path = tmp_path / "model.pt"
    torch.save({**saved, "model": name, "weights": {}}, path)
    assert path.stat().st_size < 3000
    refusal(path, 0.5)


def test_many_classes_of_small_weights(saved: dict[str, Any], tmp_path: Path) -> None:
    one = torch.zeros(1).expand(1 << 30)  # of four bytes in the file
    for changes in ({"classes": ["a"] * 300_000}, {"weights": {"head.bias": one}}):
        torch.save({**saved, "weights": {}, **changes}, tmp_path / "model.pt")
        refusal(tmp_path / "model.pt", 2.0)


def test_cuts_and_flips(saved: dict[str, Any], tmp_path: Path) -> None:
    path, rng = tmp_path / "model.pt", np.random.default_rng(0)
    torch.save({**saved, "weights": {"head.bias": torch.zeros(2)}}, path)
    whole = path.read_bytes()
    for length in (0, 1, 30, *rng.integers(0, len(whole), 60).tolist(), len(whole) - 1):
        path.write_bytes(whole[:length])
        refusal(path)
    # Weights are those of no model, so that no flip makes a file that loads.
    for at in rng.integers(0, len(whole), 200).tolist():
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        refusal(path)


def test_what_unpacks_to_more_than_the_file(saved: dict[str, Any], tmp_path: Path) -> None:
    path, buffer = tmp_path / "model.pt", io.BytesIO()
    torch.save({**saved, "weights": {"head.bias": torch.zeros(1 << 20)}}, buffer)
    with zipfile.ZipFile(buffer) as archive, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for entry in archive.infolist():
            packed.writestr(entry.filename, archive.read(entry))
    assert path.stat().st_size < 20_000
    assert "its entries are larger than the file" in refusal(path)
