"""No public name, argument, command or option comes, goes or changes unnoticed."""

from __future__ import annotations

import ast
import difflib
from importlib import import_module
from pathlib import Path

import pytest

import variegate
from tests.public_api import LISTING, public_api

HOW = (
    "the public API is not that of tests/public_api.txt. If this is meant, rewrite the listing with `make "
    "generated` and commit it; docs/stability.md says what a removal or a rename takes:"
)


@pytest.mark.xdist_group("package")
def test_the_listing_is_that_of_the_package() -> None:
    listed, found = LISTING.read_text(encoding="utf-8").splitlines(), public_api()
    changed = list(difflib.unified_diff(listed, found, "listed", "found", lineterm="", n=0))
    assert not changed, "\n".join([HOW, *changed])


def test_the_stub_has_every_name_and_where_it_is_defined() -> None:
    """Type checkers and editors read it in place of the names that are loaded when first used."""
    stub = ast.parse(Path(variegate.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imported: dict[str, object] = {}
    declared: set[str] = set()
    for node in stub.body:
        if isinstance(node, ast.AnnAssign):
            declared.add(ast.unparse(node.target))
            continue
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, "only `import x as x` is public in a stub"
            imported[alias.name] = getattr(import_module(str(node.module)), alias.name)
    assert declared == {"__all__", "__version__", "IMAGENET_MEAN", "IMAGENET_STD"}
    assert {*imported, *declared} - {"__all__", "__version__"} == set(variegate.__all__)
    for name, value in imported.items():
        assert getattr(variegate, name) is value, name


def test_what_users_call_is_listed() -> None:
    text = LISTING.read_text(encoding="utf-8")
    for line in (
        "variegate.PIXEL_VERSION: int",
        "variegate.Augmenter(t",
        "variegate.Loader.state_dict(self)",
        "variegate.transforms.functional.rotate(img, angle",
        "variegate.policies.RandAugment(",
        "$ variegate augment --copies",
    ):
        assert f"\n{line}" in text, line
