"""What is released: one version everywhere, and metadata that an index of packages accepts."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from email.message import Message
from email.parser import Parser
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.metadata.spec import get_core_metadata_constructors
from hatchling.plugin.manager import PluginManager
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import variegate
from tests.children import run_python
from tools import release
from tools.metadata import REPOSITORY, pinned, with_absolute_links

VERSION = variegate.__version__


@pytest.fixture(scope="module")
def metadata() -> Message:
    """What the wheel and the sdist say of themselves."""
    project = ProjectMetadata(str(release.ROOT), PluginManager())
    return Parser().parsestr(next(reversed(get_core_metadata_constructors().values()))(project))


def test_the_version_is_a_literal_in_one_place(metadata: Message) -> None:
    assert metadata["Version"] == release.version_of(release.ROOT) == VERSION
    assert VERSION not in (release.ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_extra_wants_the_studio_of_this_version(metadata: Message) -> None:
    studio = [line for line in metadata.get_all("Requires-Dist", []) if line.startswith("variegate-studio")]
    assert studio == [f"variegate-studio=={VERSION}; extra == 'studio'"]
    assert pinned("a; python_version > '3'", "1.2") == "a==1.2; python_version > '3'"
    assert pinned("a", "1.2") == "a==1.2"


# Imports every module of the reference with packages refused that are named on the command line.
_IMPORT_REFERENCE = """
import importlib, sys
from docs.reference_pages import entries
from pathlib import Path

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in sys.argv[1:]:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
for page in sorted(Path("docs/reference").glob("*.md")):
    for module, name, _ in entries(page.read_text("utf-8")):
        # The site has stand-ins for what these import.
        if module not in ("variegate.interop.keras", "variegate.interop.ray") and "studio" not in module + name:
            getattr(importlib.import_module(module), name)
"""


def installed_by(lines: Iterable[str], extra: str) -> set[str]:
    """Return the canonical names of what these requirements with this extra install, and what those require."""
    found: set[str] = set()
    for requirement in map(Requirement, lines):
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": extra})):
            continue
        found.add(name)
        with suppress(PackageNotFoundError):
            found |= _required(name)
    return found


@cache
def _required(name: str) -> set[str]:
    return installed_by(requires(name) or (), "")


@pytest.mark.process
def test_the_docs_extra_installs_what_the_reference_imports(metadata: Message) -> None:
    """``make docs`` installs this extra alone."""
    allowed = installed_by(metadata.get_all("Requires-Dist", []), "docs")
    ours = {"variegate", "docs", "tests", "tools", "native", "benchmarks"}
    refused = {
        package
        for package, distributions in packages_distributions().items()
        if allowed.isdisjoint(map(canonicalize_name, distributions))
    }
    assert "pytest" in refused
    result = run_python(_IMPORT_REFERENCE, *sorted(refused - ours))
    assert result.returncode == 0, result.stderr


def test_licenses_and_addresses(metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    files = metadata.get_all("License-File", [])
    assert files == ["LICENSE", "variegate/data/photos/README.md"]
    assert all((release.ROOT / file).is_file() for file in files)
    assert not [line for line in metadata.get_all("Classifier", []) if line.startswith("License ::")]
    names = [line.partition(",")[0] for line in metadata.get_all("Project-URL", [])]
    assert names == ["Homepage", "Documentation", "Source", "Issues", "Changelog"]


def test_the_readme_of_a_release_links_to_its_tag(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert f"]({REPOSITORY}/blob/v{VERSION}/docs/command-line.md)" in text
    assert "](docs/" not in text
    assert with_absolute_links("[a `b`](c.md#d) ![p](q.png)", "1.2") == (
        f"[a `b`]({REPOSITORY}/blob/v1.2/c.md#d) ![p](https://raw.githubusercontent.com/variegate/variegate/v1.2/q.png)"
    )
    for text in ("[a](https://b.c/d)", "[a](#b)", "f[i](j, k)"):
        assert with_absolute_links(text, "1.2") == text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository of version 1.2.3."""
    (tmp_path / "variegate").mkdir()
    (tmp_path / "variegate" / "__init__.py").write_text('"""."""\n\n__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (2026-12-01)\n\n## 1.2.2\n")
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.3\n")
    (tmp_path / release.STUDIO).mkdir(parents=True)
    studio = 'version = "1.2.3"\ndependencies = ["variegate==1.2.3", "starlette"]\n'
    (tmp_path / release.STUDIO / "pyproject.toml").write_text(studio)
    return tmp_path


def test_a_release_that_agrees(root: Path) -> None:
    assert release.find_errors(root, "v1.2.3") == []
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.3] - 2026-12-01\n")
    (root / "CITATION.cff").unlink()
    assert release.find_errors(root, "v1.2.3") == []


def test_a_release_that_does_not_agree(root: Path) -> None:
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.2.3\n")
    (root / "CITATION.cff").write_text('cff-version: 1.2.0\nversion: "1.2.2"\n')
    studio = root / release.STUDIO / "pyproject.toml"
    studio.write_text(
        studio.read_text().replace('version = "1.2.3"', 'version = "1.2.2"').replace("variegate==1.2.3", "variegate")
    )
    assert release.find_errors(root, "1.2.3") == [
        "tag: got '1.2.3'; accepted: 'v1.2.3', by __version__ in variegate/__init__.py",
        "CHANGELOG.md: the newest entry is 'Unreleased'; accepted: '1.2.3'",
        "CITATION.cff: version: got '1.2.2'; accepted: '1.2.3'",
        "packages/variegate-studio/pyproject.toml: version: got ['1.2.2']; accepted: ['1.2.3']",
        "packages/variegate-studio/pyproject.toml: dependencies: got []; accepted: ['1.2.3']",
    ]


def test_the_files_of_a_release(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "ROOT", root)
    dist = root / "dist"
    dist.mkdir()
    studio = "variegate_studio-1.2.3-py3-none-any.whl"
    wheels = [f"variegate-1.2.3-py3-none-manylinux_2_17_{machine}.whl" for machine in ("x86_64", "aarch64")]
    for name in ("variegate-1.2.3.tar.gz", studio, *wheels):
        (dist / name).touch()
    assert release.main(["v1.2.3", "--dist", str(dist)]) == 0
    (dist / wheels[1]).unlink()
    (dist / "variegate-1.2.2.tar.gz").touch()
    assert release.main(["v1.2.3", "--dist", str(dist)]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"{dist}: no {wheels[1]}",
        f"{dist}: variegate-1.2.2.tar.gz is not of this release",
    ]
