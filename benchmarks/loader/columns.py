"""What the tables of whole loaders show."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.columns import by_speed, speed_cells, tried, verdict
from benchmarks.levels import OURS

__all__ = ["HEADER", "LEFT", "footer", "notes", "rows", "verdict"]

HEADER = (
    *("library", "images/s", "lowest - highest", "Variegate is", "of the cores", "CPU per image"),
    *("kB per image: sent", "back", "memory (PSS)", "RSS sum", "first batch", "how"),
)
LEFT = (0, 11)
# Of each work: rows that must reach so much of the local loader's speed.
ASKED = {"workers": 0.9, "workers_raw": 0.95}
MOST_PART_US = 50.0


def rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = []
    for module, row in by_speed(record):
        if "error" in row:
            table.append((row["library"], *("-" for _ in HEADER[2:]), row["error"]))
            continue
        speed, spread, ratio = speed_cells(record, module, row)
        memory = (f"{row[key] / 1e6:,.0f} MB" for key in ("peak_pss_bytes", "peak_rss_bytes"))
        first = f"{row['first_batch_seconds']:.2f} s"
        total = {key: sum(run[key] for run in row["runs"]) for key in row["runs"][0]}
        spent = f"{total['cpu_seconds'] / total['images'] * 1e3:.2f} ms"
        sent = (f"{total[key] / total['images'] / 1e3:.2f}" if key in total else "" for key in ("sent", "received"))
        table.append(
            (
                row["library"],
                speed,
                spread,
                ratio,
                f"{row['on_core']:.0%}",
                spent,
                *sent,
                *memory,
                first,
                row["variant"],
            )
        )
    return table


def notes(record: dict[str, Any]) -> list[str]:
    lines = [
        f"an epoch is {record['files']} files; runs are whole epochs, `for epoch: for batch in loader`",
        "memory: the peak of a library's processes together, alone on the machine; pages that they share count once in "
        "PSS, for each process in the RSS sum; batches on their way between two processes are in neither",
        "first batch: from making the loader, in a process that has imported all it needs, kernels compiled before",
        *_scaling(record),
        *_of_workers(record),
    ]
    checked = [f"{row['library']}: {row['checked']}" for _, row in by_speed(record) if "error" not in row]
    return [*lines, *(["an epoch of each: " + "; ".join(checked)] if checked else []), *tried(record)]


def footer(record: dict[str, Any]) -> list[str]:
    machine = record["machine"]
    return [
        f"{machine['cpu']}, {record['cores']} of {machine['cores']} cores; Python {machine['python']}; "
        f"{machine['date']};",
        f"inputs: {record['inputs']}. Command: `{record['command']}`.",
    ]


def _scaling(record: dict[str, Any]) -> list[str]:
    found = record.get("scaling")
    if found is None:
        return []
    failed = [f"{name} {row['error']}" for name, row in found.items() if name != "ratio" and "error" in row]
    if failed:
        return ["Variegate with one thread beside all: not measured, " + "; ".join(failed)]
    one, all_cores = (found[name]["images_per_second"] for name in ("one core", "all cores"))
    return [
        f"Variegate with 1 thread on 1 core {one:,.0f} images/s, with {record['cores']} on {record['cores']} "
        f"{all_cores:,.0f}: {found['ratio']:.2f}x"
    ]


def _of_workers(record: dict[str, Any]) -> list[str]:
    rows, lines = record["libraries"], list[str]()
    asked = ASKED.get(record["work"])
    for module in ("ours:threads", "ours:process", "ours:ray"):
        if asked is None or not all("runs" in rows.get(each, {}) for each in (module, OURS)):
            continue
        pairs = zip(
            *([run["images"] / run["wall"] for run in rows[each]["runs"]] for each in (module, OURS)), strict=True
        )
        ratio = statistics.median(one / other for one, other in pairs)
        judged = "" if module == "ours:threads" else f"; target {asked:g}x: {'met' if ratio >= asked else 'missed'}"
        lines.append(f"{rows[module]['library']}: {ratio:.2f}x the local loader, median of rounds{judged}")
    for part in record.get("parts", []):
        judged = f"; target {MOST_PART_US:g} us: {'met' if part['driving_us'] <= MOST_PART_US else 'missed'}"
        lines.append(
            f"a part of a batch, {part['devices']:,} x {part['kind']}: {part['driving_us']:.0f} us of the thread that "
            f"dispatches, {part['process_us']:.0f} us of the process{judged if part['kind'] == 'no workers' else ''}"
        )
    for one in record.get("prediction", []):
        measured = one.get("measured")
        beside = f", measured {measured:,.0f}: {one['predicted'] / measured:.2f}x" if measured else ""
        lines.append(
            f"{one['workers']} x {one['kind']}, each with {one['share']:.0%} of a core: simulated "
            f"{one['predicted']:,.0f} images/s (limit: {one['limit']}){beside} [{one['costs']}]"
        )
    return lines
