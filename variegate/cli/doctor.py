"""``variegate doctor SRC``."""

from __future__ import annotations

from dataclasses import dataclass

from variegate.cli.console import emit_json, say
from variegate.cli.measuring import MeasuringOptions, print_rates, run_measurements
from variegate.options import option, same_option


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(MeasuringOptions):
    consume: float | None = option(None, "How many images a second your model takes.", "Model", metavar="RATE")
    model_ms: float | None = option(
        None, "Or: how many milliseconds your model takes for a batch.", "Model", metavar="MS"
    )
    seconds: float = same_option(MeasuringOptions, "seconds", default=1.0)


def doctor(options: DoctorOptions) -> None:
    """Find out what slows a loader down on your images, and what to change.

    The gain to expect of each change alone is computed from rates measured on your data. With --consume or --model-ms,
    it also says whether the loader keeps up with your model.
    """
    from variegate.diagnose import advise
    from variegate.diagnose.advise import consumed
    from variegate.diagnose.report import finding_lines

    wanted = consumed(options.consume, options.model_ms, options.batch_size)
    measured = run_measurements(options, alternatives=True)
    diagnosis = advise(measured, wanted)
    if options.as_json:
        emit_json("done", **diagnosis.to_dict(), measurements=measured.to_dict())
        return
    print_rates(measured, diagnosis.bottleneck)
    for line in finding_lines(diagnosis):
        say(line)
