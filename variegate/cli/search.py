"""``variegate search SRC``."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variegate.cli.console import FAILED, INTERRUPTED, emit_json, fail, interrupt_sets, one_line_errors, say, stderr
from variegate.cli.search_options import (
    Address,
    Backend,
    BackendOption,
    Epochs,
    GpusPerMember,
    Interval,
    Operations,
    Out,
    Population,
    Space,
    Train,
    Validation,
    check_backend,
    known_operations,
)
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

if TYPE_CHECKING:
    from variegate.policies.schedule import Schedule
    from variegate.search.history import History
    from variegate.search.local import LocalSearch
    from variegate.search.tune import TuneSearch


def search(
    src: Src,
    out: Out = Path("search"),
    train: Train = None,
    validation: Validation = None,
    model: Model = None,
    population: Population = 16,
    epochs: Epochs = None,
    interval: Interval = 3,
    operations: Operations = None,
    space: Space = None,
    size: Size = "auto",
    padding: Padding = None,
    flip: Flip = True,
    cutout: Cutout = None,
    batch_size: BatchSize = None,
    lr: Lr = 0.1,
    lr_schedule: LrSchedule = "cosine",
    weight_decay: WeightDecay = 5e-4,
    momentum: Momentum = 0.9,
    clip: Clip = 5.0,
    precision: Precision = "float32",
    seed: Seed = 0,
    devices: Devices = "auto",
    capture: Capture = True,
    backend: BackendOption = Backend.local,
    address: Address = None,
    gpus_per_member: GpusPerMember = None,
    as_json: AsJson = False,
) -> None:
    """Learn a schedule of augmentation policies on your own images (Population Based Augmentation).

    Writes OUT/schedule.json, which --policy of the other commands and vg.load_policy take. How many images train and
    score, the size of a step, the epochs and the model follow from the data where they are not given. Whatever ends a
    search, the same command goes on from its last step.
    """
    with one_line_errors(as_json):
        from variegate.search import SearchSpace, Settings
        from variegate.search.devices import search_devices
        from variegate.search.run import SearchRun, check_folder
        from variegate.training.around import Around
        from variegate.training.images import split
        from variegate.training.recipe import Recipe
        from variegate.training.sizes import search_sizes

        check_backend(backend, address, gpus_per_member, devices)
        is_local = backend is Backend.local
        chosen = search_devices(listed(devices), population) if is_local else ["cpu"]
        check_folder(out)
        images, place, fingerprint = load(src, size, chosen[0])
        sizes = search_sizes(images, train, validation, batch_size, epochs, model)
        side = tuple(images.pixels.shape[1:3])
        searched = SearchSpace(
            known_operations(operations, space), space=space or ("pba" if side == (32, 32) else "pba-relative")
        )
        parts = split(images, sizes.train, sizes.score, seed)
        run = SearchRun(
            Settings(population, searched, seed, interval, sizes.epochs),
            Recipe(sizes.epochs, sizes.batch_size, lr, lr_schedule, weight_decay, momentum, clip, precision),
            sizes.model,
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
        where = chosen if is_local else ["ray"]
        if as_json:
            emit_json("start", **asdict(sizes), size=list(side), members=population, devices=where)
        else:
            say(f"sizes: {sizes}, {population} members, {side[0]}x{side[1]}", stderr())
        _run(there, as_json)


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
