"""Measurements as lines and rows of text."""

from __future__ import annotations

from variegate.diagnose import measurements as m
from variegate.diagnose.advise import Diagnosis
from variegate.diagnose.measurements import number, percent, rate, side, size, times

_ORDER = (
    *(m.READ_FIRST, m.READ, m.DECODE, m.DECODE_ONE, m.AUGMENT, m.AUGMENT_ONE, m.TRANSFER),
    *(m.READ_DECODE, m.DECODE_AUGMENT, m.LOADER_FIRST, m.LOADER),
    *(m.AUGMENT_PLAIN, m.AUGMENT_LARGE, m.DECODE_REDUCED, m.AUGMENT_REDUCED),
)


def data_lines(data: m.Measurements) -> list[str]:
    """What was measured, and on what."""
    every = "a stream" if data.samples is None else f"{data.samples:,} samples"
    skipped = f", {data.skipped:,} bad ones left out" if data.skipped else ""
    return [
        f"{data.source}: {every}, {data.measured:,} of them measured{skipped}; on average {size(data.mean_bytes)}, "
        f"{side(data.mean_width)} x {side(data.mean_height)}",
        f"device {data.device}, {data.threads} of {data.cores} cores, batches of {data.batch_size}, cache "
        f"{data.cache or 'none'}; {_page_cache(data)}",
    ]


def _page_cache(data: m.Measurements) -> str:
    if data.in_page_cache is None:
        return "whether the files were in the page cache is not known"
    if data.in_page_cache in (0.0, 1.0):
        return f"the files were {'' if data.in_page_cache else 'not '}in the page cache"
    return f"{percent(data.in_page_cache)} of the files were in the page cache"


def rate_rows(data: m.Measurements) -> list[tuple[str, tuple[str, ...]]]:
    """(stage, cells) of what was measured: title, images/s, MB/s, threads, spread."""
    rows: list[tuple[str, tuple[str, ...]]] = []
    for stage in _ORDER:
        found = data.rates.get(stage)
        if found is not None:
            spread = percent(found.spread) if len(found.spans) > 1 else "once"
            cells = number(found.images_per_second), number(found.megabytes_per_second), str(found.threads), spread
            rows.append((stage, (m.TITLES[stage], *cells)))
        elif stage == m.TRANSFER:
            rows.append((stage, (m.TITLES[stage], "none", "", "", "")))
    return rows


def finding_lines(found: Diagnosis) -> list[str]:
    """The summary, then two lines for every finding: what to do and what it brings, and the numbers behind it."""
    lines = ["", found.summary]
    place = 0
    for finding in found.findings:
        if finding.images_per_second is None:
            lines += [f"   {finding.advice}", f"   because {finding.why}"]
            continue
        place += 1
        most = "at most " if finding.is_limit else ""
        enough = ""
        if found.consume is not None and found.keeps_up is False and finding.images_per_second >= found.consume:
            enough = ", enough for the model"
        gain = f"{most}{times(finding.gain)}, {rate(finding.images_per_second)}{enough}"
        lines += [f"{place}. {finding.advice}  ({gain})", f"   because {finding.why}"]
    if not place:
        lines.append("Nothing that could be changed here would gain 5 % or more.")
    return lines
