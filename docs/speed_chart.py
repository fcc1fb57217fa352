"""The chart at the top of the README, docs/images/speed.svg, from docs/results: ``python -m docs.speed_chart``."""

from __future__ import annotations

import json
from pathlib import Path

DOCS = Path(__file__).resolve().parent
CHART = DOCS / "images" / "speed.svg"
RECORD = DOCS / "results" / "w2-batch64.json"
TITLE = "Images per second on one CPU core: RandAugment, flip, normalize"
# Variegate is limited to AVX2, which most processors have. Other libraries use all of the processor.
OURS = "ours:v3"
NAMES = {OURS: "Variegate"}
WIDTH, ROW, TOP, BARS = 720, 30, 52, 190
FONT = "system-ui, Segoe UI, Helvetica, Arial, sans-serif"


def rates() -> list[tuple[str, float]]:
    """Names and images per second, the fastest first."""
    libraries = json.loads(RECORD.read_text(encoding="utf-8"))["libraries"]
    shown = [key for key in libraries if key == OURS or not key.startswith("ours:")]
    rows = [(NAMES.get(key, libraries[key]["library"]), libraries[key]["images_per_second"]) for key in shown]
    return sorted(rows, key=lambda row: -row[1])


def chart() -> str:
    """The SVG; its colors suit light and dark pages."""
    rows = rates()
    height = TOP + ROW * len(rows) + 8
    longest = WIDTH - BARS - 80
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{TITLE}" font-family="{FONT}" font-size="14" fill="#1f2328">',
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#f6f8fa"/>',
        f'<text x="20" y="30" font-weight="600">{TITLE}</text>',
    ]
    for number, (name, rate) in enumerate(rows):
        top = TOP + ROW * number
        color = "#0969da" if number == 0 else "#8c959f"
        length = max(1, round(longest * rate / rows[0][1]))
        lines += [
            f'<text x="{BARS - 10}" y="{top + 15}" text-anchor="end">{name}</text>',
            f'<rect x="{BARS}" y="{top}" width="{length}" height="20" rx="3" fill="{color}"/>',
            f'<text x="{BARS + length + 8}" y="{top + 15}">{rate:,.0f}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    CHART.write_text(chart(), encoding="utf-8")
