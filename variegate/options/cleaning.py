"""What a cleaning can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from variegate.options import check_options, option


@dataclass(frozen=True, kw_only=True)
class CleaningOptions:
    """Raises ValueError naming the argument."""

    findings: Path | None = option(
        None, "The table that variegate check wrote of SRC.", "Images", flag="--from", metavar="FINDINGS.PARQUET"
    )
    drop: str = option(
        "",
        "What to leave out: names of findings with commas between them, such as corrupt,duplicates,leaks, or all. "
        "Without it, the command says what there is.",
        "Images",
        metavar="NAMES",
    )
    split: Literal["train", "test"] = option(
        "train", "Which of the images that were checked SRC holds. Leaks are dropped of these.", "Images"
    )
    exclude_list: Path | None = option(
        None, "Write no copy, but a list for --exclude and vg.open_source(SRC, exclude=...).", "Output", metavar="FILE"
    )
    resume: bool = option(True, "Go on where an earlier run ended, or copy everything anew.", "Running")
    threads: int | None = option(None, "How many files to copy at a time. Without it, 4.", "Running", low=1)

    def __post_init__(self) -> None:
        check_options(self, "split", "threads")
