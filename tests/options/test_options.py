"""Options that are declared once: for Python, and for the commands that are made from them."""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import typer

from variegate.cli import main
from variegate.cli.commands import app
from variegate.cli.options import CommandOptions, from_options, typed_as
from variegate.jobs.augment.run import Expansion
from variegate.jobs.engine import Engine
from variegate.learn.history import Settings
from variegate.options import option, option_of, part_of, same_option
from variegate.options.datasets import (
    CheckingOptions,
    CleaningOptions,
    DeviceOptions,
    IndexingOptions,
    PackingOptions,
    TargetOptions,
)
from variegate.options.doctor import DoctorOptions
from variegate.options.fit import FitOptions
from variegate.options.search import (
    EvaluationOptions,
    ObjectiveOptions,
    RaceOptions,
    SearchOptions,
    TrainingOptions,
)
from variegate.options.training import TrainOptions


@dataclass(frozen=True, kw_only=True)
class Baking(CommandOptions):
    grain: Literal["rye", "oat"] = option("rye", "What it is of.", "Work")
    loaves: int = option(2, "How many.", "Work", low=1)
    salt: float = option(0.5, "How much.", "Work", low=0.0)
    oven: int | None = option(None, "Which one.", "Work", low=0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"grain": "wheat"}, "grain: got 'wheat'; accepted: 'rye', 'oat'"),
        ({"loaves": 0}, "loaves: got 0; accepted: an integer from 1 on"),
        ({"loaves": True}, "loaves: got True; accepted: an integer from 1 on"),
        ({"loaves": 1.5}, "loaves: got 1.5; accepted: an integer from 1 on"),
        ({"salt": -1.0}, "salt: got -1.0; accepted: a finite number of 0 or more"),
        ({"salt": float("nan")}, "salt: got nan; accepted: a finite number of 0 or more"),
        ({"oven": -1}, "oven: got -1; accepted: an integer from 0 on"),
    ],
)
def test_what_is_not_accepted_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        Baking(**options)


def test_a_field_may_be_declared_as_another_is() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Toast:
        loaves: int = same_option(Baking, "loaves", default=1)
        salt: float = same_option(Baking, "salt", help="Very little.")

    loaves, salt = fields(Toast)
    assert (loaves.default, option_of(loaves)) == (1, option_of(fields(Baking)[2]))
    assert (salt.default, option_of(salt).help, option_of(salt).low) == (0.5, "Very little.", 0.0)
    assert part_of(Toast, Baking(loaves=7)) == Toast(loaves=7)


def test_a_command_hands_on_what_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    found: list[Baking] = []

    def bake(options: Baking) -> None:
        """Bake."""
        found.append(options)

    baking = typer.Typer()
    baking.command()(from_options(bake))
    run = typer.main.get_command(baking)
    run.main(["--grain", "oat", "--loaves", "3", "--json"], standalone_mode=False)
    run.main([], standalone_mode=False)
    assert found == [Baking(grain="oat", loaves=3, as_json=True), Baking()]
    assert type(found[0].grain) is str


def test_values_that_python_refuses_are_named_as_they_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    def bake(options: Baking) -> None:
        raise ValueError("as_json: got no flour")

    with pytest.raises(typer.Exit) as ended:
        from_options(bake)(None, **{one.name: one.default for one in fields(Baking)})
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == "variegate: error: --json: got no flour\n"


def test_defaults_stand_once() -> None:
    recipe, searched, evaluated = FitOptions(), SearchOptions(), EvaluationOptions()
    for name in ("lr", "lr_schedule", "weight_decay", "momentum", "clip", "precision"):
        assert getattr(recipe, name) == getattr(searched, name) == getattr(evaluated, name)
    assert (Settings().size, Settings().interval) == (searched.population, searched.interval)


def test_commands_make_data_sets_as_python_does() -> None:
    typed = PackingOptions()
    for owner, names in (
        (Engine, ("devices", "workers", "allocation", "steal", "address")),
        (Expansion, ("on_error", "resume")),
    ):
        taken = inspect.signature(owner).parameters
        assert {name: taken[name].default for name in names} == {name: getattr(typed, name) for name in names}


@pytest.mark.parametrize(
    ("command", "owner"),
    [
        ("search", SearchOptions),
        ("evaluate", EvaluationOptions),
        ("doctor", DoctorOptions),
    ],
)
def test_commands_take_what_python_takes(command: str, owner: type) -> None:
    made: Any = typer.main.get_command(app)
    taken = {param.name for param in made.commands[command].params}
    assert taken >= {one.name for one in fields(owner)}


def test_doctor_takes_what_is_declared() -> None:
    from variegate import doctor

    with pytest.raises(ValueError, match="threads: got 0; accepted: an integer from 1 on"):
        doctor("nowhere", threads=0)
    with pytest.raises(TypeError, match="batchsize"):
        doctor("nowhere", batchsize=4)
    assert "DoctorOptions" in (inspect.getdoc(doctor) or "")


def number_fields(owner: Any) -> list[tuple[str, str]]:
    """(name, flag) of all fields of a command that are floats, or tuples of them."""
    hints = get_type_hints(owner)
    return [
        (one.name, typed_as(one)) for one in fields(owner) if float in (get_args(hints[one.name]) or (hints[one.name],))
    ]


COMMANDS = {one.name or one.callback.__name__: one.callback for one in app.registered_commands if one.callback}


@pytest.mark.parametrize("name", [name for name, one in COMMANDS.items() if number_fields(one.options)])  # type: ignore[attr-defined]
def test_numbers_of_commands_are_finite(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    owner: Any = COMMANDS[name].options  # type: ignore[attr-defined]
    arguments = ["x" for one in fields(owner) if option_of(one).panel == "Arguments"]
    for field_name, flag in number_fields(owner):
        for value in ("inf", "-inf", "nan"):
            assert main([name, *arguments, f"{flag}={value}"]) == 2
            said = capsys.readouterr().err
            assert re.match(rf"variegate: error: ({flag}|{field_name}): got '?\(?-?{value[-3:]}.*; accepted: ", said), (
                said
            )
            assert said.count("\n") == 1


OPTION_CLASSES = (
    *(DeviceOptions, TargetOptions, PackingOptions, CheckingOptions, IndexingOptions, CleaningOptions),
    *(DoctorOptions, FitOptions, TrainingOptions, RaceOptions, SearchOptions, ObjectiveOptions),
    *(EvaluationOptions, TrainOptions),
)


@pytest.mark.parametrize("owner", OPTION_CLASSES)
def test_numbers_of_functions_are_finite(owner: Any) -> None:
    hints = get_type_hints(owner)
    needed = {one.name: 1 for one in fields(owner) if one.default is MISSING}
    for one in fields(owner):
        hint = hints[one.name]
        if not {int, float} & {*(get_args(hint) or (hint,))}:
            continue
        for value in (math.inf, -math.inf, math.nan):
            given: Any = (value,) if get_origin(hint) is tuple else value
            with pytest.raises(ValueError, match=f"{one.name}: got -?{value!r}"):
                owner(**{**needed, one.name: given})
