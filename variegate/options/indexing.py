"""What an indexing of JPEG files can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from variegate.options import check_options, option


@dataclass(frozen=True, kw_only=True)
class IndexingOptions:
    """Raises ValueError naming the argument."""

    out: Path | None = option(
        None, "The file of the index. By default one in the user's cache folder, where Loader(index='auto') looks.",
        "Output", metavar="FILE",
    )  # fmt: skip
    threads: int | None = option(None, "How many threads. Without it, all cores.", "Machine", low=1)

    def __post_init__(self) -> None:
        check_options(self, "threads")
