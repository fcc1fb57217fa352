"""What ``variegate simulate --workers`` says of a loader whose costs were measured, beside what was measured."""

from __future__ import annotations

from typing import Any

from variegate.apps.feed import simulate_feed
from variegate.options.measurement import FeedScenario, Scenario

# Rows of the record that have so many workers on this machine; more are simulated alone, far away.
MEASURED = {1: "ours:1 process", 2: "ours:process", 4: "ours:4 processes"}
FAR, FAR_WORKERS, FAR_GBIT = "ours:ray", (8, 16, 32, 64), 10.0
PREFETCH, FEWEST_ROWS, STEPS = 2, 8, 400


def predict(record: dict[str, Any]) -> list[dict[str, Any]]:
    """For each number of workers, images per second as simulated and, where there are so many here, as measured."""
    rows = {module: row for module, row in record["libraries"].items() if "error" not in row}
    found = []
    alone = _costs(rows[MEASURED[1]]) if MEASURED[1] in rows else None
    far = _costs(rows[FAR]) if FAR in rows else None
    for workers, module in MEASURED.items():
        if alone is None or module not in rows:
            continue
        made, own, _ = alone
        # Workers and the loader's process share the cores.
        share = min(1.0, record["cores"] / workers / (1.0 + own / made))
        predicted = _simulated(record, workers, made, own, "processes", share)
        found.append(predicted | {"measured": rows[module]["images_per_second"]})
    if alone is not None and far is not None:
        for workers in FAR_WORKERS:
            predicted = _simulated(record, workers, alone[0], far[1], "Ray actors", 1.0, far[2])
            found.append(predicted)
    return found


def _costs(row: dict[str, Any]) -> tuple[float, float, int]:
    """(seconds of the workers' processors, of the loader's process, bytes received) per image."""
    total = {key: sum(run[key] for run in row["runs"]) for key in row["runs"][0]}
    own = total["own_cpu_seconds"] / total["images"]
    made = total["cpu_seconds"] / total["images"] - own
    return made, own, round(total["received"] / total["images"])


def _simulated(
    record: dict[str, Any], workers: int, made: float, own: float, kind: str, share: float, nbytes: int | None = None
) -> dict[str, Any]:
    rows = max(-(-record["batch"] // -(-workers // PREFETCH)), FEWEST_ROWS)
    dispatching = next(part["process_us"] for part in record["parts"] if part["kind"] == kind)
    feed = FeedScenario(
        (workers,),
        batch_size=record["batch"],
        prefetch=PREFETCH,
        steps=STEPS,
        worker_rate=1.0 / made,
        image_bytes=nbytes or 1,
        wire=FAR_GBIT if nbytes else None,
        part_us=own * 1e6 * rows + dispatching,
    )
    outcome = simulate_feed(feed, Scenario(speeds=(share,)), workers)
    words = f"{1e3 * made:.2f} ms per image, {feed.part_us:,.0f} us per part of {rows}"
    words += f", {nbytes:,} bytes per image over {FAR_GBIT:g} Gbit/s" if nbytes else ""
    return {"workers": workers, "kind": kind, "predicted": outcome.images_per_second, "limit": outcome.limit} | {
        "share": share,
        "costs": words,
    }
