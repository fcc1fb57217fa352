"""``advise``: from measurements to what to change, ranked by what it would bring. Numbers in, sentences out."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from variegate.apps.diagnose import measurements as m
from variegate.apps.diagnose.findings import Finding, changes, remarks
from variegate.apps.diagnose.measurements import rate

# Less is lost in the noise of measuring.
_LEAST_GAIN = 1.05
# A loader this much slower than its stages together is held up by none of them.
_HELD_UP_ELSEWHERE = 0.6


@dataclass(frozen=True)
class Diagnosis:
    """``bottleneck``: "read", "decode", "augment", "transfer", or "loader" where its stages do not explain its rate.

    ``margin``: what the loader gives beyond what is consumed, as a share of it; negative where it is too slow; None
    where it was not said what is consumed. ``findings``: changes, the most gainful first, then remarks.
    """

    bottleneck: str
    summary: str
    images_per_second: float
    consume: float | None
    margin: float | None
    findings: tuple[Finding, ...]

    @property
    def keeps_up(self) -> bool | None:
        return None if self.margin is None else self.margin >= 0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"keeps_up": self.keeps_up, "findings": [asdict(finding) for finding in self.findings]}


def advise(data: m.Measurements, consume: float | None = None) -> Diagnosis:
    """What limits the loader, and what would help; ``consume``: images per second that a model takes.

    Gains are computed each on its own, from the measured rates, and do not add up. Raises ValueError for a ``consume``
    that is not positive.
    """
    if consume is not None and not consume > 0:
        raise ValueError(f"consume: got {consume!r}; accepted: a positive number of images per second")
    costs = m.costs_of(data)
    today = data.rates[m.LOADER].images_per_second
    bottleneck = m.LOADER if today < _HELD_UP_ELSEWHERE / costs.seconds else costs.largest()
    summary = f"The loader gives {rate(today)}{_cause(costs, bottleneck)}."
    margin = None if consume is None else today / consume - 1.0
    if consume is not None and margin is not None:
        spare = f"the loader keeps up, with {margin:.0%} to spare"
        verdict = spare if margin >= 0 else f"it waits {-margin:.0%} of the time"
        summary = f"{summary} The model takes {rate(consume)}: {verdict}."
    found = [
        replace(change, images_per_second=today * change.gain)
        for change in changes(data, costs)
        if change.gain >= _LEAST_GAIN
    ]
    # Of two that promise the same, the one that says what it gives before the one that says what it gives at most.
    found.sort(key=lambda change: (-change.gain, change.is_limit))
    return Diagnosis(bottleneck, summary, today, consume, margin, (*found, *remarks(data)))


def _cause(costs: m.Costs, bottleneck: str) -> str:
    if bottleneck == m.LOADER:
        together = rate(1 / costs.seconds)
        return f", its stages together {together}: what happens between them, or other work, holds it up"
    if bottleneck == m.READ:
        return f"; reading is the wall, at {rate(1 / costs.read)}"
    if bottleneck == m.TRANSFER:
        return f"; sending pictures to the GPU is the wall, at {rate(1 / costs.transfer)}"
    what, seconds = ("decoding", costs.decode) if bottleneck == m.DECODE else ("augmenting", costs.augment)
    on_what = " of the cores" if costs.shares_cores else ""
    return f"; {what} is the wall, with {seconds / costs.seconds:.0%} of the time{on_what}"


def consumed(consume: float | None, model_ms: float | None, batch_size: int) -> float | None:
    """Images per second, from what a user knows: the rate itself, or the milliseconds of a batch.

    Raises ValueError for both at once, and for what is not positive.
    """
    if consume is not None and model_ms is not None:
        raise ValueError(f"consume, model-ms: got {consume:g} and {model_ms:g}; accepted: one of them")
    for name, value in (("consume", consume), ("model-ms", model_ms)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name}: got {value:g}; accepted: a positive number")
    return consume if model_ms is None else batch_size * 1000.0 / model_ms
