"""``advise``: from measurements to what to change, ranked by what it would bring. Numbers in, sentences out."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from variegate.diagnose import measurements as m
from variegate.diagnose.costs import Costs, costs_of
from variegate.diagnose.findings import CHANGES, Finding
from variegate.diagnose.measurements import percent, rate
from variegate.diagnose.remarks import REMARKS

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
        out = asdict(self)
        findings = out.pop("findings")
        return {**out, "keeps_up": self.keeps_up, "findings": list(findings)}


def advise(data: m.Measurements, consume: float | None = None) -> Diagnosis:
    """What limits the loader, and what would help; ``consume``: images per second that a model takes.

    Gains are computed each on its own, from the measured rates, and do not add up. Raises ValueError for a ``consume``
    that is not positive.
    """
    if consume is not None and not consume > 0:
        raise ValueError(f"consume: got {consume!r}; accepted: a positive number of images per second")
    costs = costs_of(data)
    today = data.rates[m.LOADER].images_per_second
    held_up_elsewhere = today < _HELD_UP_ELSEWHERE / costs.seconds
    bottleneck = m.LOADER if held_up_elsewhere else costs.largest()
    margin = None if consume is None else today / consume - 1.0
    changes = [
        replace(found, images_per_second=today * found.gain)
        for found in (change(data, costs) for change in CHANGES)
        if found is not None and found.gain >= _LEAST_GAIN
    ]
    # Of two that promise the same, the one that says what it gives before the one that says what it gives at most.
    changes.sort(key=lambda found: (-found.gain, found.is_limit))
    remarks = [found for found in (remark(data, costs) for remark in REMARKS) if found is not None]
    return Diagnosis(
        bottleneck,
        _summary(data, costs, bottleneck, today, consume, margin),
        today,
        consume,
        margin,
        (*changes, *remarks),
    )


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


def _summary(
    data: m.Measurements, costs: Costs, bottleneck: str, today: float, consume: float | None, margin: float | None
) -> str:
    given = f"The loader gives {rate(today)}"
    if bottleneck == m.LOADER:
        cause = f"its stages together {rate(1 / costs.seconds)}: what happens between them, or other work, holds it up"
        sentence = f"{given}, {cause}."
    else:
        sentence = f"{given}; {_CAUSES[bottleneck].format(**_shares(costs))}."
    if consume is None or margin is None:
        return sentence
    if margin >= 0:
        return f"{sentence} The model takes {rate(consume)}: the loader keeps up, with {percent(margin)} to spare."
    return f"{sentence} The model takes {rate(consume)}: it waits {percent(-margin)} of the time."


_CAUSES = {
    m.READ: "reading is the wall, at {read_rate}",
    m.DECODE: "decoding is the wall, with {decode} of the time{on}",
    m.AUGMENT: "augmenting is the wall, with {augment} of the time{on}",
    m.TRANSFER: "sending pictures to the GPU is the wall, at {transfer_rate}",
}


def _shares(costs: Costs) -> dict[str, str]:
    def rate_or_none(seconds: float) -> str:
        return rate(1 / seconds) if seconds else ""

    return {
        "read_rate": rate_or_none(costs.read),
        "transfer_rate": rate_or_none(costs.transfer),
        "decode": percent(costs.decode / costs.seconds),
        "augment": percent(costs.augment / costs.seconds),
        "on": " of the cores" if costs.shares_cores else "",
    }
