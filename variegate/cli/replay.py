"""``variegate replay MANIFEST ROW``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from variegate.cli.console import FAILED, emit_json, fail, say
from variegate.cli.options import CommandOptions
from variegate.options import option


@dataclass(frozen=True, kw_only=True)
class ReplayOptions(CommandOptions):
    manifest: str = option(
        ..., "The manifest.parquet that augment wrote, or the folder it is in.", "Arguments", metavar="MANIFEST"
    )
    row: int = option(..., "The number of the row, counted from 0.", "Arguments", low=0, metavar="ROW")
    out: Path | None = option(
        None, "The file to write. Without it, the output's own name in the current folder.", "Output", metavar="FILE"
    )
    source: str | None = option(None, "Where the source images are now, if they have moved.", "Running", metavar="SRC")


def replay(options: ReplayOptions) -> None:
    """Make one output of `augment` again, from its row in the manifest.

    It says whether the new file equals the old one to the byte. If not, the exit code is 1.
    """
    from variegate.engine.expansion.replay import replay as make_again
    from variegate.outside.durable import write_atomically
    from variegate.sinks.naming import safe_name

    made = make_again(options.manifest, options.row, options.source)
    name = Path(str(made.row["file"] if made.row["member"] is None else made.row["member"])).name
    if name.startswith(".") or not name:  # no output has such a name, and here it may mean something
        name = safe_name(name)
    path = Path(name) if options.out is None else options.out
    if options.out is None and path.exists():
        raise ValueError(f"{path}: is there already; accepted: another folder, or --out FILE")
    write_atomically(path, made.data)
    described = {"file": str(path), "source": made.row["source"], "copy": made.row["copy"]}
    if options.as_json:
        emit_json("done", **described, operations=made.row["operations"], is_same=made.is_same)
    else:
        verdict = "the same" if made.is_same else "not the same"
        say(f"{path}: copy {made.row['copy']} of {made.row['source']}, {verdict}")
    if not made.is_same:
        raise fail(
            f"row {options.row:,}: {made.row['file']} was another file: its source or this version of variegate "
            "differs, or it was made on a GPU, and here there is none, or another: pixels may be a level off",
            FAILED,
            options.as_json,
        )
