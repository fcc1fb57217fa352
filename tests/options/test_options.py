"""Options that are declared once: for Python, and for the commands that are made from them."""

from __future__ import annotations

import inspect
import math
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer
from typer.testing import CliRunner

from variegate.cli import main
from variegate.cli.commands import app
from variegate.cli.options import CommandOptions, add_command, make_command, typed_as
from variegate.jobs.augment.run import Expansion
from variegate.jobs.engine import Engine
from variegate.learn.history import Settings
from variegate.options import Opt, Options, options_of, project
from variegate.options.datasets import (
    CheckingOptions,
    CleaningOptions,
    ExpansionOptions,
    IndexingOptions,
    PackingOptions,
)
from variegate.options.doctor import DoctorOptions
from variegate.options.fit import FitOptions
from variegate.options.search import EvaluationOptions, ObjectiveOptions, SearchOptions
from variegate.options.training import TrainOptions


@dataclass(frozen=True, kw_only=True)
class Baking(CommandOptions):
    grain: Annotated[Literal["rye", "oat"], Opt("Grain of the flour.", "Work")] = "rye"
    loaves: Annotated[int, Opt("Number of loaves.", "Work", ge=1)] = 2
    salt: Annotated[float, Opt("Salt, in grams.", "Work", ge=0.0)] = 0.5
    oven: Annotated[int | None, Opt("Number of the oven.", "Work", ge=0)] = None
    steam: Annotated[int, Opt("Seconds of steam.", "Work", ge=0, needs=("grain", "rye"))] = 0
    seeds: Annotated[bool, Opt("Add seeds.", "Work")] = False
    seed: Annotated[str, Opt("Kind of seeds.", "Work", needs=("seeds", True))] = "sesame"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grain": "wheat"}, "grain: got 'wheat'; accepted: 'rye', 'oat'"),
        ({"loaves": 0}, "loaves: got 0; accepted: an integer from 1 on"),
        ({"loaves": True}, "loaves: got True; accepted: an integer from 1 on"),
        ({"loaves": 1.5}, "loaves: got 1.5; accepted: an integer from 1 on"),
        ({"salt": -1.0}, "salt: got -1.0; accepted: a finite number of 0 or more"),
        ({"salt": float("nan")}, "salt: got nan; accepted: a finite number of 0 or more"),
        ({"oven": -1}, "oven: got -1; accepted: an integer from 0 on"),
        ({"grain": "oat", "steam": 5}, "steam: got 5; accepted: with grain='rye'"),
        ({"seed": "poppy"}, "seed: got 'poppy'; accepted: with seeds=True"),
    ],
)
def test_what_is_not_accepted_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Baking(**options)


@pytest.mark.parametrize(
    ("owner", "options", "needed"),
    [
        (PackingOptions, {"format": "raw", "quality": 80}, "format='webdataset'"),
        (PackingOptions, {"format": "raw", "keep_jpeg": True}, "format='webdataset'"),
        (PackingOptions, {"size": 256, "keep_jpeg": True}, "keep_jpeg=False"),
        (PackingOptions, {"address": "auto"}, "workers='ray'"),
        (ExpansionOptions, {"format": "png", "quality": 80}, "format='jpg'"),
        (CheckingOptions, {"seed": 3}, "labels=True"),
        (DoctorOptions, {"model": "wrn-10-1"}, "train=True"),
        (DoctorOptions, {"precision": "bfloat16"}, "train=True"),
        (SearchOptions, {"method": "race", "population": 8}, "method='pba'"),
        (SearchOptions, {"method": "pba", "rounds": 3}, "method='race'"),
        (SearchOptions, {"gpus_per_member": 0.5}, "backend='ray'"),
        (SearchOptions, {"backend": "ray", "devices": "cpu"}, "backend='local'"),
        (ObjectiveOptions, {"epochs": 1, "backend": "ray", "workers": 2}, "backend='local'"),
    ],
)
def test_options_of_another_mode_are_refused(owner: Any, options: dict[str, Any], needed: str) -> None:
    with pytest.raises(ValueError, match=f"accepted: with {re.escape(needed)}$"):
        owner(**options)


def test_an_address_is_refused_without_its_password() -> None:
    with pytest.raises(ValueError, match=r"^address: got ") as error:
        PackingOptions(address="ray://someone:secret@head:10001")
    assert "secret" not in str(error.value)


def test_a_field_may_repeat_an_inherited_one_with_another_default() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Toast(Baking):
        loaves: int = 1

    loaves = next(option for option in options_of(Toast) if option.name == "loaves")
    assert (loaves.default, loaves.opt.help) == (1, "Number of loaves.")
    with pytest.raises(ValueError, match="loaves: got 0; accepted: an integer from 1 on"):
        Toast(loaves=0)
    assert project(Baking, Toast(salt=2.0)) == Baking(loaves=1, salt=2.0)


def test_a_command_gets_what_was_typed(capsys: pytest.CaptureFixture[str]) -> None:
    found: list[Baking] = []

    def bake(options: Baking) -> None:
        """Bake.

        Examples:
            bake --loaves 3
            bake --grain oat
        """
        found.append(options)

    baking = typer.Typer()
    add_command(baking, "Work", bake)
    run = typer.main.get_command(baking)
    run.main(["--grain", "oat", "--loaves", "3", "--json"], standalone_mode=False)
    run.main([], standalone_mode=False)
    assert found == [Baking(grain="oat", loaves=3, as_json=True), Baking()]
    assert type(found[0].grain) is str
    assert run.main(["--seed", "poppy"], standalone_mode=False) == 2
    assert capsys.readouterr().err == "variegate: error: --seed: got 'poppy'; accepted: with --seeds\n"
    shown = CliRunner().invoke(baking, ["--help"]).output
    assert shown.rstrip().endswith("Examples:\n   bake --loaves 3\n   bake --grain oat")


def test_values_that_python_refuses_are_named_as_they_are_typed(capsys: pytest.CaptureFixture[str]) -> None:
    def bake(options: Baking) -> None:
        raise ValueError("as_json: got no flour")

    with pytest.raises(typer.Exit) as ended:
        make_command(bake)(None, **{field.name: field.default for field in fields(Baking)})
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


def test_doctor_takes_what_is_declared() -> None:
    from variegate import doctor

    with pytest.raises(ValueError, match="threads: got 0; accepted: an integer from 1 on"):
        doctor("nowhere", threads=0)
    with pytest.raises(TypeError, match="batchsize"):
        doctor("nowhere", batchsize=4)
    assert "DoctorOptions" in (inspect.getdoc(doctor) or "")


COMMANDS = {command.callback.__name__: command.callback for command in app.registered_commands if command.callback}
OWNERS = {name: command.options for name, command in COMMANDS.items() if hasattr(command, "options")}


@pytest.mark.parametrize("name", OWNERS)
def test_numbers_of_commands_are_finite(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    declared = options_of(OWNERS[name])
    arguments = ["x" for option in declared if option.is_argument]
    for option in declared:
        if float not in option.types:
            continue
        for value in ("inf", "-inf", "nan"):
            assert main([name, *arguments, f"{typed_as(option)}={value}"]) == 2
            message = capsys.readouterr().err
            pattern = rf"variegate: error: {typed_as(option)}: got '?-?{value[-3:]}.*; accepted: .*\n"
            assert re.fullmatch(pattern, message)


@pytest.mark.parametrize(
    "owner",
    [
        *(ExpansionOptions, PackingOptions, CheckingOptions, IndexingOptions, CleaningOptions, DoctorOptions),
        *(FitOptions, SearchOptions, ObjectiveOptions, EvaluationOptions, TrainOptions),
    ],
)
def test_numbers_of_functions_are_finite(owner: type[Options]) -> None:
    declared = options_of(owner)
    needed = {option.name: 1 for option in declared if option.is_required}
    for option in declared:
        if not {int, float} & {*option.types}:
            continue
        for value in (math.inf, -math.inf, math.nan):
            with pytest.raises(ValueError, match=f"{option.name}: got -?{value!r}"):
                owner(**{**needed, option.name: value})


def test_thresholds_have_their_defaults_in_help() -> None:
    shown = CliRunner().invoke(app, ["check", "--help"], env={"COLUMNS": "200"}).output
    for flag, default in (
        ("dark", "0.25"),
        ("bright", "0.75"),
        ("low-contrast", "0.05"),
        ("aspect", "4"),
        ("imbalance", "10"),
    ):
        assert re.search(rf"--{flag} .*By default {default}\b", shown)
    assert CheckingOptions().out is None
    assert Path("findings.parquet") == OWNERS["check"](src="x").out
