"""The public names with their signatures, one a line: ``python -m tests.public_api`` writes them to public_api.txt.

Public are the names of ``variegate``, ``variegate.math``, ``variegate.policies``, ``variegate.transforms`` and
``variegate.transforms.functional``, methods and properties of public classes, and commands with their options.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from variegate.cli.commands import app
from variegate.transforms import CustomOp, Transform

LISTING = Path(__file__).with_name("public_api.txt")
MODULES = (
    "variegate",
    "variegate.math",
    "variegate.policies",
    "variegate.transforms",
    "variegate.transforms.functional",
)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def public_api() -> list[str]:
    """Lines such as ``variegate.Loader.set_epoch(self, epoch)``, sorted; types are not part of them."""
    found = {
        f"{module}.{name}": getattr(import_module(module), name) for module in MODULES for name in names_of(module)
    }
    classes = {value for value in found.values() if inspect.isclass(value)}
    lines = [line for name, value in found.items() for line in _lines(name, value, classes)]
    return sorted({*lines, *_commands()})


def names_of(module: str) -> list[str]:
    """``__all__``; of a module without it, what it defines or imports from Variegate, and no modules."""
    here = import_module(module)
    if hasattr(here, "__all__"):
        return list(here.__all__)
    return [
        name
        for name, value in vars(here).items()
        if not name.startswith("_") and str(getattr(value, "__module__", "")).startswith("variegate")
    ]


def _lines(name: str, value: Any, classes: set[type]) -> Iterator[str]:
    if inspect.ismodule(value):
        return
    if not inspect.isclass(value):
        yield f"{name}{_signature(value)}" if callable(value) else f"{name}: {type(value).__name__}"
        return
    yield f"{name}{_signature(value)}"
    if issubclass(value, Transform) and value not in (Transform, CustomOp):
        return  # how operations draw and emit is their own affair; arguments are in the signature
    for member in sorted(dir(value)):
        owner = next((one for one in value.__mro__ if member in vars(one)), object)
        # Methods of a public parent are listed there, those of other packages' classes in their documentation.
        if member.startswith("_") or not owner.__module__.startswith("variegate"):
            continue
        if owner is not value and owner in classes:
            continue
        found = inspect.getattr_static(value, member)
        yield f"{name}.{member}{_signature(getattr(value, member)) if _is_method(found) else ''}"


def _is_method(found: Any) -> bool:
    return inspect.isfunction(found) or isinstance(found, (classmethod, staticmethod))


def _signature(value: Any) -> str:
    if inspect.isclass(value) and issubclass(value, Enum):
        return ""  # Python's own, of which every version has another
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # of a class that is made in C
        return "(...)"
    plain = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return _ADDRESS.sub("", str(inspect.Signature(plain)))


def _commands() -> Iterator[str]:
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        yield f"$ variegate {name}"
        for param in command.params:
            flags = "/".join([*param.opts, *param.secondary_opts])
            yield f"$ variegate {name} {flags if flags.startswith('-') else param.name.upper()}"


if __name__ == "__main__":
    LISTING.write_text("\n".join(public_api()) + "\n", encoding="utf-8")
    print(LISTING)
