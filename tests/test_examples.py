"""The scripts in examples/ run as they are: in this process, which has loaded what they import."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from tests.one_ray import ARGUMENTS, one_ray
from tests.one_tensorflow import on_tensorflow
from tests.scripts import Ran, run_script
from tests.words import long_sentences, odd_turns

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NEEDED = {"search_digits": "sklearn", "train_digits": "sklearn", "search_textures": "skimage", "ray_train": "ray"}
QUICK = ("search_digits", "search_segmentation", "search_textures", "train_digits", "train_cifar10")
# The libraries that run once for all tests that need them.
ELSEWHERE = {"keras_mirrored": "tensorflow", "ray_data": "ray"}
WITH_WORKERS = ("dataset_transform",)
# Starts clusters and trainers for minutes.
SLOW = ("ray_train",)


def given(script: Path) -> Any:
    group = ELSEWHERE.get(script.stem)
    marks = [pytest.mark.xdist_group(group)] if group else []
    if group or script.stem in WITH_WORKERS:
        marks.append(pytest.mark.process)
    if script.stem in SLOW:
        marks.append(pytest.mark.slow)
    return pytest.param(script, id=script.stem, marks=marks)


def run(script: Path, folder: Path, request: pytest.FixtureRequest) -> Ran:
    if script.stem in NEEDED:
        pytest.importorskip(NEEDED[script.stem])
    arguments = ["--quick"] if script.stem in QUICK else []
    library = ELSEWHERE.get(script.stem)
    if library == "tensorflow":
        return on_tensorflow("tests.scripts:run_script", script, arguments, folder)
    if library == "ray":
        request.getfixturevalue("_ray_that_runs")
    return run_script(script, arguments, folder)


@pytest.fixture
def _ray_that_runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was started as the script asks for it."""
    one_ray(request.config)
    import ray

    def begin(**arguments: Any) -> None:
        assert arguments == ARGUMENTS

    monkeypatch.setattr(ray, "init", begin)
    monkeypatch.setattr(ray, "shutdown", lambda: None)


@pytest.mark.parametrize("script", [given(script) for script in sorted(EXAMPLES.glob("*.py"))])
def test_script_runs(
    script: Path, tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    ran = run(script, tmp_path, request)
    assert ran.code == 0, ran.stderr
    assert ran.stdout.strip()
    # A search tells its sizes and steps there, a training its recipe, network, batch size and epochs.
    told = ("sizes: ", "step ", "epoch ", "note: recipe ", "total batch size ", "airbench-", "wrn-")
    lines = [
        line for line in ran.stderr.splitlines() if not re.match(r"\S+, round \d+: ", line)
    ]  # trainings that are compared
    assert [line for line in lines if not line.startswith(told)] == []
    # Where nobody listens, as outside of tests, Python prints these there too.
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    losses = [float(loss) for loss in re.findall(r"loss (\d+\.\d+)", ran.stdout)]
    assert not losses or losses[-1] < 0.9 * losses[0], "what trains learns"


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda script: script.stem)
def test_words_are_plain(script: Path) -> None:
    code = script.read_text(encoding="utf-8")
    strings = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    texts = [text for text in strings if isinstance(text, str) and " " in text]
    paragraphs = [paragraph for text in texts for paragraph in re.split(r"\n\s*\n", text)]
    assert [turn for text in (*paragraphs, *re.findall(r"#.*", code)) for turn in odd_turns(text)] == []
    assert [long for paragraph in paragraphs for long in long_sentences(paragraph)] == []
