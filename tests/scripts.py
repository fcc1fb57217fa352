"""A script run in this process as a shell would run it in one of its own: what it printed, and how it ended."""

from __future__ import annotations

import contextlib
import os
import random
import runpy
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple
from unittest import mock

import numpy as np
import torch

from variegate.transforms import Transform


class Ran(NamedTuple):
    """``code``: what the script exits with."""

    code: int | str | None
    stdout: str
    stderr: str


def run_script(script: Path, arguments: Sequence[str], folder: Path) -> Ran:
    """In ``folder``. What it changes of the process is as before afterwards; what it raises is raised here."""
    code: int | str | None = 0
    with _as_before(), _printed(1) as stdout, _printed(2) as stderr, _pythons_warnings():
        os.chdir(folder)
        sys.argv = [str(script), *arguments]
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        sys.stderr.flush()
        return Ran(code or 0, _read(stdout), _read(stderr))


@contextlib.contextmanager
def _as_before() -> Iterator[None]:
    """Folder, variables, paths and arguments; operations' names; random numbers, and what torch is set to."""
    folder, threads, dtype = os.getcwd(), torch.get_num_threads(), torch.get_default_dtype()
    states = random.getstate(), np.random.get_state()
    with (
        mock.patch.dict(os.environ),
        mock.patch.object(sys, "argv", sys.argv),
        mock.patch.object(sys, "path", [*sys.path]),
        mock.patch.object(Transform, "registry", dict(Transform.registry)),
        torch.random.fork_rng(devices=[]),
    ):
        try:
            yield
        finally:
            os.chdir(folder)
            torch.set_num_threads(threads)
            torch.set_default_dtype(dtype)
            random.setstate(states[0])
            np.random.set_state(states[1])


@contextlib.contextmanager
def _printed(descriptor: int) -> Iterator[IO[bytes]]:
    """What goes there, from libraries that are no Python and from child processes too."""
    redirected = (contextlib.redirect_stdout, contextlib.redirect_stderr)[descriptor - 1]
    kept = os.dup(descriptor)
    with tempfile.TemporaryFile() as file, open(os.dup(file.fileno()), "w", encoding="utf-8") as text:
        os.dup2(file.fileno(), descriptor)
        try:
            with redirected(text):
                yield file
        finally:
            os.dup2(kept, descriptor)
            os.close(kept)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@contextlib.contextmanager
def _pythons_warnings() -> Iterator[None]:
    """Those that Python would print, printed; of what the script itself does, what is deprecated is an error."""

    def show(message: Warning | str, category: type[Warning], name: str, number: int, *more: object) -> None:
        sys.stderr.write(warnings.formatwarning(message, category, name, number))

    with warnings.catch_warnings():
        warnings.resetwarnings()
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("error", category=DeprecationWarning, module="__main__")
        warnings.showwarning = show  # type: ignore[assignment]
        yield
