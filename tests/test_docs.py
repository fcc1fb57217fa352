"""What the pages show is what happens: their Python is run, and its output is the text block that follows."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from variegate.transforms import Transform

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n", re.M | re.S)
LINK = re.compile(r"\]\(([^)#\s]+)\)")


def steps(text: str) -> Iterator[tuple[str, str | None]]:
    """Every Python block, with the text block that stands right after it."""
    blocks = list(BLOCK.finditer(text))
    for number, block in enumerate(blocks):
        if block[1] == "python":
            after = blocks[number + 1] if number + 1 < len(blocks) else None
            is_output = after is not None and after[1] == "text" and not text[block.end() : after.start()].strip()
            yield block[2], after[2] if after is not None and is_output else None


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations declared in a page leave no name behind."""
    monkeypatch.setattr(Transform, "registry", dict(Transform.registry))


@pytest.mark.parametrize("page", PAGES)
def test_python_gives_the_output_shown(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    # What a reader has: a batch of photos, its ids and labels.
    namespace = {
        "images": [rng.integers(0, 256, (96, 128, 3), dtype=np.uint8) for _ in range(4)],
        "ids": [0, 1, 2, 3],
        "labels": np.array([0, 1, 2, 0]),
    }
    for source, shown in steps((ROOT / page).read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, page, "exec"), namespace)
        if shown is not None:
            assert printed.getvalue() == shown


@pytest.mark.parametrize(
    ("page", "script", "least"), [("gpu", "on_a_gpu", 5), ("keras", "keras_mirrored", 2), ("ray", "ray_data", 1)]
)
def test_code_that_needs_more_is_that_of_the_example(page: str, script: str, least: int) -> None:
    """It cannot be run everywhere, but the script that it is taken from can (see test_examples.py)."""
    code = (ROOT / "examples" / f"{script}.py").read_text(encoding="utf-8")
    lines = {line.strip() for line in code.splitlines()}
    shown = [block[2] for block in BLOCK.finditer((ROOT / "docs" / f"{page}.md").read_text()) if block[1] == "py"]
    assert len(shown) >= least
    for block in shown:
        assert [line for line in block.splitlines() if line.strip() not in lines] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    targets = LINK.findall((ROOT / page).read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (ROOT / page).parent.joinpath(t).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_files_named_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`((?:variegate|tests|benchmarks|examples|docs)/[\w./-]+\.(?:py|json|md))`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []
