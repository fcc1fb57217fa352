"""Options that are declared once: for Python, and for the commands that are made from them."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, fields
from typing import Any, Literal

import pytest
import typer

from variegate.apps.search import Settings
from variegate.cli.commands import app
from variegate.cli.options import CommandOptions, from_options
from variegate.jobs.augment.run import Expansion
from variegate.jobs.engine import Engine
from variegate.options import check_options, option, option_of, part_of, same_option
from variegate.options.datasets import PackingOptions
from variegate.options.measurement import MeasurementOptions, Scenario
from variegate.options.search import EvaluationOptions, Hyperparameters, SearchOptions


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
        ({"salt": -1.0}, "salt: got -1.0; accepted: 0 or more"),
        ({"salt": float("nan")}, "salt: got nan; accepted: 0 or more"),
        ({"oven": -1}, "oven: got -1; accepted: an integer from 0 on"),
    ],
)
def test_what_is_not_accepted_is_named(options: dict[str, Any], said: str) -> None:
    names = ("grain", "loaves", "salt", "oven")
    check_options(Baking(), *names)
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        check_options(Baking(**options), *names)


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
    recipe, searched, evaluated = Hyperparameters(1), SearchOptions(), EvaluationOptions()
    for name in ("lr", "lr_schedule", "weight_decay", "momentum", "clip", "precision"):
        assert getattr(recipe, name) == getattr(searched, name) == getattr(evaluated, name)
    assert (Settings().size, Settings().interval) == (searched.population, searched.interval)


def test_commands_make_data_sets_as_python_does() -> None:
    typed = PackingOptions()
    for owner, names in (
        (Engine, ("devices", "workers", "allocation", "steal", "address")),
        (Expansion, ("on_error", "resume", "changed")),
    ):
        taken = inspect.signature(owner).parameters
        assert {name: taken[name].default for name in names} == {name: getattr(typed, name) for name in names}


@pytest.mark.parametrize(
    ("command", "owner"),
    [
        ("search", SearchOptions),
        ("evaluate", EvaluationOptions),
        ("simulate", Scenario),
        ("bench", MeasurementOptions),
        ("doctor", MeasurementOptions),
    ],
)
def test_commands_take_what_python_takes(command: str, owner: type) -> None:
    made: Any = typer.main.get_command(app)
    taken = {param.name for param in made.commands[command].params}
    assert taken >= {one.name for one in fields(owner)}


def test_measure_takes_what_is_declared() -> None:
    from variegate.apps.diagnose import measure

    with pytest.raises(ValueError, match="threads: got 0; accepted: an integer from 1 on"):
        measure("nowhere", threads=0)
    with pytest.raises(TypeError, match="batchsize"):
        measure("nowhere", batchsize=4)
    assert "MeasurementOptions" in (inspect.getdoc(measure) or "")
