"""What other libraries' feeds have in common: what they are to do, and what is said where they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from variegate.apps.train.feed import Feed
from variegate.formats.base import Source
from variegate.ops.compose import Compose
from variegate.ops.output import Normalize
from variegate.transforms import Transform


class MissingPeerError(RuntimeError):
    """A feed that there is not here; the line says why."""


def source_of(feed: Feed) -> Source:
    """Raises MissingPeerError for a stream."""
    if not isinstance(feed.source, Source):
        raise MissingPeerError("it reads samples by their number, which a stream does not have")
    return feed.source


def steps_of(transform: Transform) -> Iterator[Any]:
    """All that is done to an image, one after another, without the normalisation."""
    if isinstance(transform, Compose):
        for one in transform.transforms:
            yield from steps_of(one)
    elif not isinstance(transform, Normalize):
        yield transform


def normalisation_of(transform: Transform) -> tuple[list[float], list[float]]:
    """-> mean and deviation, of pixels from 0 to 1."""
    assert isinstance(transform, Compose)
    (found,) = (one for one in transform.transforms if isinstance(one, Normalize))
    mean, std = found.numbers
    return list(mean), list(std)


def name_of(step: Any) -> str:
    return type(step).__name__


def reason(error: BaseException) -> str:
    """In one line."""
    said = " ".join(str(error).split())
    return (said if len(said) <= 160 else f"{said[:159]}…") or type(error).__name__
