"""The site: ``make docs`` builds it from these pages, the README, the docstrings and the measured results."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS)]
sys.path.append(str(ROOT / "packages" / "variegate-studio" / "src"))  # its reference needs no installation

import cli_page  # noqa: E402
import gallery  # noqa: E402
import plots  # noqa: E402
import reference_pages  # noqa: E402
import tables  # noqa: E402

PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def written(pattern: str, otherwise: str) -> str:
    found = re.search(pattern, PYPROJECT, re.M)
    return found[1] if found else otherwise


project = "Variegate"
copyright = "The Variegate authors"
release = version = re.search(r'^__version__ = "(.+)"', (ROOT / "variegate" / "__init__.py").read_text(), re.M)[1]
REPOSITORY = written(r'^(?:Repository|Source|source|repository) = "(.+?)/?"', "https://github.com/variegate/variegate")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_static"]
smartquotes = False  # "nearest" is a value
nitpicky = True

# -- pages -------------------------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# Files outside of docs/ that are pages of the site.
ELSEWHERE = {
    "README.md": "index",
    "CONTRIBUTING.md": "project/contributing",
    "CHANGELOG.md": "project/changelog",
}
FENCE = re.compile(r"(^```.*?^```$)", re.M | re.S)
TARGET = re.compile(r"(\]\()([^)\s]+)(\))")
# A link that shows a file's name, which on the site shows the page's title.
NAMED = re.compile(r"\[[\w/-]+\.md\](?=\(([^):#]+\.md)[#)])")
PATTERN = re.compile(r"^(\S+\*)\n", re.M)  # of a toctree: pages that it does not name
INCLUDED = re.compile(r"^```\{from\} (\S+) ?(.*)\n```$", re.M)


def link(target: str, folder: str, page: str) -> str:
    """Where the site has what ``target`` names in the repository; a page, a picture, or the file on the web."""
    if re.match(r"[a-z]+:|#|<", target):
        return target
    path, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(folder, path))
    anchor = anchor and f"#{anchor}"
    here = posixpath.dirname(f"docs/{page}")
    if path in ELSEWHERE:
        return posixpath.relpath(f"docs/{ELSEWHERE[path]}.md", here) + anchor
    if path.startswith("docs/") and path.endswith((".md", ".png", ".svg", ".webp")):
        return posixpath.relpath(path, here) + anchor
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{path}{anchor}"


def title(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def links(text: str, folder: str, page: str) -> str:
    parts = FENCE.split(text)
    parts[::2] = [NAMED.sub(lambda m: f"[{title(posixpath.join(folder, m[1]))}]", part) for part in parts[::2]]
    parts[::2] = [TARGET.sub(lambda m: m[1] + link(m[2], folder, page) + m[3], part) for part in parts[::2]]
    return "".join(parts)


def included(file: str, part: str, page: str) -> str:
    """A file of the repository, or its beginning (``intro``), or what follows that (``rest``)."""
    text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).exists() else f"# {Path(file).stem}\n"
    intro, heading, rest = text.partition("\n## ")
    return links({"intro": intro, "rest": heading + rest}.get(part, text), posixpath.dirname(file), page)


def unlisted(pattern: str, index: str) -> list[str]:
    names = [path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob(f"{pattern}.md")]
    return [name for name in names if not re.search(rf"^{name}$|<{name}>", index, re.M)]


def read(app: Sphinx, page: str, source: list[str]) -> None:
    """A page as the site has it; it is read again when what it was made of has changed."""
    for made_of in (*DOCS.glob("*.py"), *(ROOT / file for file in re.findall(r"{from} (\S+)", source[0]))):
        app.env.note_dependency(str(made_of))
    text = source[0].replace("```{commands}\n```\n", cli_page.page()) if page == "reference/commands" else source[0]
    text = links(text, posixpath.dirname(f"docs/{page}"), page)
    if page == "index":
        text = PATTERN.sub(lambda m: m[0] if unlisted(m[1], source[0]) else "", text)
    text = plots.shown(text, MADE / "plots")
    with mock(autodoc_mock_imports):
        text = tables.expanded(reference_pages.expanded(text, gallery.strip))
    if page == "gallery":
        text = text.replace("```{gallery}\n```\n", gallery.wall())
    source[0] = INCLUDED.sub(lambda m: included(m[1], m[2], page), text)


# -- reference ---------------------------------------------------------------------------------------------------------

# Heavy, and not needed to read docstrings.
autodoc_mock_imports = ["keras", "ray", "starlette", "tensorflow", "uvicorn"]
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries = False
# Types in signatures: other libraries', and names that only type checkers see.
nitpick_ignore_regex = [("py:class", ".*"), ("py:exc", ".*")]

# -- looks -------------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"Variegate {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "_static" / "scorer.js")
# Pictures made while building, copied as they are.
MADE = ROOT / "build" / "site"
gallery.FOLDER.mkdir(parents=True, exist_ok=True)
html_extra_path = [str(MADE)]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "source_repository": f"{REPOSITORY}/",
    "source_branch": "main",
    "source_directory": "docs/",
    "navigation_with_keys": True,
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
linkcheck_timeout = 20
linkcheck_ignore = [f"{re.escape(REPOSITORY)}/(blob|tree|edit)/.*"]  # files of this repository, which tests look for
linkcheck_anchors_ignore_for_url = [r"https://github\.com/.*"]


def setup(app: Sphinx) -> None:
    app.connect("source-read", read)
