"""Commands made from dataclasses of options, and the options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from variegate.cli.console import one_line_errors, starting
from variegate.options import Option, choices_of, option, option_of

# The manifest holds an epoch in 64 bits, with a sign.
MOST_EPOCH = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    """What every command takes."""

    as_json: bool = option(
        False, "Print JSON alone, an object a line, for other programs to read.", "Output", flag="--json"
    )


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(CommandOptions):
    """What every command takes that augments images."""

    policy: str = option(
        "randaugment",
        "What is done to an image: randaugment, trivialaugment, autoaugment, augmix, 3-augment, imagenet, cifar10, "
        "svhn, v0, pba-cifar10, pba-svhn, a string of timm's such as rand-m9-mstd0.5-inc1, a .json or .yaml file, or "
        "none.",
        "Augmentation",
        metavar="POLICY",
    )
    size: str = option(
        "none",
        "Crop a random box and resize it to this (RandomResizedCrop) before the policy. With none, every image keeps "
        "its own size.",
        "Augmentation",
        metavar="SIDE|HxW|none",
    )


@dataclass(frozen=True, kw_only=True)
class ExcludeOptions:
    """What every command takes that opens a SRC; ``place`` is to be opened in its stead."""

    exclude: Path | None = option(
        None,
        "Leave out the images of SRC that this file names, one a line, as variegate clean --exclude-list writes it. "
        "The others are augmented as they would be beside them.",
        "Images",
        metavar="FILE",
    )

    @property
    def place(self) -> Any:
        from variegate.formats.filtered import place_without

        return place_without(self.src, self.exclude)  # type: ignore[attr-defined]


def from_options(run: Callable[[Any], None]) -> Callable[..., None]:
    """The function that Typer makes a command of: an argument for each field of the dataclass that ``run`` takes.

    Errors in the values, and those that ``run`` raises, end it with one line.
    """
    owner = next(hint for name, hint in get_type_hints(run).items() if name != "return")
    hints = get_type_hints(owner)
    declared = sorted(fields(owner), key=lambda one: one.name == "as_json")  # which is always there, last

    def command(context: typer.Context | None = None, **typed: Any) -> None:
        with one_line_errors(typed["as_json"], [one.name for one in declared]):
            # What was not typed is left to the dataclass, whose default may depend on what was.
            given = [one for one in declared if _is_typed(context, one.name)]
            options = owner(**{one.name: _value(option_of(one), typed[one.name]) for one in given})
            with starting(typed["as_json"]):
                if getattr(options, "src", None):
                    # Before the command imports what takes seconds.
                    from variegate.formats.resolving import check_there

                    check_there(options.src)
                run(options)

    # Typer gives the context to the first.
    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    parameters += [_parameter(one, hints[one.name]) for one in declared]
    command.__name__, command.__doc__ = run.__name__, run.__doc__
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.options = owner  # type: ignore[attr-defined]
    return command


def device_list(devices: str) -> str | list[str]:
    """``--devices`` as functions take it."""
    return devices if devices == "auto" else [name.strip() for name in devices.split(",")]


def type_of(hint: Any) -> type:
    """What is typed for a field of this type: bool, int, float, Path or str, the last of several and of others."""
    known = [one for one in get_args(hint) or (hint,) if one in (bool, int, float, Path)]
    return known[0] if len(known) == 1 else str


def default_of(declared: Field[Any]) -> Any:
    """As it would be typed where a command parses what is; ``...`` without any."""
    default = declared.default
    if option_of(declared).parse is None:
        return ... if default is MISSING else default
    return ",".join(f"{one:g}" for one in (default if isinstance(default, tuple) else (default,)))


def _parameter(declared: Field[Any], hint: Any) -> inspect.Parameter:
    described, default, choices = option_of(declared), default_of(declared), choices_of(hint)
    typed: Any = str if described.parse is not None else type_of(hint)
    if choices:  # older versions of Typer know no Literal
        typed = _enum_of(choices)
        default = typed(default)
    elif type(None) in get_args(hint) and described.parse is None:
        typed = typed | None
    bounds: Any = {"min": described.low, "max": described.high, "help": described.help, "metavar": described.metavar}
    bounds["rich_help_panel"] = described.panel
    if described.panel == "Arguments":
        info = typer.Argument(**bounds)
    else:
        flag = described.flag or f"--{declared.name.replace('_', '-')}"
        info = typer.Option(f"{flag}/--no-{flag[2:]}" if default is True else flag, **bounds)
    empty = inspect.Parameter.empty if default is ... else default
    return inspect.Parameter(
        declared.name, inspect.Parameter.KEYWORD_ONLY, default=empty, annotation=Annotated[typed, info]
    )


def _is_typed(context: typer.Context | None, name: str) -> bool:
    if context is None:  # called from Python, with everything
        return True
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _enum_of(choices: tuple[str, ...]) -> Any:
    return Enum("Choice", {choice: choice for choice in choices}, type=str)


def _value(described: Option, typed: Any) -> Any:
    if described.parse is not None:
        return described.parse(typed)
    return typed.value if isinstance(typed, Enum) else typed
