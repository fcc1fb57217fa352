"""The comparison of codes in docs/migration: its parts. The codes themselves run in the peers' environment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.migration import PAGES, differs, read_page

GUIDES = sorted(path for path in PAGES.glob("*.md") if path.name != "index.md")


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_every_block_of_a_guide_is_compared_or_says_why_not(path: Path) -> None:
    page = read_page(path.read_text(encoding="utf-8"))
    assert page.setup
    assert len(page.pairs) >= 2 or page.unpaired
    for pair in page.pairs:
        assert pair.names
        assert pair.rule in ("equal", "shape") or float(pair.rule.removeprefix("within ")) > 0


def test_a_block_without_a_comment_is_refused() -> None:
    with pytest.raises(ValueError, match="without a comment"):
        read_page("```py\nimport peer\n```\n")
    with pytest.raises(ValueError, match="no py block"):
        read_page("<!-- compare x: equal -->\n```python\nx = 1\n```\n")


@pytest.mark.parametrize(
    ("rule", "after", "wrong"),
    [
        ("equal", np.float32([1, 2]), None),
        ("equal", np.float32([1, 2.5]), "differ by 0.5"),
        ("within 1", np.float32([1, 2.5]), None),
        ("shape", np.float32([7, 7]), None),
        ("shape", np.float64([1, 2]), "float64"),
        ("within 1", np.float32([1, 2, 3]), r"\[3\] after"),
        ("shape", [np.float32([1, 2])], "1 arrays after"),
    ],
)
def test_differences_are_found(rule: str, after: object, wrong: str | None) -> None:
    found = differs(rule, np.float32([1, 2]), after)
    assert found is None if wrong is None else found is not None and wrong.replace("\\", "") in found
