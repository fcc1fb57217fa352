"""What the table of the work `loader` shows."""

from __future__ import annotations

from typing import Any

from benchmarks.columns import by_speed, speed_cells, tried, verdict

__all__ = ["HEADER", "LEFT", "footer", "notes", "rows", "verdict"]

HEADER = (
    *("library", "images/s", "lowest - highest", "Variegate is", "of the cores"),
    *("memory (PSS)", "RSS sum", "first batch", "how"),
)
LEFT = (0, 8)


def rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = []
    for module, row in by_speed(record):
        if "error" in row:
            table.append((row["library"], *("-" for _ in HEADER[2:]), row["error"]))
            continue
        speed, spread, ratio = speed_cells(record, module, row)
        memory = (f"{row[key] / 1e6:,.0f} MB" for key in ("peak_pss_bytes", "peak_rss_bytes"))
        first = f"{row['first_batch_seconds']:.2f} s"
        table.append((row["library"], speed, spread, ratio, f"{row['on_core']:.0%}", *memory, first, row["variant"]))
    return table


def notes(record: dict[str, Any]) -> list[str]:
    lines = [
        f"an epoch is {record['files']} files; runs are whole epochs, `for epoch: for batch in loader`",
        "memory: the peak of a library's processes together, alone on the machine; pages that they share count once in "
        "PSS, for each process in the RSS sum; batches on their way between two processes are in neither",
        "first batch: from making the loader, in a process that has imported all it needs, kernels compiled before",
        *_scaling(record),
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
