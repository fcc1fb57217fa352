"""Commands generated from dataclasses of options, the options of every command, and usage errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer
from typer.core import TyperCommand, TyperOption

from variegate.cli.console import one_line_errors, starting
from variegate.data.kinds import IMAGES_HELP
from variegate.options import PANELS, Opt, Option, Options, options_of
from variegate.options.importing import import_modules
from variegate.options.shared import MAX_EPOCH
from variegate.removed import removal_message

METAVARS: dict[type, str | None] = {int: "N", float: "X", Path: "PATH", str: "TEXT", bool: None}
# --help of a command with more options than this shows the main ones.
MAX_OPTIONS_IN_HELP = 24

# The exception of click for a bad option or argument; newer versions of Typer bring click along.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

ExcludeList: TypeAlias = Annotated[
    Path | None,
    Opt(
        "File with the names of images to exclude, one per line, as written by variegate clean. It does not "
        "change how the other images are augmented.",
        "Images",
        metavar="FILE",
    ),
]
NewFolder: TypeAlias = Annotated[
    str, Opt("Output folder or URL, created if missing. It must not be inside SRC.", "Arguments", metavar="DST")
]


@dataclass(frozen=True, kw_only=True)
class CommandOptions(Options):
    """Options of every command."""

    as_json: Annotated[bool, Opt("Print JSON only, one object per line.", "Output", flag="--json", is_main=True)] = (
        False
    )

    @classmethod
    def complete(cls, passed: dict[str, Any]) -> dict[str, Any]:
        """The fields that are passed, with further defaults that depend on them. Raises ValueError."""
        return passed


@dataclass(frozen=True, kw_only=True)
class ImportOptions(CommandOptions):
    """Options of every command that reads policies from files."""

    modules: Annotated[
        str | None,
        Opt(
            "Modules to import first, separated by commas. Policies with custom operations need those that declare "
            "them.",
            "Augmentation",
            flag="--import",
            metavar="MODULE",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SourceOptions(Options):
    """Options of every command that opens a SRC; ``place`` is the source without the excluded images."""

    src: Annotated[str, Opt(IMAGES_HELP, "Arguments", metavar="SRC")]
    exclude: ExcludeList = None

    @property
    def place(self) -> Any:
        from variegate.data.filtered import exclude_on_open

        return exclude_on_open(self.src, self.exclude)


class Command(TyperCommand):
    """A command whose help ends with examples: the lines after "Examples:" in the docstring of its function.

    --help of a long command shows its main options in one panel, and names the panels that --help-all shows.
    """

    def __init__(self, name: str | None, **settings: Any) -> None:
        text, _, examples = inspect.cleandoc(settings.pop("help")).partition("\n\nExamples:\n")
        super().__init__(name, help=text, **settings)
        self.examples = [line.strip() for line in examples.splitlines() if line.strip()]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        options: list[Any] = [param for param in self.params if isinstance(param, TyperOption)]
        is_short = len(options) > MAX_OPTIONS_IN_HELP and "shows_all" not in ctx.meta
        panels = {param: param.rich_help_panel for param in options}
        further: list[str] = []
        if is_short:
            main = {option.name for option in options_of(self.callback.options) if option.opt.is_main}  # type: ignore[union-attr]
            for param in options:
                param.hidden = param.name not in main and panels[param] is not None
                param.rich_help_panel = panels[param] and "Main options"
            further = sorted({panels[param] for param in options if param.hidden}, key=PANELS.index)
        try:
            super().format_help(ctx, formatter)
        finally:
            for param, panel in panels.items():
                param.hidden = False
                param.rich_help_panel = panel
        if further:
            typer.echo(fill(f"--help-all shows more options: {', '.join(further)}.", 79, initial_indent=" ") + "\n")
        for line in ["Examples:", *(f"  {example}" for example in self.examples)]:
            typer.echo(f" {line}")


def add_command(app: typer.Typer, panel: str, run: Callable[[Any], None]) -> None:
    """Make a command of a function that takes a dataclass of options."""
    app.command(cls=Command, rich_help_panel=panel)(make_command(run))


def make_command(run: Callable[[Any], None]) -> Callable[..., None]:
    """Make the function that Typer takes: an argument for each field of the dataclass that ``run`` takes.

    Errors in the values, and errors that ``run`` raises, end the command with one line.
    """
    owner = next(hint for name, hint in get_type_hints(run).items() if name != "return")
    declared = sorted_by_panel(owner)

    def command(context: typer.Context | None, **typed: Any) -> None:
        # A file may have the name of an option: an error that begins with it is about the file.
        flags = {option.name: typed_as(option) for option in declared if option.name not in map(str, typed.values())}
        with one_line_errors(typed["as_json"], flags):
            # The dataclass has the defaults of options that were not typed: they may depend on others.
            passed = {
                option.name: _value(option, typed[option.name]) for option in declared if _was_given(context, option)
            }
            values = owner(**owner.complete(passed))
            with starting(typed["as_json"]):
                import_modules(getattr(values, "modules", None))
                if getattr(values, "src", None):
                    # Before the command's slow imports.
                    from variegate.data.resolving import check_there

                    check_there(values.src)
                run(values)

    # Typer gives the context to the first.
    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    parameters += map(_parameter, declared)
    if len(declared) > MAX_OPTIONS_IN_HELP:
        parameters.append(_help_all())
    command.__name__ = run.__name__
    command.__doc__ = run.__doc__
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.options = owner  # type: ignore[attr-defined]
    return command


def sorted_by_panel(owner: type) -> list[Option]:
    """The options as --help shows them; --json, which every command has, last."""
    return sorted(options_of(owner), key=lambda option: (PANELS.index(option.opt.panel), option.name == "as_json"))


def flags_of(option: Option) -> str:
    """An option's flags; a bool that is on by default also has a flag that turns it off."""
    flag = option.opt.flag or f"--{option.name.replace('_', '-')}"
    return f"{flag}/--no-{flag[2:]}" if option.default is True else flag


def typed_as(option: Option) -> str:
    """The flag of an option, the metavar of an argument: their names in errors."""
    if option.is_argument:
        return (option.opt.metavar or option.name).strip("[]")
    return flags_of(option).partition("/")[0]


def usage_message(error: Any) -> str:
    """One line for a usage error: a removed option, or Typer's own message."""
    context = getattr(error, "ctx", None)
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    flag = getattr(error, "option_name", None)
    if context is not None and (removal := removal_message(f"command {context.info_name} {flag}")) is not None:
        return removal
    if flag is not None and re.fullmatch(r"-\d+(\.\d*)?", flag):
        return f"{flag}: no argument of this command may be negative{hint}"
    message: str = error.format_message()
    return message.strip().rstrip(".") + hint


def type_of(option: Option) -> type:
    """bool, int, float, Path or str as typed: str for choices and for others."""
    return next((kind for kind in option.types if kind in METAVARS), str)


def _parameter(option: Option) -> inspect.Parameter:
    """Numbers and choices are text to Typer: the dataclass checks them, as for calls from Python."""
    opt = option.opt
    typed: Any = type_of(option)
    bounds = option.bounds.strip().capitalize() if opt.le != MAX_EPOCH else ""
    info: Any = {
        "help": f"{opt.help} {bounds}.".removesuffix(" ."),
        "metavar": opt.metavar or "|".join(option.choices) or METAVARS[typed],
        "rich_help_panel": opt.panel,
    }
    made = typer.Argument(**info) if option.is_argument else typer.Option(flags_of(option), **info)
    default = inspect.Parameter.empty if option.is_required else option.default
    if typed in (int, float):
        typed = str
        default = str(default) if isinstance(default, (int, float)) else default
    if type(None) in option.types:
        typed = typed | None
    annotation = Annotated[typed, made]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _help_all() -> inspect.Parameter:
    def show(context: typer.Context, wanted: bool) -> None:
        if wanted:
            context.meta["shows_all"] = True
            typer.echo(context.get_help())
            raise typer.Exit

    info = typer.Option("--help-all", is_eager=True, callback=show, help="Show all options and exit.")
    return inspect.Parameter(
        "help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, info]
    )


def _value(option: Option, typed: Any) -> Any:
    """Parse a number; other text is returned unchanged and checked by the dataclass."""
    kind = type_of(option)
    if kind in (int, float) and isinstance(typed, str):
        with suppress(ValueError):
            return kind(typed)
    return typed


def _was_given(context: typer.Context | None, option: Option) -> bool:
    if context is None:  # called from Python, with everything
        return True
    source = context.get_parameter_source(option.name)
    return source is not None and source.name != "DEFAULT"
