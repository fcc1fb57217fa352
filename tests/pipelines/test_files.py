"""Pipelines in files are names of functions; nothing that a file names is imported. And copies in other processes."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

import variegate as vg
from variegate import transforms as T
from variegate.cli import main
from variegate.errors import PolicyError
from variegate.policies.load import save_policy
from variegate.transforms import functional as F

IMAGES = [np.random.default_rng(i).integers(0, 256, (20, 30, 3), np.uint8) for i in range(4)]


@vg.pipeline
def turned(image: Any, label: int, degrees: float = 20.0, then: Any = None) -> Any:
    """Turns some."""
    if label:
        image = F.rotate(image, vg.uniform(-degrees, degrees))
    return image if then is None else then(image)


def later(image: Any) -> Any:
    return F.translate_x(image, vg.uniform(0, 9))


moved = vg.pipeline(later)


class Holder:
    shifted = vg.pipeline(later)


def test_a_description_names_the_function(tmp_path: Path) -> None:
    described = turned.to_dict()
    assert {key: described[key] for key in ("type", "function")} == {
        "type": "Pipeline", "function": "tests.pipelines.test_files:turned",
    }  # fmt: skip
    assert len(described["source"]) == 16
    more = T.Compose([vg.pipeline(turned, degrees=5, then=T.Posterize(3)), T.RandomHorizontalFlip()])
    again = T.from_dict(json.loads(json.dumps(more.to_dict())))
    assert again == more != T.Compose([turned, T.RandomHorizontalFlip()])
    save_policy(more, tmp_path / "policy.yaml")
    assert vg.load_policy(tmp_path / "policy.yaml") == more
    assert vg.load_policy("tests.pipelines.test_files:turned") == turned
    assert turned.__doc__ == "Turns some."
    assert repr(more.transforms[0]) == (
        "Pipeline('tests.pipelines.test_files:turned', constants={'degrees': 5, 'then': Posterize(3)})"
    )


def test_a_function_that_has_changed_is_refused() -> None:
    described = turned.to_dict()
    assert T.from_dict({**described, "source": described["source"]}) == turned
    assert T.from_dict({key: described[key] for key in ("type", "function")}) == turned
    with pytest.raises(
        PolicyError, match=r"source: got '0123'; accepted: '\w{16}': .*:turned was changed since; without"
    ):
        T.from_dict({**described, "source": "0123"})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "function",
            "os:system",
            "function: got 'os:system'; accepted: a pipeline of an imported module; import os first",
        ),
        ("function", "antigravity:x", "import antigravity first"),
        ("function", "tests.pipelines.test_files:later.<locals>.x", "a pipeline of an imported module"),
        ("function", "tests.pipelines.test_files:IMAGES", "a pipeline of an imported module"),
        ("function", "variegate.interop.convert.drawn:F", "a pipeline of an imported module"),
        ("function", 3, "function: got 3; accepted: a Python function of an image"),
        ("constants", 3, "constants: got 3; accepted: a dict of parameters that have a default"),
        (
            "constants",
            {"label": 3},
            r"constants\['label'\]: got 3; accepted: parameters of turned with a default: degrees",
        ),
    ],
)
def test_what_a_file_names_is_not_imported(key: str, value: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        T.from_dict({**turned.to_dict(), key: value})
    assert "antigravity" not in sys.modules


def test_a_name_is_no_module_to_import() -> None:
    with pytest.raises(PolicyError, match="'antigravity:x'; accepted: a pipeline of an imported module"):
        vg.load_policy("antigravity:x")
    assert "antigravity" not in sys.modules


def test_a_function_within_another_has_no_name() -> None:
    local = vg.pipeline(lambda image: F.rotate(image, vg.uniform(0, 9)))
    with pytest.raises(
        ValueError, match="a function within another cannot be written down; accepted: a function that a"
    ):
        local.to_dict()
    # AttributeError where a pickler is loaded that might have taken it.
    with pytest.raises((pickle.PicklingError, AttributeError), match=r"Can't pickle local object|cannot be pickled"):
        pickle.dumps(vg.Augmenter(local))
    assert local == vg.pipeline(local)
    assert local != vg.pipeline(lambda image: F.rotate(image, vg.uniform(0, 9)))


@pytest.mark.parametrize("transform", [turned, moved, Holder.shifted, vg.pipeline(turned, degrees=3)])
def test_pickled(transform: T.Transform) -> None:
    again = pickle.loads(pickle.dumps(vg.Augmenter(T.Compose([transform]), seed=3)))
    assert again.transform == T.Compose([transform])
    labels = {"label": [0, 1, 1, 1]}
    wanted = vg.Augmenter(T.Compose([transform]), seed=3)(IMAGES, ids=range(4), conditions=labels)
    assert (again(IMAGES, ids=range(4), conditions=labels) == wanted).all()


@pytest.mark.process
def test_loaders_with_workers_take_it() -> None:
    data = vg.WithIds([(image, i % 2) for i, image in enumerate(IMAGES)])
    wanted = vg.Augmenter(turned)(IMAGES, ids=range(4), conditions={"label": [0, 1, 0, 1]})
    for workers in ("thread", vg.ProcessWorkers(1)):
        loader = vg.Loader(data, turned, 2, shuffle=False, device="cpu", workers=workers)
        loaded = [image for batch, _ in loader for image in batch]
        assert all((a == b).all() for a, b in zip(loaded, wanted, strict=True))


def test_augment_writes_its_name_and_needs_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import variegate as vg\nfrom variegate.transforms import functional as F\n\n"
        "@vg.pipeline\ndef augment(image):\n    return F.rotate(image, vg.uniform(0, 90))\n"
    )
    (tmp_path / "policy.json").write_text('{"type": "Pipeline", "function": "mine:augment"}')
    photos = tmp_path / "photos"
    photos.mkdir()
    for i, image in enumerate(IMAGES):
        PIL.Image.fromarray(image).save(photos / f"{i}.png")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the module changes within a second

    def run(*arguments: str) -> int:
        """As a new process, which has not imported the module."""
        monkeypatch.delitem(sys.modules, "mine", raising=False)
        return main(["augment", "photos", "out", "--copies", "2", "--workers", "thread", *arguments])

    assert run("--policy", "policy.json") == 2
    assert "import mine first (commands: --import)" in capsys.readouterr().err
    for policy in ("policy.json", "mine:augment"):
        assert run("--policy", policy, "--import", "mine") == 0
    assert len(list((tmp_path / "out").rglob("*.*g"))) == 8
    text = "".join(path.read_text(errors="replace") for path in (tmp_path / "out").rglob("*.json*"))
    assert '"function": "mine:augment"' in text
    assert '"source": "' in text
    mine.write_text(mine.read_text().replace("90", "91"))
    capsys.readouterr()
    assert run("--policy", "policy.json", "--import", "mine") == 2
    assert "holds a run with transform.source " in capsys.readouterr().err
