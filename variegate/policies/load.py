"""Policies by name, from files and to files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from variegate.errors import PolicyError
from variegate.outside.addresses import speakable
from variegate.outside.files import MOST_TEXT_BYTES, read_regular
from variegate.policies.augmix import AugMix
from variegate.policies.autoaugment import PUBLISHED, AutoAugment
from variegate.policies.pba import PBA
from variegate.policies.randaugment import RandAugment
from variegate.policies.schedule import FORMAT, PUBLISHED_SCHEDULES, Schedule, schedule_from_dict
from variegate.policies.three_augment import ThreeAugment
from variegate.policies.timm import parse_timm
from variegate.policies.trivialaugment import TrivialAugmentWide
from variegate.transforms.base import ArgumentError, Transform, from_dict

POLICY_FORMAT = "variegate-policy/1"
_SUFFIXES = (".json", ".yaml", ".yml")
_NAMED: dict[str, Callable[[], Transform]] = {
    "autoaugment": AutoAugment,
    "randaugment": RandAugment,
    "trivialaugment": TrivialAugmentWide,
    "augmix": AugMix,
    "3-augment": ThreeAugment,
}
POLICY_NAMES = (*PUBLISHED, *PUBLISHED_SCHEDULES, *_NAMED)


def load_policy(source: str | os.PathLike[str] | Mapping[str, Any]) -> Transform:
    """A transform from a name, a file or a dict.

    - a name: "imagenet", "cifar10", "svhn", "v0" (AutoAugment), "pba-cifar10", "pba-svhn", "autoaugment" (the same as
      "imagenet"), "randaugment", "trivialaugment", "augmix", "3-augment";
    - timm's strings, such as "rand-m9-mstd0.5-inc1";
    - a .json, .yaml or .yml file, or a dict: what ``to_dict`` gives, or a schedule ("format": "variegate-schedule/1"),
      or an AutoAugment policy ("format": "variegate-policy/1", "policy": [...], "space": ...).

    Raises PolicyError for an unknown name and for a bad file, with the path to the first bad key
    (``policy.json: transforms[2].magnitude``), what it held and what is accepted; for text that does not parse, with
    line and column. Raises FileNotFoundError where there is no such file.
    """
    if isinstance(source, Mapping):
        return _from_mapping(source, "")
    if isinstance(source, str):
        if "://" in source:
            raise PolicyError("policy", source, "a name, or a file of this machine")
        if source in _NAMED:
            return _NAMED[source]()
        if source in PUBLISHED:
            return AutoAugment(source)
        if source in PUBLISHED_SCHEDULES:
            return PBA(source)
        if not _looks_like_file(source):
            if source == "rand" or source.startswith("rand-"):
                return parse_timm(source)
            accepted = f"{', '.join(POLICY_NAMES)}, a string such as rand-m9-mstd0.5-inc1, or a .json or .yaml file"
            raise PolicyError("policy", source, accepted)
    elif not isinstance(source, os.PathLike):
        raise PolicyError("policy", source, "a name, a path or a dict")
    path = Path(source)
    return _from_mapping(_read(path), str(path))


def save_policy(transform: Transform | Schedule, path: str | os.PathLike[str]) -> None:
    """Write a transform (or a schedule) so that ``load_policy`` reads it back: JSON or YAML, by the file's suffix.

    The file appears under its name only when it is complete. Raises PolicyError for another suffix, and ValueError for
    a transform that holds a Python function.
    """
    path = Path(path)
    described = transform.to_dict()
    if path.suffix not in _SUFFIXES:
        raise PolicyError(str(path), path.suffix, "a name that ends in " + ", ".join(_SUFFIXES))
    if path.suffix == ".json":
        text = json.dumps(described, indent=2) + "\n"
    else:
        text = yaml.safe_dump(described, sort_keys=False, default_flow_style=None, width=100)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def _looks_like_file(source: str) -> bool:
    return source.endswith(_SUFFIXES) or os.sep in source or os.path.isfile(source)


def _read(path: Path) -> Any:
    """The contents of a JSON or YAML file."""
    if not path.exists():
        raise FileNotFoundError(speakable(f"{path}: no such policy file"))
    if path.suffix not in _SUFFIXES:
        raise PolicyError(str(path), path.suffix, "a file that ends in " + ", ".join(_SUFFIXES))
    try:
        text = read_regular(path, MOST_TEXT_BYTES).decode("utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:  # no regular file, too large, or not to be read by this user
        raise PolicyError(str(path), error.strerror or str(error), "a file of JSON or YAML") from None
    except UnicodeDecodeError as error:
        raise PolicyError(str(path), error.object[error.start : error.start + 4], "text in UTF-8") from error
    except json.JSONDecodeError as error:
        raise PolicyError(
            f"{path}: line {error.lineno} column {error.colno}", _line(error), f"JSON: {error.msg}"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}: line {mark.line + 1} column {mark.column + 1}" if mark else str(path)
        raise PolicyError(place, error.problem, "YAML") from error
    except yaml.YAMLError as error:
        raise PolicyError(str(path), str(error), "YAML") from error


def _line(error: json.JSONDecodeError) -> str:
    lines = error.doc.splitlines()
    return lines[error.lineno - 1].strip()[:60] if error.lineno <= len(lines) else "the end of the file"


def _from_mapping(described: Any, path: str) -> Transform:
    """A described transform; errors get the file in front of the path to the key."""
    # Only now are all transforms needed, and only now can they be imported: they re-export the policies.
    import variegate.transforms  # noqa: F401

    try:
        if isinstance(described, Mapping) and "format" in described:
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
