"""Check that a release is what its tag says: ``python -m tools.release v0.1.0 [--dist dist]``.

The version is a literal in variegate/__init__.py. The tag, the newest entry of CHANGELOG.md, CITATION.cff, the studio's
pyproject.toml and the files in dist/ have to agree with it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Processors that wheels are built for.
MACHINES = ("x86_64", "aarch64")
STUDIO = Path("packages", "variegate-studio")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tag", help="the tag of the release, such as v0.1.0")
    parser.add_argument("--dist", type=Path, help="check the files in this folder, too")
    options = parser.parse_args(arguments)
    errors = find_errors(ROOT, options.tag, options.dist)
    for error in errors:
        print(error, file=sys.stderr)
    if not errors:
        print(f"{options.tag}: the version, the changelog and the files agree")
    return 1 if errors else 0


def version_of(root: Path) -> str:
    """The literal in variegate/__init__.py."""
    text = (root / "variegate" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    assert found is not None
    return found[1]


def find_errors(root: Path, tag: str, dist: Path | None = None) -> list[str]:
    """One line for each disagreement."""
    version = version_of(root)
    errors = []
    if tag != f"v{version}":
        errors.append(f"tag: got {tag!r}; accepted: 'v{version}', by __version__ in variegate/__init__.py")
    newest = newest_entry((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if newest != version:
        errors.append(f"CHANGELOG.md: the newest entry is {newest!r}; accepted: '{version}'")
    citation = root / "CITATION.cff"
    if citation.exists():
        found = re.search(r"^version:\s*\"?([^\s\"]+)", citation.read_text(encoding="utf-8"), re.MULTILINE)
        if found is not None and found[1] != version:
            errors.append(f"CITATION.cff: version: got {found[1]!r}; accepted: '{version}'")
    errors += find_studio_errors(root, version)
    if dist is not None:
        errors += find_files_errors(dist, version)
    return errors


def find_studio_errors(root: Path, version: str) -> list[str]:
    """One line for each version in the studio's pyproject.toml, its own and Variegate's, that is another."""
    file = STUDIO / "pyproject.toml"
    text = (root / file).read_text(encoding="utf-8")
    versions = {
        "version": re.findall(r'^version = "([^"]+)"$', text, re.MULTILINE),
        "dependencies": re.findall(r'"variegate==([^"]+)"', text),
    }
    return [
        f"{file}: {name}: got {found}; accepted: {[version]}" for name, found in versions.items() if found != [version]
    ]


def newest_entry(changelog: str) -> str | None:
    """The version in the first heading of the second level: ``## 0.1.0``, with or without brackets and a date."""
    found = re.search(r"^## \[?([^\s\]]+)", changelog, re.MULTILINE)
    return found and found[1]


def find_files_errors(dist: Path, version: str) -> list[str]:
    """What lacks in a folder of wheels, or does not belong there."""
    names = sorted(file.name for file in dist.iterdir()) if dist.is_dir() else []
    wanted = [f"variegate-{version}.tar.gz", f"variegate_studio-{version}-py3-none-any.whl"]
    wanted += [f"variegate-{version}-py3-none-manylinux_2_17_{machine}.whl" for machine in MACHINES]
    errors = [f"{dist}: no {pattern}" for pattern in wanted if not any(Path(name).match(pattern) for name in names)]
    errors += [
        f"{dist}: {name} is not of this release"
        for name in names
        if not any(Path(name).match(pattern) for pattern in wanted)
    ]
    return errors


if __name__ == "__main__":
    sys.exit(main())
