"""What a JSON or YAML file holds. Any file may be handed over, so that whatever it is ends in one PolicyError, soon."""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from variegate.errors import PolicyError
from variegate.outside.addresses import speakable
from variegate.outside.files import NotRegularError, TooLargeError, read_regular

SUFFIXES = (".json", ".yaml", ".yml")
# A schedule of 500 epochs is a megabyte of JSON. YAML is read some hundred times slower.
_MAX_BYTES = {".json": 16 << 20, ".yaml": 1 << 20, ".yml": 1 << 20}
_MAX_NODES, _MAX_LEVELS = 50_000, 80


def read_policy_file(path: Path) -> Any:
    """Raises FileNotFoundError where there is none; else PolicyError naming the file, and the line where one is known:
    for other suffixes, for what is no regular file, is too large, is no UTF-8, does not parse, names a key twice, or
    is nested too deeply.
    """
    if not path.exists():
        raise FileNotFoundError(speakable(f"{path}: no such policy file"))
    if path.suffix not in SUFFIXES:
        raise PolicyError(str(path), path.suffix, "a file that ends in " + ", ".join(SUFFIXES))
    text = _text(path)
    try:
        return _from_json(text, path) if path.suffix == ".json" else _from_yaml(text)
    except PolicyError:
        raise
    except json.JSONDecodeError as error:
        place = f"{path}: line {error.lineno} column {error.colno}"
        raise PolicyError(place, _line(error), f"JSON: {error.msg}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}: line {mark.line + 1} column {mark.column + 1}" if mark else str(path)
        raise PolicyError(place, error.problem, "YAML") from error
    except yaml.YAMLError as error:
        raise PolicyError(str(path), str(error), "YAML") from error
    except RecursionError as error:
        raise PolicyError(str(path), "lists or objects without end", f"at most {_MAX_LEVELS} levels") from error
    except (ValueError, OverflowError) as error:  # such as a number of 5,000 digits, or the 31st of February
        kind = "JSON" if path.suffix == ".json" else "YAML"
        raise PolicyError(str(path), str(error), f"{kind} with numbers that Python can hold") from error


def _text(path: Path) -> str:
    limit = _MAX_BYTES[path.suffix]
    try:
        data = read_regular(path, limit)
    except TooLargeError:
        raise PolicyError(str(path), f"more than {limit:,} bytes", f"policies of at most {limit >> 20} MiB") from None
    except NotRegularError as error:
        raise PolicyError(str(path), error.kind, "a regular file") from None
    except OSError as error:
        raise PolicyError(str(path), error.strerror or str(error), "a file of JSON or YAML") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PolicyError(str(path), data[error.start : error.start + 4], "text in UTF-8") from error


def _from_json(text: str, path: Path) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise PolicyError(str(path), f"the key {twice!r} twice in one object", "every key once")
        return found

    def constant(name: str) -> float:
        if name == "NaN":
            raise PolicyError(str(path), name, "numbers")
        return float(name)

    return json.loads(text, object_pairs_hook=once, parse_constant=constant)


def _from_yaml(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
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
        if self._level > _MAX_LEVELS or self._nodes > _MAX_NODES:
            deep = self._level > _MAX_LEVELS
            accepted = f"{_MAX_LEVELS} levels of nesting" if deep else f"{_MAX_NODES:,} values"
            raise yaml.composer.ComposerError(None, None, f"more than {accepted}", self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        self._level -= 1
        return node

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


def _line(error: json.JSONDecodeError) -> str:
    lines = error.doc.splitlines()
    return lines[error.lineno - 1].strip()[:60] if error.lineno <= len(lines) else "the end of the file"
