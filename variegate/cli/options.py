"""Commands made from dataclasses of options, the options that several commands share, and refusals of what is typed."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from variegate import options
from variegate.cli.console import one_line_errors, starting
from variegate.data.kinds import IMAGES_HELP
from variegate.options import check_options, option, option_of, range_of
from variegate.options.importing import import_modules
from variegate.removed import removal_message

# The manifest holds an epoch in 64 bits, with a sign.
MOST_EPOCH = 2**63 - 1
METAVARS: dict[type, str | None] = {int: "N", float: "X", Path: "PATH", str: "TEXT", bool: None}

# The exception of click for a bad option or argument; newer versions of Typer bring click along.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


@dataclass(frozen=True, kw_only=True)
class CommandOptions:
    """Options of every command. Raises ValueError naming the option."""

    as_json: bool = option(False, "Print JSON only, one object per line.", "Output", flag="--json")

    def __post_init__(self) -> None:
        check_options(self)

    @classmethod
    def complete(cls, passed: dict[str, Any]) -> dict[str, Any]:
        """The fields that are passed, with further defaults that depend on them. Raises ValueError."""
        return passed


@dataclass(frozen=True, kw_only=True)
class ImportOptions(CommandOptions):
    """Options of every command that reads policies from files."""

    modules: str | None = option(
        None,
        "Modules to import first, separated by commas. Policies with custom operations need those that declare them.",
        "Augmentation",
        flag="--import",
        metavar="MODULE",
    )


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(ImportOptions):
    """Options of every command that augments images."""

    policy: str = option(
        "randaugment",
        "Augmentation policy: randaugment, trivialaugment, autoaugment, augmix, 3-augment, imagenet, cifar10, svhn, "
        "v0, pba-cifar10, pba-svhn, a timm string such as rand-m9-mstd0.5-inc1, a .json or .yaml file, or none.",
        "Augmentation",
        metavar="POLICY",
    )
    size: str = option(
        "none",
        "Random crop resized to this size (RandomResizedCrop) before the policy; none keeps the size of each image.",
        "Augmentation",
        metavar="SIDE|HxW|none",
    )


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Options of every command that opens a SRC; ``place`` is to be opened in its stead."""

    src: str = option(..., IMAGES_HELP, "Arguments", metavar="SRC")
    exclude: Path | None = option(
        None,
        "File with the names of images to exclude, one per line, as written by variegate clean. It does not "
        "change how the other images are augmented.",
        "Images",
        metavar="FILE",
    )

    @property
    def place(self) -> Any:
        from variegate.data.filtered import place_without

        return place_without(self.src, self.exclude)


def from_options(run: Callable[[Any], None]) -> Callable[..., None]:
    """The function that Typer makes a command of: an argument for each field of the dataclass that ``run`` takes.

    Errors in the values, and those that ``run`` raises, end it with one line.
    """
    owner = next(hint for name, hint in get_type_hints(run).items() if name != "return")
    hints = get_type_hints(owner)
    declared = sorted(fields(owner), key=order)

    def command(context: typer.Context | None, **typed: Any) -> None:
        # A file may have the name of an option: an error that begins with it is about the file.
        names = {one.name: typed_as(one) for one in declared if one.name not in map(str, typed.values())}
        with one_line_errors(typed["as_json"], names):
            # What was not typed is left to the dataclass, whose default may depend on what was.
            given = [one for one in declared if _is_typed(context, one.name)]
            passed = {one.name: _value(hints[one.name], typed[one.name]) for one in given}
            values = owner(**owner.complete(passed))
            with starting(typed["as_json"]):
                import_modules(getattr(values, "modules", None))
                if getattr(values, "src", None):
                    # Before the command imports what takes seconds.
                    from variegate.data.resolving import check_there

                    check_there(values.src)
                run(values)

    # Typer gives the context to the first.
    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    parameters += [_parameter(one, hints[one.name]) for one in declared]
    command.__name__ = run.__name__
    command.__doc__ = run.__doc__
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.options = owner  # type: ignore[attr-defined]
    return command


def order(declared: Field[Any]) -> tuple[int, bool]:
    """By panels, as --help shows them; --json, which every command has, last."""
    return options.PANELS.index(option_of(declared).panel), declared.name == "as_json"


def flags_of(declared: Field[Any]) -> str:
    """An option as typed; what is on by default has a flag that turns it off."""
    flag = option_of(declared).flag or f"--{declared.name.replace('_', '-')}"
    return f"{flag}/--no-{flag[2:]}" if declared.default is True else flag


def typed_as(declared: Field[Any]) -> str:
    """The flag of an option, the metavar of an argument: their names in errors."""
    described = option_of(declared)
    if described.panel == "Arguments":
        return (described.metavar or declared.name).strip("[]")
    return flags_of(declared).partition("/")[0]


def device_list(devices: str) -> str | list[str]:
    """``--devices`` as functions take it."""
    return devices if devices == "auto" else [name.strip() for name in devices.split(",")]


def usage_message(error: Any) -> str:
    """The refusal of what was typed, in one line: an option that was removed, or the words of Typer."""
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    flag = getattr(error, "option_name", None)
    if context is not None and (removal := removal_message(f"command {context.info_name} {flag}")) is not None:
        return removal
    if flag is not None and re.fullmatch(r"-\d+(\.\d*)?", flag):
        return f"{flag}: no argument of this command may be negative{hint}"
    message: str = error.format_message()
    return message.strip().rstrip(".") + hint


def type_of(hint: Any) -> type:
    """bool, int, float, Path or str as typed for a field: str for choices and for others."""
    known = [one for one in get_args(hint) or (hint,) if one in METAVARS]
    return known[0] if known else str


def _parameter(declared: Field[Any], hint: Any) -> inspect.Parameter:
    """Numbers and choices are text to Typer: the dataclass checks them, as for calls from Python."""
    described = option_of(declared)
    choices = options.choices_of(hint)
    typed: Any = type_of(hint)
    metavar = described.metavar or "|".join(choices) or METAVARS[typed]
    bounds = range_of(described).strip().capitalize() if described.high != MOST_EPOCH else ""
    info: Any = {
        "help": f"{described.help} {bounds}.".removesuffix(" ."),
        "metavar": metavar,
        "rich_help_panel": described.panel,
    }
    made = typer.Argument(**info) if described.panel == "Arguments" else typer.Option(flags_of(declared), **info)
    default = inspect.Parameter.empty if declared.default is MISSING else declared.default
    if typed in (int, float):
        typed = str
        default = str(default) if isinstance(default, (int, float)) else default
    if type(None) in get_args(hint):
        typed = typed | None
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(declared.name, kind, default=default, annotation=Annotated[typed, made])


def _value(hint: Any, typed: Any) -> Any:
    """A number from its text; other text as it is, for the dataclass to refuse."""
    kind = type_of(hint)
    if kind in (int, float) and isinstance(typed, str):
        with suppress(ValueError):
            return kind(typed)
    return typed


def _is_typed(context: typer.Context | None, name: str) -> bool:
    if context is None:  # called from Python, with everything
        return True
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
