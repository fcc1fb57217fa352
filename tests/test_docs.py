"""Pages do what they show: their Python runs as a reader would paste it, and every command and option exists."""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.words import long_sentences, odd_turns, paragraphs
from variegate.cli.commands import app
from variegate.transforms import Transform

ROOT = Path(__file__).resolve().parent.parent
RESULTS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "results").glob("*.md"))
# Tutorials, migration guides and explanations are in folders of their own.
WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("**/*.md")]
PAGES = sorted({path.relative_to(ROOT).as_posix() for path in WRITTEN} - set(RESULTS))
READ_ELSEWHERE = "variegate/data/photos/README.md"
# A block's first line may also be a directive of the site: ```{toctree}.
BLOCK = re.compile(r"^```([^`\n]*)\n(.*?)^```\n", re.M | re.S)
LINK = re.compile(r"\]\(([^)#\s]+)\)")
# What a page that is not written to its end holds, outside of code; a line of one word in capitals among them.
PLACEHOLDER = re.compile(r"\b(?:TODO|TBD|FIXME|XXX+)\b|\?\?\?|^[A-Z][A-Z_]{4,}$", re.M)
PLACEHOLDER_WORDS = re.compile(r"\blorem\b|\.\.\.\s*fill|<number>|not yet filled|\bn[.,]nn\b", re.I)
# Python that is shown and not run (```py) needs a GPU, another package, a cluster, or hours. Every such block has one
# of its page's words in it.
NOT_RUN = {
    "README.md": ["for images, labels in vg.Loader("],
    "docs/check.md": ["vg.clean(", "find_duplicates("],
    "docs/command-line.md": ["vg.doctor("],
    "docs/custom.md": ["ctypes.CDLL("],
    "docs/deploy.md": ["vg.RayWorkers("],
    "docs/gpu.md": [""],
    "docs/keras.md": [""],
    "docs/faster-loading.md": ['index="auto"', "vg.RayWorkers("],
    "docs/migration/albumentations.md": [""],  # run by benchmarks/migration.py
    "docs/migration/dali.md": [""],
    "docs/migration/ffcv.md": [""],
    "docs/migration/timm.md": [""],
    "docs/migration/torchvision.md": [""],
    "docs/tutorials/detection.md": ["from torchvision"],
    "docs/pipelines.md": ["# mine.py"],
    "docs/training-diagnosis.md": ["step=train_step"],
    "docs/training-loop.md": ["torch.autocast(", "init_process_group("],
    "docs/ray.md": ["ray.data.", "dataset.map_batches("],
}


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


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


@pytest.mark.process  # some do
@pytest.mark.parametrize("page", [page for page in PAGES if any(steps(text_of(page)))])
def test_python_gives_the_output_shown(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block after block, with no name that the page did not make, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for source, shown in steps(text_of(page)):
        linecache.cache[page] = len(source), None, source.splitlines(keepends=True), page  # for errors of pipelines
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, page, "exec"), namespace)
        # Python 3.10 draws other numbers after a ``while``, which the page says.
        if shown is not None and not (page == "docs/pipelines.md" and sys.version_info < (3, 11)):
            assert printed.getvalue() == shown


def test_python_that_is_not_run_is_listed() -> None:
    wrong: list[tuple[str, str]] = []
    for page in PAGES:
        shown = [block[2] for block in BLOCK.finditer(text_of(page)) if block[1] == "py"]
        known = NOT_RUN.get(page, [])
        wrong += [(page, block) for block in shown if not any(words in block for words in known)]
        # A block without a language is a terminal: what was typed, and what was printed.
        bare = [block[2] for block in BLOCK.finditer(text_of(page)) if block[1] == ""]
        wrong += [(page, block) for block in bare if not block.startswith(("$ ", ">>> "))]
    assert wrong == []


@pytest.mark.parametrize(
    ("page", "script", "least"), [("gpu", "on_a_gpu", 2), ("keras", "keras_mirrored", 2), ("ray", "ray_data", 1)]
)
def test_code_that_needs_more_is_that_of_the_example(page: str, script: str, least: int) -> None:
    """It cannot be run everywhere, but the script that it is taken from can (see test_examples.py)."""
    code = (ROOT / "examples" / f"{script}.py").read_text(encoding="utf-8")
    lines = {re.split("  # (?:pyright|type): ", line)[0].strip() for line in code.splitlines()}
    shown = [block[2] for block in BLOCK.finditer((ROOT / "docs" / f"{page}.md").read_text()) if block[1] == "py"]
    shown = [
        block
        for block in shown
        if not any(words in block for words in ("iter_torch_batches", "ActorPool", "images_per_second"))
    ]
    assert len(shown) >= least
    for block in shown:
        assert [line for line in block.splitlines() if line.strip() not in lines] == []


# -- commands ----------------------------------------------------------------------------------------------------------


def commands(text: str) -> Iterator[list[str]]:
    """The words of every ``variegate ...`` that a page has someone type, in blocks and in sentences."""
    lines: list[str] = []
    for block in BLOCK.finditer(text):
        code = block[2].replace("\\\n", " ")
        if block[1] in ("sh", "bash"):
            lines += code.splitlines()
        elif block[1] in ("", "text"):
            lines += [line[2:] for line in code.splitlines() if line.startswith("$ ")]
    lines += re.findall(r"`(variegate [^`\n]+)`", BLOCK.sub("", text))
    for line in lines:
        for part in re.split(r"\s*(?:&&|\|)\s*", line):
            words = shlex.split(part, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
                words.pop(0)
            if words and words[0].rsplit("/", 1)[-1] == "variegate":
                yield words[1:]


@cache
def made_commands() -> dict[str, Any]:
    return typer.main.get_command(app).commands  # type: ignore[attr-defined]


@cache
def options_of(name: str) -> set[str]:
    command = made_commands()[name]
    flags = {flag for param in command.params for flag in (*param.opts, *param.secondary_opts)}
    return flags | {"--help", "-h"}


def test_commands_and_options_exist() -> None:
    known = set(made_commands())
    wrong: list[tuple[str, list[str]]] = []
    for page in (*PAGES, *RESULTS):
        for words in commands(text_of(page)):
            if not words or words[0].startswith("-") or words[0] == "COMMAND":
                continue
            used = {word.split("=")[0] for word in words[1:] if word.startswith("--")}
            if words[0] not in known or not used <= options_of(words[0]):
                wrong.append((page, words))
    assert wrong == []


def test_options_in_tables_exist() -> None:
    """A table of options stands under a command's heading, or names no command and may be anybody's."""
    everybody = {flag for name in made_commands() for flag in options_of(name)}
    wrong: list[tuple[str, str]] = []
    for page in (*PAGES, *RESULTS):
        name = None
        for line in BLOCK.sub("", text_of(page)).splitlines():
            heading = re.match(r"## variegate (\w+)", line)
            if line.startswith("## "):
                name = heading[1] if heading else None
            if line.startswith("| `--"):
                used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", line.split("|")[1]))
                if not used <= (options_of(name) if name else everybody):
                    wrong.append((page, line))
    assert wrong == []


# -- words -------------------------------------------------------------------------------------------------------------


def placeholders(text: str) -> list[str]:
    prose = BLOCK.sub("", text)
    return [match[0] for pattern in (PLACEHOLDER, PLACEHOLDER_WORDS) for match in pattern.finditer(prose)]


def test_no_page_holds_a_placeholder() -> None:
    assert [(page, found) for page in (*PAGES, *RESULTS) for found in placeholders(text_of(page))] == []


@pytest.mark.parametrize(
    "text",
    [
        "## Speed\n\nSPEEDTABLE\n\nMore.\n",
        "TODO: say more",
        "It takes <number> s.",
        "Lorem ipsum",
        "TBD",
    ],
)
def test_placeholders_are_found(text: str) -> None:
    assert placeholders(text)


def test_links_lead_somewhere() -> None:
    targets = [(page, target) for page in (*PAGES, *RESULTS) for target in LINK.findall(text_of(page))]
    missing = [(p, t) for p, t in targets if "://" not in t and not (ROOT / p).parent.joinpath(t).exists()]
    assert missing == []


def test_anchors_are_headings() -> None:
    wrong: list[tuple[str, str, str]] = []
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([\w-]+)\)", text_of(page)):
            other = (ROOT / page).parent / target if target else ROOT / page
            headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", other.read_text(encoding="utf-8")), re.M)
            slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
            if anchor not in slugs:
                wrong.append((page, target, anchor))
    assert wrong == []


def test_files_named_exist() -> None:
    file = re.compile(r"`((?:variegate|tests|benchmarks|examples|docs)/[\w./-]+\.(?:py|json|md))`")
    named = [(page, name) for page in PAGES for name in file.findall(text_of(page))]
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []


def test_words_are_plain() -> None:
    # CONTRIBUTING.md shows what to avoid.
    pages = sorted({*PAGES, *RESULTS, READ_ELSEWHERE} - {"CONTRIBUTING.md"})
    texts = [(page, paragraph) for page in pages for paragraph in paragraphs(text_of(page))]
    assert [(page, turn, text) for page, text in texts for turn in odd_turns(text)] == []
    assert [(page, sentence) for page, text in texts for sentence in long_sentences(text)] == []


def test_pictures_are_small() -> None:
    """They are in every clone."""
    for picture in (ROOT / "docs" / "images").glob("*.png"):
        assert os.path.getsize(picture) < 450_000, picture.name
