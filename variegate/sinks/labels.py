"""What labels a run's outputs have, and which formats can hold them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from variegate.data.sources.base import SourceError
from variegate.data.sources.tar.labels import is_a_line

Layout = Literal["folder", "webdataset", "parquet"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


class Labels(NamedTuple):
    """``kind``: "int" (a class, -1 for none), "float", or "ints" and "floats", rows of ``width`` numbers. ``classes``:
    the names of int labels, where they are known."""

    kind: str = "int"
    width: int = 0
    classes: tuple[str, ...] = ()

    def check(self, label: Any, name: str) -> Any:
        """The label as a Python int, float or list. Raises ValueError naming the sample where it is of another kind."""
        kind, width = _kind_of(label)
        if (kind, width) == (self.kind, self.width) or (kind, self.kind) == ("int", "float"):
            return np.asarray(label, np.int64 if self.kind.startswith("int") else np.float64).tolist()
        raise ValueError(f"{name}: got the label {_short(label)}; accepted: {self}, as the first sample has")

    def __str__(self) -> str:
        words = {"int": "a whole number", "float": "a number"}
        return words.get(self.kind) or f"{self.width} {'whole ' * (self.kind == 'ints')}numbers"


def describe_labels(format: str, label: Any, classes: tuple[str, ...] = ()) -> Labels:
    """From the label of the run's first sample, which the others must be like.

    Raises SourceError where outputs of this format cannot hold such labels, or the classes' names, saying which can.
    """
    if format not in LAYOUTS:
        raise ValueError(f"format: got {format!r}; accepted: {', '.join(LAYOUTS)}")
    kind, width = _kind_of(label)
    if not kind:
        raise SourceError(f"labels such as {_short(label)} cannot be written; accepted: numbers, or rows of numbers")
    if kind != "int" and format != "parquet":
        what = "class folders" if format == "folder" else "WebDataset's .cls files"
        raise SourceError(f"labels such as {_short(label)} do not go into {what}; accepted with them: parquet")
    odd = next((name for name in classes if not is_a_line(name)), None)
    if odd is not None and format == "webdataset":
        raise SourceError(f"class {odd!r}: a list with a class a line cannot hold it; accepted: folder, parquet")
    return Labels(kind, width, tuple(classes) if kind == "int" else ())


def _kind_of(label: Any) -> tuple[str, int]:
    """ "" for what is neither a number nor a row of them, or beyond 64 bits."""
    array = np.asarray(label)
    kind = {"b": "int", "i": "int", "u": "int", "f": "float"}.get(array.dtype.kind, "")
    if not kind or array.ndim > 1 or array.size == 0 or (array.dtype.kind == "u" and array.max() >= 1 << 63):
        return "", 0
    return (f"{kind}s", len(array)) if array.ndim else (kind, 0)


def _short(label: Any) -> str:
    text = " ".join(repr(label).split())
    return text if len(text) <= 60 else text[:57] + "..."
