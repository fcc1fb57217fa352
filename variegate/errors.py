"""Errors whose message names the argument, the value it got, and accepted values."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from variegate.io.addresses import redact_secrets, redact_text

K = TypeVar("K")
T = TypeVar("T")

STUDIO_MISSING = (
    "the studio is not installed: pip install 'variegate[studio]', or from a checkout pip install "
    "./packages/variegate-studio"
)


class _Shown(reprlib.Repr):
    """``repr`` of whatever a user may hand over: never long, never over several lines, never an error itself."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 6
        self.maxother = 300
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 40
        self.maxstring = 200

    def repr_int(self, x: int, level: int) -> str:
        # Python itself refuses to write out integers of more than 4,300 digits.
        return repr(x) if x.bit_length() <= 256 else f"an integer of {x.bit_length():,} bits"

    def repr_bytes(self, x: bytes, level: int) -> str:
        return repr(x) if len(x) <= 40 else f"{x[:40]!r}..."


_LONGEST = 400
_LONGEST_LINE = 1000
_shown = _Shown()


def truncate_middle(text: str, most: int = _LONGEST_LINE) -> str:
    """Shorten a message in the middle: messages begin with a place and end with accepted values."""
    return text if len(text) <= most else f"{text[: most - most // 4 - 5]} ... {text[-(most // 4) :]}"


def short_repr(value: object) -> str:
    """The value that a message says it got, on one line of at most a few hundred characters."""
    try:
        text = " ".join(_shown.repr(value).split())
    except Exception:  # a __repr__ may do anything
        text = f"a {type(value).__name__}"
    return truncate_middle(text, _LONGEST)


def one_line(error: BaseException | str, *known: str) -> str:
    """The message of an error on one line, without secrets. ``known``: addresses that it may quote."""
    return " ".join(redact_secrets(str(error), *known).split())


class PolicyError(ValueError):
    """Raised for an invalid transform description (dict, JSON or YAML).

    ``where`` is the path to the first invalid key, ``got`` its value, ``accepted`` describes accepted values.
    """

    def __init__(self, where: str, got: object, accepted: str) -> None:
        self.where = where
        self.got = got
        self.accepted = accepted
        place = one_line(where)
        place = place if len(place) <= _LONGEST else f"{place[:_LONGEST]} ..."
        super().__init__(redact_text(f"{place}: got {short_repr(got)}; accepted: {accepted}"))


class DecodeError(ValueError):
    """Raised for a file that cannot be decoded; ``path`` is its name, without secrets of a URL, ``reason`` says why."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = redact_secrets(path)
        self.reason = redact_secrets(truncate_middle(reason))
        super().__init__(redact_text(f"{path}: {truncate_middle(reason)}"))

    def __reduce__(self) -> Any:
        return DecodeError, (self.path, self.reason)


class DeviceMemoryError(RuntimeError):
    """Raised when a device lacks memory for a batch: its images, results or intermediate buffers."""


def try_each(
    items: Iterable[K],
    make: Callable[[K], T],
    is_items_fault: Callable[[Exception], bool] = lambda error: isinstance(error, ValueError),
) -> Iterator[tuple[K, T | Exception]]:
    """Find the failing items of a batch: each with what ``make`` gives for it alone, or the error that it raises.

    An error that ``is_items_fault`` denies ends it all.
    """
    for item in items:
        try:
            result = make(item)
        except Exception as error:
            if not is_items_fault(error):
                raise
            yield item, error
        else:
            yield item, result


def refused_by_transform(path: str, error: Exception) -> DecodeError:
    """An image that the transform does not take, such as one smaller than a crop."""
    refusal = DecodeError(path, f"not taken by the transform: {error}")
    refusal.__cause__ = error
    return refusal
