"""``variegate train SRC``."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from variegate.cli.console import INTERRUPTED, CommandError, emit_json, note, print_line
from variegate.cli.options import ImportOptions, SourceOptions
from variegate.cli.render import COMMON_LOOKS, Bar, CtrlC, Look, Looks, rendering
from variegate.data.kinds import LABELLED_IMAGES_HELP
from variegate.io.amounts import pluralize
from variegate.options import Opt, project
from variegate.options.recipes import RECIPES, with_recipe
from variegate.options.training import TrainOptions
from variegate.threads import wait_briefly

if TYPE_CHECKING:
    from variegate.learn.events import Logged


@dataclass(frozen=True, kw_only=True)
class TrainCommandOptions(TrainOptions, SourceOptions, ImportOptions):
    src: Annotated[str, Opt(LABELLED_IMAGES_HELP, "Arguments", metavar="SRC")]
    recipe: Annotated[
        str | None,
        Opt(
            f"Recipe that sets the defaults of other options: {', '.join(RECIPES)}.",
            "Training",
            metavar="NAME",
            is_main=True,
        ),
    ] = None

    @classmethod
    def complete(cls, passed: dict[str, Any]) -> dict[str, Any]:
        return with_recipe(passed.get("recipe"), passed)


def train(options: TrainCommandOptions) -> None:
    """Train an image classifier, on one process or many (torchrun).

    Writes OUT/log.jsonl (one line per step and per scoring), OUT/checkpoints and, at the end, OUT/model.pt. To resume
    from the last checkpoint, run the same command again, on any number of processes.

    Examples:
        variegate train photos --epochs 20 --out run
        torchrun --nproc-per-node 2 -m variegate train photos --recipe finetune
    """
    wait_briefly()
    from variegate.data.base import summarize_names
    from variegate.io.durable import WriteError
    from variegate.learn.averaging import DistError
    from variegate.learn.events import describe_scores
    from variegate.learn.progress import DivergedError
    from variegate.learn.trainer import train as run
    from variegate.loader import TooManyErrors

    chosen = project(TrainOptions, options)
    is_first = os.environ.get("RANK", "0") == "0"
    started = time.perf_counter()
    # torchrun passes on a Ctrl-C that the terminal has sent already.
    ctrl_c: CtrlC = "patient" if "RANK" in os.environ else "stops"
    try:
        with rendering(options.as_json or not is_first, _looks(), ctrl_c) as render:
            last = run(options.place, chosen, on_event=render, stop=render.stop)
    except (DivergedError, DistError, TooManyErrors) as error:
        raise CommandError(error) from error
    except WriteError as error:
        again = "; to resume from the last checkpoint, run the same command again"
        raise CommandError(f"{error}{again * (chosen.out / 'train.json').exists()}") from error
    is_done = last.pop("is_done")
    unread = last.pop("unread")
    if unread:
        note(f"skipped {pluralize(len(unread), 'unreadable image')}: {summarize_names(unread)}")
    if not is_done and is_first:
        raise CommandError("interrupted: progress is saved; to resume, run the same command again", INTERRUPTED)
    if not is_done:
        raise typer.Exit(INTERRUPTED)
    if not is_first:
        return
    seconds = round(time.perf_counter() - started, 1)
    out = str(options.out)
    if options.as_json:
        emit_json("done", **last, seconds=seconds, out=out)
        return
    # Without validation images, the loss of the last step is shown.
    names = ("top1", "top5") if "top1" in last else ("loss",)
    epochs = pluralize(last["epoch"] + 1, "epoch")
    scores = describe_scores({name: last[name] for name in names if name in last})
    print_line(f"{out}: {epochs}, {pluralize(last['step'], 'step')}, {scores}{seconds:,.1f} s")


def _looks() -> Looks:
    from variegate.learn.events import Chosen, EpochEnded, Logged

    return {
        **COMMON_LOOKS,
        Chosen: Look(line=lambda event: event.text),
        Logged: Look(bar=_bar),
        EpochEnded: Look(log=str),
    }


def _bar(event: Logged) -> Bar:
    from variegate.learn.events import describe_scores

    line = event.line
    if "step" not in line:  # an epoch is scored when it is over
        return Bar("training", line["epoch"] + 1, event.epochs, describe_scores(line))
    rate = f"{line['images_per_second']:,.0f} images/s, {line['waiting']:.0%} waiting"
    return Bar("training", line["epoch"], event.epochs, f"step {line['step']:,}: {describe_scores(line)}{rate}")
