"""Two branches that meet: what a variable is behind an ``if`` whose condition differs from sample to sample."""

from __future__ import annotations

from typing import Any, NoReturn

from variegate.checks import as_number
from variegate.pipelines.graph import place, refuse
from variegate.pipelines.image import Fork, TracedImage
from variegate.pipelines.scalar import Scalar, is_plain, make, same


class Missing:
    """In the place of a variable without a value that could be used; the first use says why."""

    def __init__(self, reason: str, accepted: str = "", where: str | None = None) -> None:
        self._reason, self._accepted, self._where = reason, accepted, where

    def refused(self) -> NoReturn:
        if not self._accepted:
            raise UnboundLocalError(self._reason)
        refuse(self._reason, self._accepted, self._where)


def unset(name: str) -> Missing:
    return Missing(f"cannot access local variable {name!r} where it is not associated with a value")


def merge(condition: Scalar, yes: Any, no: Any, name: str, is_result: bool = False) -> Any:
    """``yes`` where the condition holds, else ``no``. ``is_result``: a branch without one goes on, and gives its own
    later."""
    if yes is no:
        return yes
    if isinstance(yes, Missing) or isinstance(no, Missing):
        if is_result:
            return no if isinstance(yes, Missing) else yes
        if isinstance(yes, Missing) and isinstance(no, Missing):
            return yes
        return Missing(f"{name} has a value in one branch only", "a value in both branches, or one before the `if`")
    if isinstance(yes, TracedImage) and isinstance(no, TracedImage):
        return merge_images(condition, yes, no)
    if same_plain(yes, no):
        return yes
    if (_is_number(yes) and _is_number(no)) or (_is_text(yes) and _is_text(no)):
        return make("where", condition, yes, no)
    if type(yes) is type(no) and isinstance(yes, (list, tuple)) and len(yes) == len(no):
        return type(yes)([merge(condition, a, b, name) for a, b in zip(yes, no, strict=True)])
    if isinstance(yes, dict) and isinstance(no, dict) and list(yes) == list(no):
        return {key: merge(condition, yes[key], no[key], name) for key in yes}
    if is_result and no is not None and yes is None:
        yes, no = no, yes
    kinds = "the function returns" if is_result else f"{name} is"
    return Missing(
        f"{kinds} {_kind(yes)} in one branch and {_kind(no)} in the other",
        "numbers, texts or images that differ; lists of them of one length",
        place() if is_result else None,
    )


def merge_images(condition: Scalar, yes: TracedImage, no: TracedImage) -> TracedImage:
    """Both have come a part of their way together."""
    if yes is no:
        return yes
    first, second = yes, no
    while first is not second:
        if first.depth >= second.depth:
            assert first.parent is not None
            first = first.parent
        else:
            assert second.parent is not None
            second = second.parent
    return TracedImage(first.graph, first, Fork(condition, yes, no))


def same_plain(yes: Any, no: Any) -> bool:
    if isinstance(yes, Scalar) or isinstance(no, Scalar):
        return same(yes, no)
    if is_plain(yes) and is_plain(no):
        return same(yes, no)
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, (Scalar, bool)) or (not isinstance(value, TracedImage) and as_number(value) is not None)


def _is_text(value: Any) -> bool:
    return isinstance(value, (Scalar, str))


def _kind(value: Any) -> str:
    if isinstance(value, TracedImage):
        return "an image"
    if value is None:
        return "nothing"
    return f"{value!r}" if is_plain(value) else f"a {type(value).__name__}"
