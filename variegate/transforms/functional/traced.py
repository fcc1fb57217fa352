"""Functions as parts of a pipeline: of an image without pixels they make one with a step more."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from variegate.ops.base import Traced


def traceable(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which takes images that are traced as well."""

    @functools.wraps(function)
    def either(*args: Any, **kwargs: Any) -> Any:
        if args and not isinstance(args[0], Traced):
            return function(*args, **kwargs)
        if not args and not isinstance(kwargs.get("img"), Traced):
            return function(*args, **kwargs)
        return _step(name, function, args, kwargs)

    return either


def _step(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    bound = inspect.signature(function).bind(*args, **kwargs)
    image: Any = bound.arguments.pop("img")
    return image.through_function(name, bound.arguments)
