"""No public name, argument, command or option comes, goes or changes unnoticed."""

from __future__ import annotations

import difflib

import pytest

from tests.public_api import LISTING, public_api

HOW = (
    "the public API is not that of tests/public_api.txt. If this is meant, rewrite the listing with `python -m "
    "tests.public_api` and commit it; docs/stability.md says what a removal or a rename takes:"
)


@pytest.mark.xdist_group("package")
def test_the_listing_is_that_of_the_package() -> None:
    listed, found = LISTING.read_text(encoding="utf-8").splitlines(), public_api()
    changed = list(difflib.unified_diff(listed, found, "listed", "found", lineterm="", n=0))
    assert not changed, "\n".join([HOW, *changed])


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
