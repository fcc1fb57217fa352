"""What the build hook asks of the compiler: each processor's library has its own file, and a checkout gets its own."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from native import hatch_build

native_build = hatch_build.native_build


class Builds:
    """Stands in for ``native.build.build``: the libraries that were requested, by their processors."""

    def __init__(self) -> None:
        self.requested: dict[str, Path] = {}

    def __call__(self, library: Path = native_build.LIBRARY, levels: Sequence[str] | None = None) -> Path:
        self.requested[native_build.target_machine()] = library
        return library


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> Builds:
    monkeypatch.delenv("CC", raising=False)
    stand_in = Builds()
    monkeypatch.setattr(native_build, "build", stand_in)
    return stand_in


def run_hook(version: str) -> dict[str, Any]:
    data: dict[str, Any] = {"force_include": {}}
    hatch_build.NativeHook.initialize(SimpleNamespace(target_name="wheel"), version, data)
    return data


def test_libraries_of_two_processors_are_two_files(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one file, the one that was built first would be taken for current and packed into the other's wheel."""
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setenv("VARIEGATE_TARGET", machine)
        data = run_hook("standard")
        assert data["tag"].endswith(machine)
        assert list(data["force_include"]) == [str(builds.requested[machine])]
    assert builds.requested["x86_64"] != builds.requested["aarch64"]


def test_an_editable_install_is_for_this_processor(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    host = native_build.target_machine()
    monkeypatch.setenv("VARIEGATE_TARGET", "aarch64" if platform.machine() == "x86_64" else "x86_64")
    run_hook("editable")
    assert list(builds.requested) == [host]
