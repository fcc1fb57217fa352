"""Policies by name, from files and to files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from variegate.errors import PolicyError, shown
from variegate.outside.durable import write_atomically
from variegate.policies.autoaugment import PUBLISHED, AutoAugment
from variegate.policies.files import SUFFIXES, read_policy_file
from variegate.policies.pba import PBA
from variegate.policies.schedule import FORMAT, PUBLISHED_SCHEDULES, Schedule, schedule_from_dict
from variegate.policies.timm import parse_timm
from variegate.policies.uniform import AugMix, RandAugment, ThreeAugment, TrivialAugmentWide
from variegate.transforms.arguments import ArgumentError
from variegate.transforms.base import Transform, check_keys, check_tree, from_dict

POLICY_FORMAT = "variegate-policy/1"
_NAMED: dict[str, Callable[[], Transform]] = {
    "autoaugment": AutoAugment,
    "randaugment": RandAugment,
    "trivialaugment": TrivialAugmentWide,
    "augmix": AugMix,
    "3-augment": ThreeAugment,
}
POLICY_NAMES = (*PUBLISHED, *PUBLISHED_SCHEDULES, *_NAMED)
_ACCEPTED = f"{', '.join(POLICY_NAMES)}, a string such as rand-m9-mstd0.5-inc1, or a .json or .yaml file"


def load_policy(source: str | os.PathLike[str] | Mapping[str, Any]) -> Transform:
    """A transform from a name, a file or a dict.

    - a name, in capitals or not: "imagenet", "cifar10", "svhn", "v0" (AutoAugment), "pba-cifar10", "pba-svhn",
      "autoaugment" (the same as "imagenet"), "randaugment", "trivialaugment", "augmix", "3-augment";
    - timm's strings, such as "rand-m9-mstd0.5-inc1";
    - a .json, .yaml or .yml file, or a dict: what ``to_dict`` gives, or a schedule ("format": "variegate-schedule/1"),
      or an AutoAugment policy ("format": "variegate-policy/1", "policy": [...], "space": ...).

    Raises PolicyError for an unknown name and for a bad file, with the path to the first bad key
    (``policy.json: transforms[2].magnitude``), what it held and what is accepted; for text that does not parse, with
    line and column. No file, whatever it holds, raises anything else, or keeps this busy for more than seconds. Raises
    FileNotFoundError where there is no such file.
    """
    if isinstance(source, Mapping):
        return _from_mapping(source, "")
    if isinstance(source, str):
        if "://" in source:
            raise PolicyError("policy", source, "a name, or a file of this machine")
        name = source.lower()
        if name in _NAMED:
            return _NAMED[name]()
        if name in PUBLISHED:
            return AutoAugment(name)
        if name in PUBLISHED_SCHEDULES:
            return PBA(name)
        if not _looks_like_file(source):
            if name == "rand" or name.startswith("rand-"):
                return parse_timm(name, where=f"{shown(source)}")
            raise PolicyError("policy", source, _ACCEPTED + _suggestion(name))
    elif not isinstance(source, os.PathLike):
        raise PolicyError("policy", source, "a name, a path or a dict")
    path = Path(source)
    return _from_mapping(read_policy_file(path), str(path))


def save_policy(transform: Transform | Schedule, path: str | os.PathLike[str]) -> None:
    """Write a transform (or a schedule) so that ``load_policy`` reads it back: JSON or YAML, by the file's suffix.

    The file appears under its name only when it is complete. Raises PolicyError for another suffix, and ValueError for
    a transform that holds a Python function.
    """
    path = Path(path)
    described = transform.to_dict()
    if path.suffix not in SUFFIXES:
        raise PolicyError(str(path), path.suffix, "a name that ends in " + ", ".join(SUFFIXES))
    if path.suffix == ".json":
        text = json.dumps(described, indent=2) + "\n"
    else:
        text = yaml.safe_dump(described, sort_keys=False, default_flow_style=None, width=100)
    write_atomically(path, text.encode(), several_writers=True)


def _looks_like_file(source: str) -> bool:
    try:
        return source.endswith(SUFFIXES) or os.sep in source or os.path.isfile(source)
    except ValueError:  # no path, such as one with a zero byte
        return False


def _suggestion(name: str) -> str:
    """A question about the name that is meant, where one is near: "; did you mean 'augmix'?"."""
    # Classes are written with words that names do without: TrivialAugmentWide, rand_augment.
    plain = name.replace("_", "").replace(" ", "").removesuffix("wide")
    near = get_close_matches(plain, POLICY_NAMES, 1, 0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


def _from_mapping(described: Any, path: str) -> Transform:
    """A described transform; errors get the file in front of the path to the key."""
    try:
        check_tree(described, "")
        if isinstance(described, Mapping) and "format" in described:
            check_keys(described, "")
            return _from_format(described)
        return from_dict(described, "")
    except PolicyError as error:
        key = error.where.lstrip(".")
        where = ": ".join(part for part in (path, key) if part) or "policy"
        raise PolicyError(where, error.got, error.accepted) from error


def _from_format(described: Mapping[str, Any]) -> Transform:
    if described["format"] == FORMAT:
        return PBA(schedule_from_dict(described, ""))
    if described["format"] != POLICY_FORMAT:
        raise PolicyError("format", described["format"], f"{FORMAT!r} or {POLICY_FORMAT!r}")
    unknown = set(described) - {"format", "source", "policy", "space"}
    if unknown:
        raise PolicyError(min(unknown), described[min(unknown)], "format, source, policy, space")
    try:
        return AutoAugment(described.get("policy", ()), space=described.get("space"))
    except ArgumentError as error:
        raise PolicyError(error.argument, error.got, error.accepted) from error
