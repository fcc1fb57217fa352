"""A library's interface to the benchmarks: for a case, named functions that return the next batch, or the reason for
missing ones."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.cases import Case

NextBatch = Callable[[], Any]
# Iterated once per epoch, as in a training script: (float32 [batch, 3, 224, 224], labels [batch]) on the host.
Opener = Callable[[], Iterable[tuple[Any, Any]]]
# By the name of the way.
Ways = dict[str, NextBatch]
Openers = dict[str, Opener]


class Absent(Exception):
    """The library has no operation of this meaning; the message says so."""


@dataclass(frozen=True)
class LoaderInputs:
    """A folder of class folders, and the number of cores to use."""

    folder: Path
    batch: int
    cores: int


class Library:
    """An adapter. ``works_ahead``: it may make a batch before it is asked, so the first of a run does not count.

    ``lacks``: cases that it does not have, with the reason, unless that is "no such operation". ``differs``: what
    differs in meaning.
    """

    name: str
    packages: tuple[str, ...]
    works_ahead: ClassVar[bool] = False
    lacks: ClassVar[dict[str, str]] = {}
    differs: ClassVar[dict[str, str]] = {}

    def versions(self) -> dict[str, str]:
        return {package: importlib.metadata.version(package) for package in self.packages}

    def ways(self, case: Case, inputs: Any, batch: int) -> Ways:
        """Functions that return the next batch [batch, 3, out, out], contiguous. The fastest is measured.

        Cases of one image return functions for the next image, cases with targets for a list of samples. Raises Absent.
        """
        raise NotImplementedError

    def parts(self, case: Case, inputs: Any) -> dict[str, tuple[NextBatch, int]]:
        """Parts that are measured in addition to the case, with the number of images per call."""
        return {}

    def loaders(self, given: LoaderInputs) -> Openers:
        """The ways in which users of this library write a loader. Resources that an opener started end with its
        result."""
        raise Absent("has no loader here")

    def need(self, case: Case, table: Container[str]) -> None:
        """Raise Absent if the library lacks a case: if ``lacks`` says why, or no step of it is in ``table``."""
        if case.key in self.lacks:
            raise Absent(self.lacks[case.key])
        if case.key not in table and not case.views:
            raise Absent("no such operation")


def load(key: str) -> Library:
    """The library of a key, such as ``torchvision_pil``, of the module of the key's first word."""
    module = importlib.import_module(f"benchmarks.libraries.{key.partition('_')[0]}")
    library = module.LIBRARIES[key]
    assert isinstance(library, Library)
    return library
