"""What files of annotations are made of, and made into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Row = dict[str, Any]
# Written outputs, each with its number from 1 on among all rows; asked for as often as a file is made.
Rows = Callable[[], Iterator[tuple[int, Row]]]
# Of a file: all of it, or pieces of one that may be large.
Content = bytes | Iterable[bytes]
