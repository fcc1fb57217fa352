"""Compiles the native library when the project is built or installed: hatchling calls this."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Loaded by its path: where a wheel is built, this folder is no package that can be imported.
_spec = importlib.util.spec_from_file_location("native_build", Path(__file__).with_name("build.py"))
assert _spec is not None
assert _spec.loader is not None
native_build: Any = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = native_build
_spec.loader.exec_module(native_build)


class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
    """A wheel gets the library of every level from another folder, so that the checkout stays as it is; an editable
    install compiles this processor's level into the checkout."""

    def dependencies(self) -> list[str]:
        return ["ziglang>=0.15"] if native_build.needs_ziglang() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        if version == "editable":
            # For the processor that runs it: VARIEGATE_TARGET is about wheels.
            os.environ.pop("VARIEGATE_TARGET", None)
            native_build.build(levels=native_build.host_levels())
        else:
            # In the folder of its compiler and processor: one path for all would be taken for current.
            library = native_build.build(native_build.objects_folder() / "_native.so")
            build_data["force_include"][str(library)] = "variegate/_native.so"
        build_data["tag"] = native_build.wheel_tag()
        build_data["pure_python"] = False
