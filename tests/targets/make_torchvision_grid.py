"""Write the results in torchvision_grid.json anew: torchvision's boxes, key points and masks for the inputs and the
parameters in that file, which are those of torchvision's own tests.

Run from the repository's root with a Python that has torchvision: ``python tests/targets/make_torchvision_grid.py``.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

HEIGHT, WIDTH = 33, 41
FILE = Path(__file__).with_name("torchvision_grid.json")
MASK = np.zeros((HEIGHT, WIDTH), np.uint8)
MASK[5:19, 8:30], MASK[20:30, 3:9] = 1, 2


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks/peers"))
    from torchvision_stub import import_v2  # type: ignore[import-not-found, unused-ignore]

    functional = import_v2().functional  # type: ignore[attr-defined, unused-ignore]
    import torchvision  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from torchvision import tv_tensors as tv  # type: ignore[import-not-found, import-untyped, unused-ignore]

    grid = json.loads(FILE.read_text())
    inputs, size = grid["inputs"], (HEIGHT, WIDTH)
    cases = []
    for known in grid["cases"]:
        arguments = known["arguments"]
        function = getattr(functional, known["function"])
        case: dict[str, Any] = {"function": known["function"], "arguments": arguments}
        if "padding_mode" not in arguments:
            boxes = tv.BoundingBoxes(inputs["boxes"], format="XYXY", canvas_size=size)
            turned = tv.BoundingBoxes(inputs["turned"], format="CXCYWHR", canvas_size=size, clamping_mode=None)
            points = tv.KeyPoints(inputs["points"], canvas_size=size)
            for name, given in (("boxes", boxes), ("turned", turned), ("points", points)):
                case[name] = np.round(function(given, **arguments).tolist(), 3).tolist()
        shown = function(tv.Mask(torch.from_numpy(MASK)), **arguments).squeeze(0).numpy()
        case["size"] = list(shown.shape)
        case["mask"] = base64.b64encode(zlib.compress(shown.tobytes(), 9)).decode()
        cases.append(case)
    head = json.dumps({**inputs, "torchvision": torchvision.__version__})
    lines = ",\n".join(json.dumps(case) for case in cases)
    FILE.write_text(f'{{"inputs": {head},\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
