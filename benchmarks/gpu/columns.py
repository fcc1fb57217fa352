"""What the tables of W3 and W3r show."""

from __future__ import annotations

from typing import Any

from benchmarks.columns import by_speed, speed_cells, tried
from benchmarks.columns import verdict as ratio_verdict

HEADER = ("library", "images/s", "lowest - highest", "Variegate is", "of copy speed", "peak memory", "how")
LEFT = (0, 6)


def share(record: dict[str, Any], images_per_second: float) -> float:
    """Part of the measured copy bandwidth that the bytes which must move take up."""
    moved = record["bytes_per_image"]["read"] + record["bytes_per_image"]["written"]
    return float(images_per_second * moved / record["copy_bytes_per_second"])


def rows(record: dict[str, Any]) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = []
    for module, row in by_speed(record):
        if "error" in row:
            table.append((row["library"], "-", "-", "-", "-", "-", row["error"]))
            continue
        speed, spread, ratio = speed_cells(record, module, row)
        used = row["peak_memory_bytes"]
        memory = "-" if used is None else f"{used / 1e6:,.0f} MB"
        of_copy = f"{share(record, row['images_per_second']):.2%}"
        table.append((row["library"], speed, spread, ratio, of_copy, memory, row["variant"]))
    return table


def verdict(record: dict[str, Any]) -> str:
    """The ratio to the best peer and the share of the copy bandwidth, each with its target."""
    ours = record["libraries"].get("ours", {}).get("images_per_second")
    asked = record["target_share"]
    if ours is None or asked is None:
        return ratio_verdict(record)
    reached = share(record, ours)
    word = "met" if reached >= asked else "missed"
    return f"{ratio_verdict(record)}. {reached:.1%} of the copy speed; target {asked:.0%}: {word}"


def notes(record: dict[str, Any]) -> list[str]:
    """The figures that the shares rest on, our time on the device alone, memory's origin, and every variant tried."""
    moved = record["bytes_per_image"]
    lines = [
        f"copy within the device, read and written: {record['copy_bytes_per_second'] / 1e9:,.0f} GB/s; an image must "
        f"move {moved['read']:,.0f} bytes of source and {moved['written']:,.0f} of output",
        f"{record['batches_in_turn']} batches in turn, {record['batches_bytes'] / 1e6:,.0f} MB of inputs; "
        f"L2 {record['gpu']['l2_bytes'] / 1e6:,.0f} MB",
        *_device_alone(record),
    ]
    by = [f"{row['library']}: {row['memory_by']}" for _, row in by_speed(record) if "error" not in row]
    memory = ["peak memory is beyond the inputs, by: " + "; ".join(by)] if by else []
    return [*lines, *memory, *tried(record)]


def _device_alone(record: dict[str, Any]) -> list[str]:
    ours = record["libraries"].get("ours", {})
    if "device_seconds_per_batch" not in ours:
        return []
    seconds = ours["device_seconds_per_batch"]
    if seconds is None:
        return ["Variegate on the device alone: not measured, as its calls wait for the device"]
    speed = record["batch"] / seconds
    return [
        f"Variegate on the device alone, without the host's part: {seconds * 1e6:,.0f} us a batch, {speed:,.0f} "
        f"images/s, {share(record, speed):.1%} of the copy speed"
    ]


def footer(record: dict[str, Any]) -> list[str]:
    gpu = record["gpu"]
    return [
        f"{gpu['gpu']}, driver {gpu['driver']}, CUDA {gpu['cuda']}; torch {gpu['torch']}, Triton {gpu['triton']}, "
        f"Python {gpu['python']}; {gpu['date']};",
        f"inputs: {record['inputs']}. Command: `{record['command']}`.",
    ]
