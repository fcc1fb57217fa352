"""Code that may wait for ever, run in a process that is not waited for as long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent.parent


def run_python(
    code: str, *arguments: object, seconds: float = 300, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Raises TimeoutExpired where it does not end in time, which is long enough for imports on a busy machine."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        timeout=seconds,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        check=False,
    )


def run_command(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """``variegate ...``."""
    code = "import sys; from variegate.cli import main; sys.exit(main())"
    return run_python(code, *arguments, cwd=cwd)
