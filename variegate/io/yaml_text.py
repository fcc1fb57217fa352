"""YAML of strangers: whatever text it is ends in values or one YAMLError, soon."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

_MAX_NODES = 50_000
MAX_LEVELS = 80


def read_yaml(text: str) -> Any:
    """Raises YAMLError, also for a key twice and nesting too deep; RecursionError for what holds itself."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    except (ValueError, OverflowError) as error:  # of its scanner: characters beyond Unicode
        raise yaml.YAMLError(str(error)) from error
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """YAML's safe loader with an end: of nesting, of nodes, and no key twice."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._level = self._nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._nodes += 1
        self._level += 1
        if self._level > MAX_LEVELS or self._nodes > _MAX_NODES:
            deep = self._level > MAX_LEVELS
            accepted = f"{MAX_LEVELS} levels of nesting" if deep else f"{_MAX_NODES:,} values"
            raise yaml.composer.ComposerError(None, None, f"more than {accepted}", self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        self._level -= 1
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # PyYAML's own errors for values that do not fit their tag: "!!timestamp 1", "!!bool 1", the 31st of
            # February.
            kind = node.tag.removeprefix("tag:yaml.org,2002:")
            why = f" ({error})" if isinstance(error, ValueError) else ""
            message = f"{str(node.value)[:60]!r}, which is no {kind}{why}"
            raise yaml.constructor.ConstructorError(None, None, message, node.start_mark) from error

    def flatten_mapping(self, node: Any) -> None:
        # Merges of merges double the keys with each.
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, "a merge key (<<)", key.start_mark)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        found = super().construct_mapping(node, deep)
        if len(found) < len(node.value):
            seen: set[str] = set()
            for key, _ in node.value:
                if key.value in seen:
                    message = f"the key {key.value!r} twice in one object"
                    raise yaml.constructor.ConstructorError(None, None, message, key.start_mark)
                seen.add(key.value)
        return found
