"""``variegate search SRC``."""

from __future__ import annotations

import threading
import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from variegate.cli.console import FAILED, INTERRUPTED, emit_json, fail, interrupt_sets, one_line_errors, say, stderr
from variegate.cli.search_view import SearchView
from variegate.cli.training import (
    AsJson,
    BatchSize,
    Capture,
    Clip,
    Cutout,
    Devices,
    Flip,
    Lr,
    LrSchedule,
    Model,
    Momentum,
    Padding,
    Precision,
    Seed,
    Size,
    Src,
    WeightDecay,
    border,
    hole,
    listed,
    load,
)
from variegate.outside.addresses import shown_host

if TYPE_CHECKING:
    from variegate.policies.schedule import Schedule
    from variegate.search.history import History
    from variegate.search.local import LocalSearch
    from variegate.search.tune import TuneSearch


class Backend(str, Enum):
    """As typed."""

    local = "local"
    ray = "ray"


def search(
    src: Src,
    out: Annotated[
        Path, typer.Option(help="Folder for the schedule, the log, the pictures and the checkpoint.")
    ] = Path("search"),
    train: Annotated[int, typer.Option(min=1, help="Images that the members train on.")] = 4000,
    validation: Annotated[int | None, typer.Option(min=1, help="Images that score them. Default: all others.")] = None,
    model: Model = "wrn-28-2",
    population: Annotated[int, typer.Option(min=2, help="Members.")] = 16,
    epochs: Annotated[int, typer.Option(min=1, help="Of every member.")] = 200,
    interval: Annotated[int, typer.Option(min=1, help="Epochs between two steps, where the worst copy the best.")] = 3,
    operations: Annotated[
        str | None, typer.Option(help="Names with commas, such as Rotate,Invert. Default: the paper's 15.")
    ] = None,
    space: Annotated[
        str | None, typer.Option(help="What magnitudes mean. Default: pba for 32x32 images, else pba-relative.")
    ] = None,
    size: Size = "none",
    padding: Padding = None,
    flip: Flip = True,
    cutout: Cutout = None,
    batch_size: BatchSize = 128,
    lr: Lr = 0.1,
    lr_schedule: LrSchedule = "cosine",
    weight_decay: WeightDecay = 5e-4,
    momentum: Momentum = 0.9,
    clip: Clip = 5.0,
    precision: Precision = "float32",
    seed: Seed = 0,
    devices: Devices = "auto",
    capture: Capture = True,
    backend: Annotated[
        Backend, typer.Option(help="local: this machine's devices; ray: trials of Ray Tune on a cluster.")
    ] = Backend.local,
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT|auto", help="Of a Ray cluster. Default: this machine's, or a new one."),
    ] = None,
    gpus_per_member: Annotated[
        float | None,
        typer.Option(help="With ray: a part of a GPU, 1, or 0 for CPUs. Default: 1 where the cluster has GPUs."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Learn a schedule of augmentation policies on your own images (Population Based Augmentation).

    Writes OUT/schedule.json, which --policy of the other commands and vg.load_policy take. Whatever ends a search, the
    same command goes on from its last step.
    """
    with one_line_errors(as_json):
        from variegate.search import SearchSpace, Settings
        from variegate.search.devices import search_devices
        from variegate.search.run import SearchRun, check_folder
        from variegate.training.around import Around
        from variegate.training.images import split
        from variegate.training.recipe import Recipe

        _check_backend(backend, address, gpus_per_member, devices)
        is_local = backend is Backend.local
        chosen = search_devices(listed(devices), population) if is_local else ["cpu"]
        check_folder(out)
        images, place, fingerprint = load(src, size, chosen[0])
        side = tuple(images.pixels.shape[1:3])
        names = () if operations is None else tuple(name.strip() for name in operations.split(","))
        searched = SearchSpace(names, space=space or ("pba" if side == (32, 32) else "pba-relative"))
        parts = split(images, train, validation, seed)
        run = SearchRun(
            Settings(population, searched, seed, interval, epochs),
            Recipe(epochs, batch_size, lr, lr_schedule, weight_decay, momentum, clip, precision),
            model,
            Around.of(parts[0], border(padding, images), flip, hole(cutout, images)),
            *parts,
            place,
            fingerprint,
        )
        there: LocalSearch | TuneSearch
        if is_local:
            from variegate.search.local import LocalSearch

            there = LocalSearch(run, out, chosen, capture=capture)
        else:
            from variegate.search.tune import TuneSearch

            there = TuneSearch(run, out, address, gpus_per_member, capture=capture)
        if as_json:
            where = chosen if is_local else ["ray"]
            emit_json("start", train=len(parts[0]), validation=len(parts[1]), members=population, devices=where)
        _run(there, as_json)


def _check_backend(backend: Backend, address: str | None, gpus_per_member: float | None, devices: str) -> None:
    """Raises ValueError for options of the other back end."""
    if backend is Backend.ray:
        if devices != "auto":
            raise ValueError(
                f"--devices: got {devices!r}, with --backend ray; accepted: --gpus-per-member, as the cluster decides "
                "which devices members are on"
            )
        return
    for name, value in (("--address", address), ("--gpus-per-member", gpus_per_member)):
        if value is not None:
            got = shown_host(value) if isinstance(value, str) else value
            raise ValueError(f"{name}: got {got!r}, with --backend local; accepted: with --backend ray")


def _run(search: LocalSearch | TuneSearch, as_json: bool) -> None:
    from variegate.search import LostPopulationError, read_log
    from variegate.search.run import LOG_NAME
    from variegate.sinks.storage import WriteError

    started = time.perf_counter()
    stop = threading.Event()
    with SearchView(search, as_json) as view, interrupt_sets(stop):
        try:
            schedule = search.run(view, stop)
        except LostPopulationError as error:
            hint = "a lower --lr may help, with another folder as --out"
            raise fail(f"{error}; {hint}", FAILED, as_json) from error
        except WriteError as error:
            raise fail(f"{error}; the same command goes on from its last step", FAILED, as_json) from error
    if schedule is None:
        raise fail("interrupted: the steps that are over are kept; the same command goes on", INTERRUPTED, as_json)
    history = read_log(search.folder / LOG_NAME)
    best = history.steps[-1][history.best]
    pictures = draw(search.folder, schedule, history)
    done: dict[str, Any] = {
        "schedule": str(search.folder / "schedule.json"),
        "accuracy": round(best.score, 4),
        "member": best.member,
        "seconds": round(time.perf_counter() - started, 1),
    }
    if as_json:
        emit_json("done", **done, pictures=[str(path) for path in pictures])
        return
    say(f"{done['schedule']}: {schedule.epochs} epochs, of member {best.member}, accuracy {best.score:.2%}")
    for path in pictures:
        say(f"{path}")
    say(f"try it: variegate evaluate SRC --test UNSEEN --policies none,flip-crop,randaugment,{done['schedule']}")


def draw(folder: Path, schedule: Schedule, history: History) -> list[Path]:
    """The pictures of a search; none without matplotlib, or where there is no room for them."""
    from variegate.plotting import PlotError
    from variegate.search.population_plot import plot_population
    from variegate.search.schedule_plot import plot_schedule
    from variegate.sinks.storage import WriteError

    paths = [folder / "schedule.png", folder / "population.png"]
    try:
        plot_schedule(schedule, paths[0])
        plot_population(history, paths[1])
    except (PlotError, WriteError) as error:
        say(f"note: {error}", stderr())
        return []
    return paths
