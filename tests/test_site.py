"""The site's reference has every public name, once; it is built by ``make docs``, which these tests do not run."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from pathlib import Path

import pytest
import typer

import variegate
from docs import cli_page
from docs.gallery import WITHOUT, families, named, reference_pages_of_transforms, transform_classes
from docs.plots import MARK, PLOTS
from docs.reference_pages import described, entries
from docs.tables import NAMED, TABLES, expanded
from variegate import math, policies, transforms
from variegate.cli.commands import app
from variegate.program.ops import SPECS, Op
from variegate.transforms import functional

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# Pages about the inside, which show names that are not promised.
INSIDE = {"architecture.md", "custom.md"}
# Need another package than the tests' own; the site is built without them.
ELSEWHERE = {"variegate.interop.keras", "variegate.interop.ray"}
LISTED = [entry for page in sorted((DOCS / "reference").glob("*.md")) for entry in entries(page.read_text("utf-8"))]


@pytest.mark.parametrize("module", [variegate, transforms, functional, policies, math])
def test_every_public_name_is_in_the_reference_once(module) -> None:
    described_as = Counter(
        (name, id(getattr(importlib.import_module(home), name))) for home, name, _ in LISTED if home not in ELSEWHERE
    )
    # Pages describe `transforms` name by name, and `from_dict` is that of transforms.
    names = set(module.__all__) - {"transforms"}
    assert {name: n for name in names if (n := described_as[name, id(getattr(module, name))]) != 1} == {}


def test_nothing_is_described_twice() -> None:
    assert [entry for entry, times in Counter((home, name) for home, name, _ in LISTED).items() if times > 1] == []


def test_what_guides_import_is_described() -> None:
    known = {f"{home}.{name}" for home, name, _ in LISTED}
    for page in DOCS.glob("*.md"):
        if page.name in INSIDE:
            continue
        for block in re.findall(r"^```py(?:thon)?\n(.*?)^```\n", page.read_text("utf-8"), re.M | re.S):
            for line in re.findall(r"^ *(from variegate[\w.]* import .*?)(?:#.*)?$", block, re.M):
                (found,) = ast.parse(line.strip()).body
                assert isinstance(found, ast.ImportFrom)
                names = {alias.name for alias in found.names} - {"transforms", "functional", "*"}
                missing = [n for n in names if f"{found.module}.{n}" not in known and (found.module, n) not in PARTS]
                assert missing == [], page.name


# What pages take from where it is defined, and the reference describes elsewhere.
PARTS = {("variegate.cli", "main"), ("variegate.data.sample_photos", "sample_photo")}


def test_a_member_that_does_not_exist_would_be_found() -> None:
    for home, name, members in LISTED:
        if home not in ELSEWHERE:
            value = getattr(importlib.import_module(home), name)
            assert [member for member in members.split(", ") if member and not hasattr(value, member)] == []


def test_what_arguments_accept_is_listed() -> None:
    transform = described("variegate.transforms", "Hue", "")
    assert transform[0] == ".. autoclass:: variegate.transforms.Hue(factor)"
    assert "   - ``factor``: a number, or a pair (low, high) of them, from -0.5 to 0.5" in transform
    assert "   - ``hue_factor``: a number from -0.5 to 0.5" in described(functional.__name__, "adjust_hue", "")
    assert "   - ``direction``: a number from -1 to 1" in described(functional.__name__, "motion_blur", "")


def test_every_entry_becomes_directives() -> None:
    assert all(described(*entry) for entry in LISTED if entry[0] not in ELSEWHERE)


def test_an_alias_says_what_it_is() -> None:
    assert "horizontal_flip" in described("variegate.transforms.functional", "hflip", "")[2]


def test_every_page_is_in_the_contents() -> None:
    """Sphinx refuses a page that no table of contents leads to."""
    listed: set[str] = set()
    for page in (DOCS / "index.md", DOCS / "reference" / "index.md"):
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```\n", page.read_text("utf-8"), re.M | re.S):
            for line in block.splitlines():
                name = re.sub(r".*<(.*)>", r"\1", line)
                found = page.parent.glob(f"{name}.md") if name and not name.startswith(":") else ()
                listed.update(path.relative_to(DOCS).as_posix() for path in found)
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.glob("**/*.md")}
    assert written - listed == {"index.md"}


# -- the gallery -------------------------------------------------------------------------------------------------------


def test_no_transform_is_in_the_gallery_twice() -> None:
    shown = [named(calls[0]) for _, family in families().values() for calls in family]
    without = [name for names in WITHOUT.values() for name in names]
    assert [name for name, times in Counter(shown + without).items() if times > 1] == []
    assert {*shown, *without} <= transform_classes()
    assert {*shown} <= {*reference_pages_of_transforms()}, "thumbnails are links"


def test_a_row_of_the_gallery_is_one_transform_that_can_be_made() -> None:
    for _, family in families().values():
        for calls in family:
            assert {named(call) for call in calls} == {named(calls[0])}
            assert all(isinstance(eval(call, vars(transforms)), transforms.Transform) for call in calls)


# -- tables ------------------------------------------------------------------------------------------------------------


def test_every_table_is_on_a_page_and_can_be_made() -> None:
    pages = [path.read_text("utf-8") for path in DOCS.glob("**/*.md")]
    assert sorted(name for page in pages for name in NAMED.findall(page)) == sorted(TABLES)
    for name in TABLES:
        assert "{table}" not in expanded(f"```{{table}} {name}\n```\n")


def test_every_instruction_has_a_row() -> None:
    text = expanded("```{table} instructions\n```\n")
    assert [op.name for op in SPECS if op < Op.MAP_FIXED and f"| `{op.name}` |" not in text] == []


# -- plots -------------------------------------------------------------------------------------------------------------


def test_every_plot_is_on_a_page_of_results() -> None:
    on_pages = [name for page in (DOCS / "results").glob("*.md") for name in MARK.findall(page.read_text("utf-8"))]
    assert sorted(on_pages) == sorted(PLOTS)


def test_the_page_of_commands_has_every_command_with_its_options() -> None:
    text = cli_page.page()
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        section = text.partition(f"## variegate {name}\n")[2].partition("\n## ")[0]
        flags = [
            flag for param in command.params for flag in param.opts if flag.startswith("--") and flag != "--help-all"
        ]
        assert [flag for flag in flags if flag not in section] == [], name
