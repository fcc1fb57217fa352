"""``variegate search SRC``."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import TextColumn

from variegate.cli.console import FAILED, INTERRUPTED, CountingBar, emit_json, fail, interrupt_sets, note, say, stderr
from variegate.cli.options import CommandOptions, ExcludeOptions, device_list
from variegate.formats.kinds import LABELLED_IMAGES_HELP
from variegate.io.addresses import shown_host
from variegate.options import option
from variegate.options.search import SearchOptions

if TYPE_CHECKING:
    from variegate.apps.search.driver import PopulationSearch
    from variegate.apps.search.driver import Progress as SearchProgress
    from variegate.apps.search.history import History
    from variegate.apps.train.images import LabelledImages
    from variegate.policies.schedule import Schedule


@dataclass(frozen=True, kw_only=True)
class ClassesOptions(ExcludeOptions, CommandOptions):
    src: str = option(..., LABELLED_IMAGES_HELP, "Arguments", metavar="SRC")


@dataclass(frozen=True, kw_only=True)
class SearchCommandOptions(SearchOptions, ClassesOptions):
    pass


def search(options: SearchCommandOptions) -> None:
    """Learn a schedule of augmentation policies on your own images (Population Based Augmentation).

    Writes OUT/schedule.json, which --policy of the other commands and vg.load_policy take. How many images train and
    score, the size of a step, the epochs and the model follow from the data where they are not given. Whatever ends a
    search, the same command goes on from its last step.
    """
    from variegate.apps.search.driver import search_devices
    from variegate.apps.search.prepare import prepare_search
    from variegate.apps.search.run import check_folder

    check_backend(options)
    is_local = options.backend == "local"
    devices = search_devices(device_list(options.devices), options.population) if is_local else ["cpu"]
    check_folder(options.out)
    images, place, fingerprint = load(options.place, options.size, devices[0])
    run, sizes = prepare_search(images, options, place, fingerprint)
    searching: PopulationSearch
    if is_local:
        from variegate.apps.search.local import LocalSearch

        searching = LocalSearch(run, options.out, devices, capture=options.capture)
    else:
        from variegate.apps.search.tune import TuneSearch

        searching = TuneSearch(run, options.out, options.address, options.gpus_per_member, capture=options.capture)
    height, width = images.pixels.shape[1:3]
    members = options.population
    if options.as_json:
        where = devices if is_local else ["ray"]
        emit_json("start", **asdict(sizes), size=[height, width], members=members, devices=where)
    else:
        say(f"sizes: {sizes}, {members} members, {height}x{width}", stderr())
    _run(searching, options.as_json)


def load(src: Any, size: str | tuple[int, int], device: str) -> tuple[LabelledImages, str, str]:
    """-> images, where they are from, and their fingerprint. Notes what is left out. Raises SourceError.

    ``size``: as typed, or the sides of other images that these belong to.
    """
    from variegate.apps.train.images import fitting_size, load_images
    from variegate.formats.base import SourceError
    from variegate.io.addresses import shown
    from variegate.jobs.arguments import absolute_place, open_by_index, parse_size

    sides = None if size == "auto" else parse_size(size) if isinstance(size, str) else size
    source = open_by_index(src)
    note(*source.notes())
    # On a terminal; it may take minutes.
    with stderr().status(f"decoding {len(source):,} images"):
        images = load_images(source, fitting_size(source) if size == "auto" else sides, device)
    if len(images) < len(source):
        note(f"{len(source) - len(images):,} of {len(source):,} images cannot be read and are left out")
    if images.num_classes < 2:
        raise SourceError(
            f"{shown(str(src))}: has one class ({images.classes[0]}); accepted: two or more, in folders of their own"
        )
    return images, absolute_place(src), source.fingerprint


def check_backend(options: SearchOptions) -> None:
    """Raises ValueError for options of the other back end."""
    if options.backend == "ray":
        if options.devices != "auto":
            raise ValueError(
                f"--devices: got {options.devices!r}, with --backend ray; accepted: --gpus-per-member, as the cluster "
                "decides which devices members are on"
            )
        return
    for name, value in (("--address", options.address), ("--gpus-per-member", options.gpus_per_member)):
        if value is not None:
            got = shown_host(value) if isinstance(value, str) else value
            raise ValueError(f"{name}: got {got!r}, with --backend local; accepted: with --backend ray")


def _run(search: PopulationSearch, as_json: bool) -> None:
    from variegate.apps.search import LostPopulationError, read_log
    from variegate.apps.search.run import LOG_NAME
    from variegate.formats.storage import WriteError

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
    from variegate.apps.plotting import PlotError
    from variegate.apps.search.plots import plot_population, plot_schedule
    from variegate.formats.storage import WriteError

    paths = [folder / "schedule.png", folder / "population.png"]
    try:
        plot_schedule(schedule, paths[0])
        plot_population(history, paths[1])
    except (PlotError, WriteError) as error:
        note(str(error))
        return []
    return paths


class SearchView(CountingBar):
    """Call it with the search's progress; use as a context."""

    def __init__(self, search: PopulationSearch, as_json: bool) -> None:
        super().__init__(as_json, TextColumn("{task.fields[best]}"))
        self._as_json, self._started = as_json, time.perf_counter()
        self._size = search.run_settings.settings.size
        self._task = self.add_task("searching", total=search.run_settings.settings.steps * self._size, best="")

    def __call__(self, progress: SearchProgress) -> None:
        best = "" if math.isnan(progress.best) else f"best {progress.best:.2%}"
        done = progress.step * self._size + (0 if progress.rows else progress.members_done)
        self.update(self._task, completed=done, description=f"step {progress.step + 1}/{progress.steps}", best=best)
        if not progress.rows:
            return
        epoch = progress.rows[0].epoch
        lost = [row.member for row in progress.rows if math.isnan(row.score)]
        copies = [(row.member, row.copied_from) for row in progress.rows if row.copied_from is not None]
        if self._as_json:
            emit_json(
                "step",
                step=progress.step,
                steps=progress.steps,
                epoch=epoch,
                best=round(progress.best, 4),
                copies=copies,
                lost=lost,
                is_flat=progress.is_flat,
            )
            return
        if not self.console.is_terminal:
            seconds = time.perf_counter() - self._started
            line = f"step {progress.step}/{progress.steps}: {best}, {len(copies)} copied"
            say(f"{line}, {seconds:,.0f} s", self.console)
        for member, donor in copies:
            if member in lost:
                text = f"member {member} diverged (its loss is not finite); it goes on as member {donor}"
                note(text, to=self.console)
        if progress.is_flat:
            note(f"after epoch {epoch} all members score the same; nobody was ranked", to=self.console)
