"""Policies by name, from files and to files. Any file at all ends in a policy or one PolicyError, soon."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import yaml

from variegate.checks import did_you_mean
from variegate.errors import PolicyError, short_repr
from variegate.io.addresses import redact_text
from variegate.io.durable import write_atomically
from variegate.io.files import NotRegularError, TooLargeError, read_regular
from variegate.io.yaml_text import MAX_LEVELS, read_yaml
from variegate.ops.arguments import MAX_STEPS, ArgumentError
from variegate.ops.base import Transform
from variegate.ops.description import check_keys, check_tree, from_dict, substituted
from variegate.options.rows import POLICY_SUFFIXES as SUFFIXES
from variegate.pipelines.pipeline import Pipeline
from variegate.policies.augmix import AugMix
from variegate.policies.autoaugment import PUBLISHED, AutoAugment
from variegate.policies.pba import PBA
from variegate.policies.schedule import FORMAT, PUBLISHED_SCHEDULES, Schedule, schedule_from_dict
from variegate.policies.spaces import DATA
from variegate.policies.timm import EXAMPLES, is_timm, parse_timm
from variegate.policies.uniform import RandAugment, ThreeAugment, TrivialAugmentWide

# A schedule of 500 epochs is a megabyte of JSON. YAML is read some hundred times slower.
_MAX_BYTES = {".json": 16 << 20, ".yaml": 1 << 20, ".yml": 1 << 20}
POLICY_FORMAT = "variegate-policy/1"
_NAMED: dict[str, Callable[[], Transform]] = {
    "autoaugment": AutoAugment,
    "randaugment": RandAugment,
    "trivialaugment": TrivialAugmentWide,
    "augmix": AugMix,
    "3-augment": ThreeAugment,
}
# Recipes of several views.
_VIEWS: dict[str, Any] = json.loads((DATA / "views.json").read_text(encoding="utf-8"))
_RANDAUGMENT = "randaugment-"
POLICY_NAMES = (*PUBLISHED, *PUBLISHED_SCHEDULES, *_NAMED, *_VIEWS)
_ACCEPTED = f"{', '.join(POLICY_NAMES)}, randaugment-N-M, a string such as {EXAMPLES}, or a .json or .yaml file"


# Several views, each possibly a list; the recipe's reader interprets the content.
@overload
def load_policy(source: Literal["simclr", "byol", "dino", "mocov3"]) -> Any: ...
@overload
def load_policy(source: str | os.PathLike[str] | Mapping[str, Any]) -> Transform: ...
def load_policy(source: str | os.PathLike[str] | Mapping[str, Any]) -> Transform:
    """Load a transform from a name, a file or a dict.

    ``source`` is one of:

    - a name, in any case: "imagenet", "cifar10", "svhn", "v0" (AutoAugment), "pba-cifar10", "pba-svhn", "autoaugment"
      (the same as "imagenet"), "randaugment", "trivialaugment", "augmix", "3-augment"; "randaugment-N-M" has N
      operations at magnitude M of 0..30;
    - a complete recipe of several views, from crop to normalization: "simclr", "byol", "dino", "mocov3";
    - "module:function", a pipeline (``vg.pipeline``) of a module that is imported already;
    - a timm string, such as "rand-m9-mstd0.5-inc1", "augmix-m5-w4-d2", "original-mstd0.5", "v0r" and "3a";
    - a .json, .yaml or .yml file, or a dict: a description by ``to_dict``, a schedule ("format":
      "variegate-schedule/1"), or an AutoAugment policy ("format": "variegate-policy/1", "policy": [...], "space": ...).

    Raises:
        PolicyError: for an unknown name, and for text that cannot be parsed, with line and column. Also for an invalid
            file, with the path to the first invalid key (``policy.json: transforms[2].magnitude``). No file raises
            anything else, or takes more than seconds.
        FileNotFoundError: if the file does not exist.
    """
    if isinstance(source, Mapping):
        return _from_mapping(source, "")
    if isinstance(source, str):
        if "://" in source:
            raise PolicyError("policy", source, "a name, or a file of this machine")
        if source.lower() in POLICY_NAMES or not _looks_like_file(source):
            return policy_by_name(source)
    elif not isinstance(source, os.PathLike):
        raise PolicyError("policy", source, "a name, a path or a dict")
    path = Path(source)
    return _from_mapping(_read_file(path), str(path))


def policy_by_name(source: str) -> Transform:
    """The policy of a name or a timm string. No file is looked up. Raises PolicyError."""
    name = source.lower()
    if name in _NAMED:
        return _NAMED[name]()
    if name in _VIEWS:
        return from_dict(_VIEWS[name]["policy"], name)
    if name in PUBLISHED:
        return AutoAugment(name)
    if name in PUBLISHED_SCHEDULES:
        return PBA(name)
    if name.startswith(_RANDAUGMENT):
        return _randaugment(source)
    if ":" in source:
        try:
            return Pipeline(source)
        except ArgumentError as error:
            raise PolicyError("policy", source, error.accepted) from error
    if is_timm(name):
        return parse_timm(name, where=f"{short_repr(source)}")
    # Classes are written with words that names do without: TrivialAugmentWide, rand_augment.
    plain = name.replace("_", "").replace(" ", "").removesuffix("wide")
    raise PolicyError("policy", source, _ACCEPTED + did_you_mean(plain, POLICY_NAMES, 0.7))


def save_policy(transform: Transform | Schedule, path: str | os.PathLike[str]) -> None:
    """Write a transform (or a schedule) to a JSON or YAML file that ``load_policy`` reads.

    ``path`` ends in .json, .yaml or .yml, and appears only when complete. Raises PolicyError for another suffix, and
    ValueError for a ``transform`` that holds a Python function.
    """
    path = Path(path)
    described = transform.to_dict()
    if path.suffix not in SUFFIXES:
        raise PolicyError(str(path), path.suffix, "a name that ends in " + ", ".join(SUFFIXES))
    write_atomically(path, policy_text(described, path.suffix).encode(), several_writers=True)


def policy_text(described: Mapping[str, Any], suffix: str) -> str:
    """A description as the content of a file of that suffix."""
    if suffix == ".json":
        return json.dumps(described, indent=2) + "\n"
    return yaml.safe_dump(described, sort_keys=False, default_flow_style=None, width=100)


def _randaugment(source: str) -> Transform:
    numbers = re.fullmatch(r"(\d{1,3})-(\d{1,3})", source[len(_RANDAUGMENT) :])
    if numbers is None or not 1 <= int(numbers[1]) <= MAX_STEPS or int(numbers[2]) > 30:
        accepted = f"randaugment-N-M with 1 to {MAX_STEPS} operations at magnitude 0 to 30, such as randaugment-1-5"
        raise PolicyError("policy", source, accepted)
    return RandAugment(int(numbers[1]), int(numbers[2]))


def _looks_like_file(source: str) -> bool:
    try:
        return source.endswith(SUFFIXES) or os.sep in source or os.path.isfile(source)
    except ValueError:  # no path, such as one with a zero byte
        return False


def _from_mapping(described: Any, path: str) -> Transform:
    """A described transform; errors get the file in front of the path to the key."""
    try:
        check_tree(described, "")
        if not isinstance(described, Mapping) or "format" not in described:
            return from_dict(described, "")
        check_keys(described, "")
        if described["format"] == FORMAT:
            return PBA(schedule_from_dict(described, ""))
        if described["format"] != POLICY_FORMAT:
            raise PolicyError("format", described["format"], f"{FORMAT!r} or {POLICY_FORMAT!r}")
        if unknown := set(described) - {"format", "source", "policy", "space"}:
            raise PolicyError(min(unknown), described[min(unknown)], "format, source, policy, space")
        try:
            return AutoAugment(described.get("policy", ()), space=described.get("space"))
        except ArgumentError as error:
            raise PolicyError(error.argument, error.got, error.accepted) from error
    except PolicyError as error:
        where = ": ".join(part for part in (path, error.where.lstrip(".")) if part) or "policy"
        raise PolicyError(where, error.got, error.accepted) from error


def _read_file(path: Path) -> Any:
    """Raises FileNotFoundError for a missing file; else PolicyError naming the file, and the line if known."""
    if not path.exists():
        raise FileNotFoundError(redact_text(f"{path}: no such policy file"))
    if path.suffix not in SUFFIXES:
        raise PolicyError(str(path), path.suffix, "a file that ends in " + ", ".join(SUFFIXES))
    text = _text(path)
    try:
        return _from_json(text, path) if path.suffix == ".json" else read_yaml(text)
    except PolicyError:
        raise
    except json.JSONDecodeError as error:
        place, lines = f"{path}: line {error.lineno} column {error.colno}", error.doc.splitlines()
        got = lines[error.lineno - 1].strip()[:60] if error.lineno <= len(lines) else "the end of the file"
        raise PolicyError(place, got, f"JSON: {error.msg}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}: line {mark.line + 1} column {mark.column + 1}" if mark else str(path)
        raise PolicyError(place, error.problem, "YAML") from error
    except yaml.YAMLError as error:
        raise PolicyError(str(path), str(error), "YAML") from error
    except RecursionError as error:
        raise PolicyError(str(path), "lists or objects without end", f"at most {MAX_LEVELS} levels") from error
    except ValueError as error:  # such as a number of 5,000 digits
        raise PolicyError(str(path), str(error), "JSON with numbers that Python can hold") from error


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
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise PolicyError(str(path), f"the key {name!r} twice in one object", "every key once")
            found[name] = value
        return found

    def constant(name: str) -> float:
        if name == "NaN":
            raise PolicyError(str(path), name, "numbers")
        return float(name)

    return json.loads(text, object_pairs_hook=once, parse_constant=constant)


def scaled_policy(source: str, epochs: int) -> Transform:
    """``load_policy``, with its schedules scaled to ``epochs`` epochs."""

    def change(part: Any) -> Any:
        return replace(part, schedule=part.resolved.scaled(epochs)) if isinstance(part, PBA) else None

    policy: Transform = substituted(load_policy(source), change)
    return policy
