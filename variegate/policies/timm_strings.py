"""The strings that name timm's policies: ``rand-m9-mstd0.5-inc1``, ``augmix-m5-w4-d2``, ``original-mstd0.5``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from variegate.errors import PolicyError
from variegate.ops.base import Transform
from variegate.policies.augmix import TimmAugMix
from variegate.policies.autoaugment import AutoAugment
from variegate.policies.timm import TimmRandAugment, operation_sets
from variegate.policies.uniform import ThreeAugment

_Keys = dict[str, tuple[str, type]]
# timm's AutoAugment policies: the published table and the space that make them. "v0" alone is TensorFlow's.
_TABLES: dict[str, tuple[Any, str]] = {
    "original": ("imagenet", "timm-original"),
    "originalr": ("imagenet", "timm-research"),
    "v0": ("v0", "timm"),
    "v0r": ("v0", "timm-research"),
    "3a": ([[["Solarize", 1, 5]], [["Desaturate", 1, 10]], [["GaussianBlurRand", 1, 10]]], "timm"),
}
_COMMON: _Keys = {"m": ("magnitude", float), "mstd": ("magnitude_std", float)}
_RAND: _Keys = {**_COMMON, "n": ("num_ops", int), "p": ("p", float), "mmax": ("magnitude_max", float)}
_AUGMIX: _Keys = {**_COMMON, "w": ("mixture_width", int), "d": ("chain_depth", int), "a": ("alpha", float)}
_TABLE: _Keys = {"mstd": ("magnitude_std", float)}
_ACCEPTED = {
    "rand": "rand followed by -m<magnitude>, -n<operations>, -p<probability>, -mstd<deviation>, -mmax<magnitude>, "
    "-inc1, -t<set or translate fraction>, -w0; for example rand-m9-mstd0.5-inc1",
    "augmix": "augmix followed by -m<magnitude>, -w<width>, -d<depth>, -a<alpha>, -b<0 or 1>, -mstd<deviation>; "
    "for example augmix-m5-w4-d2",
    "table": f"{', '.join(_TABLES)} followed by -mstd<deviation> or nothing; for example original-mstd0.5",
}
EXAMPLES = "rand-m9-mstd0.5-inc1, augmix-m5-w4-d2 or original-mstd0.5"


def is_timm(text: str) -> bool:
    """Whether ``text`` begins as one of timm's strings."""
    return text.split("-")[0] in ("rand", "augmix", *_TABLES)


def parse_timm(text: str, where: str | None = None, **arguments: Any) -> Transform:
    """timm's policy of that name; what the string leaves out has timm's default.

    - ``rand-m9-n2-p0.5-mstd0.5-mmax10-inc1-tweights``: TimmRandAugment. ``-t`` names a set of operations ("weights",
      "3a", "3aw") or, as a number, gives ``translate_pct``; ``-w0`` is the older weighted set.
    - ``augmix-m3-w3-d2-a1-mstd0.5``: TimmAugMix. ``-b1`` blends chain by chain in timm, with the same weights, and
      truncates as often: up to a level for each chain.
    - ``original``, ``originalr``, ``v0``, ``v0r``, with ``-mstd0.5`` or not: AutoAugment in timm's magnitudes, with
      timm's interpolation. ``3a``: ThreeAugment, and with ``-mstd`` AutoAugment.

    ``arguments`` (``fill``, ``interpolation``, ...) are passed on. Raises PolicyError for anything else, with the
    section of the string; ``inc0`` too, which older versions of timm read as ``inc1``.
    """
    where = where or f"{text!r}"
    first, *sections = text.split("-")
    read = {"rand": _rand_section, "augmix": _augmix_section}.get(first, _table_section)
    if first not in ("rand", "augmix", *_TABLES):
        raise PolicyError(where, first, _ACCEPTED["rand"])
    for section in sections:
        if first == "augmix" and section in ("b0", "b1"):
            continue
        key, value = read(section, where)
        if key in arguments:
            accepted = _ACCEPTED.get(first, _ACCEPTED["table"])
            raise PolicyError(where, section, f"{key} once; it was set before. {accepted}")
        arguments[key] = value
    try:
        return _KINDS.get(first, _auto_augment(first))(**arguments)
    except ValueError as error:
        raise PolicyError(where, text, str(error)) from error


def _auto_augment(name: str) -> Callable[..., Transform]:
    def made(**arguments: Any) -> Transform:
        if name == "3a" and not arguments:
            return ThreeAugment()
        policy, space = _TABLES[name]
        return AutoAugment(policy, **{"interpolation": "random", "space": space, **arguments})

    return made


_KINDS: dict[str, Callable[..., Transform]] = {"rand": TimmRandAugment, "augmix": TimmAugMix}


def _rand_section(section: str, where: str) -> tuple[str, Any]:
    if section in ("inc1", "inc"):
        return "increasing", True
    if section == "inc0":
        raise PolicyError(where, section, "inc1, or nothing: older versions of timm read inc0 as inc1")
    if section == "w0":
        return "operations", "w0"
    if section.startswith("t"):
        name = section[1:]
        if name in operation_sets():
            return "operations", name
        if re.fullmatch(r"[\d.]+", name):
            return "translate_pct", _number(section, name, float, where, _ACCEPTED["rand"])
        raise PolicyError(where, section, f"t followed by {', '.join(operation_sets())}, or by a fraction of the size")
    return _keyed(section, where, _RAND, _ACCEPTED["rand"])


def _augmix_section(section: str, where: str) -> tuple[str, Any]:
    if section in ("d", "d0"):
        raise PolicyError(where, section, "d followed by 1 or more, or no d: one to three at random")
    return _keyed(section, where, _AUGMIX, _ACCEPTED["augmix"])


def _table_section(section: str, where: str) -> tuple[str, Any]:
    return _keyed(section, where, _TABLE, _ACCEPTED["table"])


def _keyed(section: str, where: str, keys: _Keys, accepted: str) -> tuple[str, Any]:
    match = re.fullmatch(r"([a-z]+)([\d.einf+]+)", section)
    if match is None or match[1] not in keys:
        raise PolicyError(where, section, accepted)
    argument, kind = keys[match[1]]
    return argument, _number(section, match[2], kind, where, accepted)


def _number(section: str, text: str, kind: type, where: str, accepted: str) -> Any:
    try:
        number = kind(text)
    except ValueError as error:
        letter = section[: len(section) - len(text)]
        whole = f"a whole number after {letter}; {accepted}"
        raise PolicyError(where, section, whole if kind is int else accepted) from error
    # 9.0 is written 9, so that the description reads like the string.
    return int(number) if number == int(min(number, 1e9)) else number
