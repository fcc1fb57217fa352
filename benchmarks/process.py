"""A worker process of the benchmarks, which answers one JSON line to each that it is asked."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.peers_env import ROOT
from benchmarks.worker import THREAD_VARIABLES

PREPARE_TIMEOUT = 1800.0
RUN_TIMEOUT = 120.0
CLOSE_TIMEOUT = 5.0
ONE_THREAD = dict.fromkeys(THREAD_VARIABLES, "1")


class Process:
    """A worker process that answers one JSON line to each.

    ``environment``: variables besides ours; one thread per library by default. ``folder``: the
    checkout that it runs in.
    """

    def __init__(
        self,
        python: Path | str,
        config: dict[str, Any],
        environment: Mapping[str, str] = ONE_THREAD,
        folder: Path = ROOT,
    ) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed with the process
        self._process = subprocess.Popen(
            [str(python), "-m", "benchmarks.worker", json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=folder,
            env=os.environ | environment,
            text=True,
        )

    def ask(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """The worker's answer; RuntimeError with its output if it failed, died or timed out."""
        self.send(request)
        return self.receive(timeout)

    def send(self, request: dict[str, Any]) -> None:
        """Half of ``ask``, to let several workers be busy at once."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError(self._last_words()) from None
        self._asked = request["command"]

    def receive(self, timeout: float) -> dict[str, Any]:
        """The other half."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], timeout)
        if not ready:
            raise RuntimeError(f"no answer to {self._asked} in {timeout:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        """End its input, because only a process that exits on its own ends its children."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _last_words(self) -> str:
        self._process.wait()
        self._log.seek(0)
        lines = [line for line in self._log.read().splitlines() if line.strip()]
        return f"the process ended with {self._process.returncode}: {lines[-1] if lines else 'no message'}"
