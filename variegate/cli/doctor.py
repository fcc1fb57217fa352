"""``variegate doctor SRC``: the rate of a loader, its bottleneck, and the expected gain of each change."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

from variegate.cli import console
from variegate.cli.options import ImportOptions, SourceOptions
from variegate.cli.render import COMMON_LOOKS, Looks, rendering
from variegate.events import Progress
from variegate.options import Opt, project
from variegate.options.doctor import DoctorOptions
from variegate.options.shared import PolicyOptions
from variegate.threads import wait_briefly

LOOKS: Looks = {
    Progress: replace(
        COMMON_LOOKS[Progress],
        json=lambda event: {"event": "measuring", "what": event.stage, "done": event.done, "total": event.total},
    )
}


@dataclass(frozen=True, kw_only=True)
class DoctorCommandOptions(DoctorOptions, PolicyOptions, SourceOptions, ImportOptions):
    size: str = "224"
    plot: Annotated[
        Path | None,
        Opt(
            "With --train: file for a plot of both rates and, on a GPU, of its utilization. A PNG.",
            "Output",
            metavar="FILE",
            needs=("train", True),
        ),
    ] = None


def doctor(options: DoctorCommandOptions) -> None:
    """Measure a loader, find its bottleneck, and suggest changes.

    Your own images are read, decoded and augmented. The expected gain of each change is measured or computed from
    these rates. With --consume, the report says whether the loader keeps up with your model. With --train, it times
    the training step of a model on one repeated batch, which needs no data, and fed by the loader. The plot requires
    matplotlib (pip install 'variegate[plot]'), and utilization of a GPU nvidia-ml-py.

    Examples:
        variegate doctor photos --consume 2000
        variegate doctor photos --devices cuda:0 --train --plot rates.png
    """
    if options.train:
        wait_briefly()
    from variegate.apps.doctor import doctor as run
    from variegate.apps.doctor import training_transform
    from variegate.apps.doctor.training import draw_training
    from variegate.apps.plotting import check_path

    if options.plot is not None:
        check_path(options.plot, "plot")
    transform = training_transform(options.policy, options.size)
    chosen = asdict(project(DoctorOptions, options))
    with rendering(options.as_json, LOOKS, ctrl_c="raises") as render:
        found = run(options.place, transform, on_event=render, **chosen)
    plot = None
    if options.plot is not None and found.training is not None:
        path = options.plot
        training = found.training
        title = f"{options.model} on {found.measurements.source}"
        plot = console.plot_or_note(lambda: draw_training(training, title, path), path)
    if options.as_json:
        console.emit_json("done", **found.to_dict(), plot=plot)
        return
    console.note(*found.notes)
    for line in str(found).splitlines():
        console.print_line(line)
    if plot is not None:
        console.print_line(f"plot: {plot}")
