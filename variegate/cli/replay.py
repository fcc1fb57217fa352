"""``variegate replay MANIFEST ROW``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from variegate.cli.console import FAILED, emit_json, fail, one_line_errors, say


def replay(
    manifest: Annotated[
        str, typer.Argument(metavar="MANIFEST", help="The manifest.parquet that augment wrote, or the folder it is in.")
    ],
    row: Annotated[int, typer.Argument(metavar="ROW", min=0, help="The number of the row, counted from 0.")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The file to write. Without it, the output's own name in the current folder."
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option(metavar="SRC", help="Where the source images are now, if they have moved.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON, for other programs to read.")] = False,
) -> None:
    """Make one output of `augment` again, from its row in the manifest.

    It says whether the new file equals the old one to the byte. If not, the exit code is 1.
    """
    with one_line_errors(as_json):
        from variegate.engine.expansion.replay import replay as make_again
        from variegate.outside.durable import write_atomically
        from variegate.sinks.naming import safe_name

        made = make_again(manifest, row, source)
        name = Path(str(made.row["file"] if made.row["member"] is None else made.row["member"])).name
        if name.startswith(".") or not name:  # no output has such a name, and here it may mean something
            name = safe_name(name)
        path = out if out is not None else Path(name)
        if out is None and path.exists():
            raise ValueError(f"{path}: is there already; accepted: another folder, or --out FILE")
        write_atomically(path, made.data)
        described = {"file": str(path), "source": made.row["source"], "copy": made.row["copy"]}
        if as_json:
            emit_json("done", **described, operations=made.row["operations"], is_same=made.is_same)
        else:
            verdict = "the same" if made.is_same else "not the same"
            say(f"{path}: copy {made.row['copy']} of {made.row['source']}, {verdict}")
        if not made.is_same:
            raise fail(
                f"row {row:,}: {made.row['file']} was another file: its source or this version of variegate differs, "
                "or it was made on a GPU, and here there is none, or another: pixels may be a level off",
                FAILED,
                as_json,
            )
