"""One process that loads TensorFlow for all tests that need it, which takes seconds: for each of them it forks.

Keras has one back end in a process, and TensorFlow no two strategies over the same devices. Tests that ask for this
share a group of xdist's, "tensorflow".
"""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest


def on_tensorflow(function: str, *arguments: Any) -> Any:
    """What ``function`` ("module:name") returns there; what it raises is raised here."""
    for package in ("tensorflow", "keras"):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}")
    try:
        submitted = _loaded().submit(_fork, function, arguments)
    except BrokenProcessPool:  # it was killed while it waited: short of memory, a kernel takes what is large
        _loaded.cache_clear()
        submitted = _loaded().submit(_fork, function, arguments)
    return submitted.result(300)


@cache
def _loaded() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _load)


def _load() -> None:
    # Quiet, and the same sums on every processor.
    os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")
    importlib.import_module("tests.scripts")
    for module in ("interop.keras_training", "interop.keras_on_two"):
        importlib.import_module(f"tests.{module}")
    gc.freeze()  # else Python goes through all of TensorFlow's objects as it ends, for 4 to 17 s


def _fork(function: str, arguments: tuple[Any, ...]) -> Any:
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as child:
        return child.submit(_call, function, arguments).result()


def _call(function: str, arguments: tuple[Any, ...]) -> Any:
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)(*arguments)
