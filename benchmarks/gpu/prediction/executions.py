"""How often each line of the kernels runs, per program: a sampled batch in Triton's interpreter, watched line by line.

``python -m benchmarks.gpu.prediction.executions IMAGES`` prints a JSON list, one entry a launch. A process of its own,
as Triton decides at its import whether kernels are interpreted. Programs of a row all take the same branches, so small
images tell what large ones do; what only the last program of a row does is set in proportion by whoever reads this.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "1"

import json
import sys
from collections import Counter
from types import FrameType
from typing import Any

from benchmarks.gpu.prediction.launches import make

HEIGHT, WIDTH = 16, 128
KERNELS = os.path.join("executors", "cuda", "kernels")


def main() -> None:
    made = make(int(sys.argv[1]), HEIGHT, WIDTH)
    counts: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if KERNELS in name:
            if event == "line":
                counts[chain_of(frame)] += 1
            return watch
        return watch if "triton" in name else None

    found = []
    for launch in made.launches:
        counts.clear()
        sys.settrace(watch)
        try:
            launch.run()
        finally:
            sys.settrace(None)
        # Interpreted kernels wrap the function as compiled ones do.
        name = launch.kernel.fn.__name__
        found.append({"kernel": name, "programs": launch.programs, "tiles": made.tiles, "lines": dict(counts)})
    print(json.dumps(found))


def chain_of(frame: FrameType | None) -> str:
    """file:line of the frame, then of those that called it, as far as they are kernels'."""
    parts = []
    while frame is not None:
        name = frame.f_code.co_filename
        if KERNELS in name:
            parts.append(f"{os.path.basename(name)}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(parts)


if __name__ == "__main__":
    main()
