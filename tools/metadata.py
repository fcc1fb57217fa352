"""What pyproject.toml cannot say of itself, for hatchling: the version is a literal in variegate/__init__.py alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "https://github.com/variegate/variegate"
_FILES = "https://raw.githubusercontent.com/variegate/variegate"
# A link or a picture of Markdown whose address is a path in the repository.
_RELATIVE = re.compile(r"(!?)(\[(?:[^\[\]]|\[[^\]]*\])*\])\((?!https?:|mailto:|#)([^)\s]+)\)")


class VersionHook(MetadataHookInterface):
    """Pin the extra "studio" to this very version; link the README to the files of its tag."""

    def update(self, metadata: dict[str, Any]) -> None:
        version = metadata["version"]
        extras: dict[str, list[str]] = {**self.config["optional-dependencies"]}
        extras["studio"] = [pinned(requirement, version) for requirement in extras["studio"]]
        metadata["optional-dependencies"] = extras
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_absolute_links(text, version)}


def pinned(requirement: str, version: str) -> str:
    """``name; marker`` -> ``name==version; marker``."""
    name, separator, marker = requirement.partition(";")
    return f"{name.strip()}=={version}{separator}{marker}"


def with_absolute_links(text: str, version: str) -> str:
    """Markdown for a page outside of the repository, such as PyPI's."""

    def absolute(match: re.Match[str]) -> str:
        is_picture, words, path = match.groups()
        base = f"{_FILES}/v{version}" if is_picture else f"{REPOSITORY}/blob/v{version}"
        return f"{is_picture}{words}({base}/{path})"

    return _RELATIVE.sub(absolute, text)
