"""The command line: commands that are alike in a file, none with logic of its own.

Nothing is imported here that takes time, so that a Ctrl-C meanwhile ends as any other.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command -> its exit code: 0, 1 where something failed, 2 for bad input, 130 when interrupted."""
    try:
        from variegate.cli.commands import run

        return run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        print("variegate: error: interrupted", file=sys.stderr)
        return 130
