"""Write torchvision_grid.json: torchvision's boxes, key points and masks over the parameters of its own tests.

Run from the repository's root with a Python that has torchvision: ``python tests/targets/make_torchvision_grid.py``.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

HEIGHT, WIDTH = 33, 41
OUT = Path(__file__).with_name("torchvision_grid.json")
STILL: dict[str, Any] = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0]}
CORNERS = [[0, 0], [40, 0], [40, 32], [0, 32]]


def grid() -> list[tuple[str, dict[str, Any]]]:
    affine: list[dict[str, Any]] = [{"angle": angle} for angle in (-87.0, 15.0, 90.0)]
    affine += [{"translate": [x, y]} for x, y in product((5, -5), (4, -4))]
    affine += [{"scale": scale} for scale in (0.77, 1.27)]
    affine += [{"shear": shear} for shear in ([12.0, 0.0], [0.0, 12.0], [-12.0, 5.0], [5.0, 17.0])]
    affine += [{"angle": 15.0, "scale": 1.27, "shear": [3.0, 5.0], "center": at} for at in ([2.0, 5.0], [16.0, 12.0])]
    affine += [{"angle": -87.0, "translate": [5, 4], "scale": 0.77, "shear": [12.0, 0.0]}]
    crops = [(8, 9, 10, 10), (-8, 9, 10, 10), (12, -9, 14, 12), (-4, -9, 50, 66), (20, 30, 20, 20)]
    resized = [((4, 5, 20, 20), [7, 7]), ((4, 5, 20, 20), [40, 31]), ((-3, -2, 20, 25), [20, 20]), ((4, 5, 20, 20), 17)]
    ends = [[[5, 3], [38, 1], [31, 27], [2, 30]], [[14, 8], [30, 6], [27, 23], [10, 22]]]
    coefficients = [
        [1.2405, 0.1772, -6.9113, 0.0463, 1.251, -5.235, 0.00013, 0.0018],
        [0.7366, -0.11724, 1.45775, -0.15012, 0.73406, 2.6019, -0.0072, -0.0063],
    ]
    sides = ("top", "left", "height", "width")
    return [
        *(("affine", {**STILL, **arguments}) for arguments in affine),
        *(("rotate", {"angle": angle}) for angle in (-87.0, 15.0, 90.0, 180.0, 270.0, 0.0)),
        *(("rotate", {"angle": angle, "center": [2.0, 5.0]}) for angle in (-87.0, 15.0, 90.0)),
        *(("rotate", {"angle": angle, "expand": True}) for angle in (15.0, 90.0, 180.0)),
        *(("crop", dict(zip(sides, crop, strict=True))) for crop in crops),
        *(("resized_crop", {**dict(zip(sides, crop, strict=True)), "size": size}) for crop, size in resized),
        *(("pad", {"padding": padding}) for padding in (1, [1], [1, 2], [1, 2, 3, 4])),
        *(("pad", {"padding": [1, 2, 3, 4], "padding_mode": mode}) for mode in ("edge", "reflect", "symmetric")),
        *(("perspective", {"startpoints": CORNERS, "endpoints": end}) for end in ends),
        *(("perspective", {"startpoints": None, "endpoints": None, "coefficients": each}) for each in coefficients),
        ("horizontal_flip", {}),
        ("vertical_flip", {}),
        *(("resize", {"size": size}) for size in (17, [17], [17, 13], [66, 82], [33, 41], [100, 7])),
        *(("resize", {"size": size, "max_size": most}) for size, most in (([17], 20), ([40], 43), (None, 20))),
        *(("center_crop", {"output_size": size}) for size in (7, [17, 13], [50, 60], [33, 20], [20, 50], [14, 42])),
    ]


def inputs() -> tuple[list[Any], list[Any], list[Any], np.ndarray[Any, np.dtype[np.uint8]]]:
    """Boxes, boxes with angles, points and a mask."""
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.uniform(0, WIDTH, (6, 2))), np.sort(rng.uniform(0, HEIGHT, (6, 2)))
    boxes = np.concatenate([[[0, 0, WIDTH, HEIGHT]], np.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], axis=1)])
    turned = np.stack([x.mean(1), y.mean(1), *rng.uniform(2, 12, (2, 6)), rng.uniform(-170, 170, 6)], axis=1)
    points = rng.uniform(0, 1, (8, 2)) * [WIDTH, HEIGHT]
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[5:19, 8:30], mask[20:30, 3:9] = 1, 2
    return boxes.round(2).tolist(), turned.round(2).tolist(), points.round(2).tolist(), mask


def main() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks/peers"))
    from torchvision_stub import import_v2  # type: ignore[import-not-found, unused-ignore]

    functional = import_v2().functional  # type: ignore[attr-defined, unused-ignore]
    import torchvision  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from torchvision import tv_tensors as tv  # type: ignore[import-not-found, import-untyped, unused-ignore]

    boxes, turned, points, mask = inputs()
    size = (HEIGHT, WIDTH)
    cases = []
    for name, arguments in grid():
        function = getattr(functional, name)
        case: dict[str, Any] = {"function": name, "arguments": arguments}
        if "padding_mode" not in arguments:
            made = function(tv.BoundingBoxes(boxes, format="XYXY", canvas_size=size), **arguments)
            free = tv.BoundingBoxes(turned, format="CXCYWHR", canvas_size=size, clamping_mode=None)
            case["boxes"] = np.round(made.tolist(), 3).tolist()
            case["turned"] = np.round(function(free, **arguments).tolist(), 3).tolist()
            case["points"] = np.round(
                function(tv.KeyPoints(points, canvas_size=size), **arguments).tolist(), 3
            ).tolist()
        shown = function(tv.Mask(torch.from_numpy(mask)), **arguments).squeeze(0).numpy()
        case["size"] = list(shown.shape)
        case["mask"] = base64.b64encode(zlib.compress(shown.tobytes(), 9)).decode()
        cases.append(case)
    head = {"torchvision": torchvision.__version__, "boxes": boxes, "turned": turned, "points": points}
    lines = ",\n".join(json.dumps(case) for case in cases)
    OUT.write_text(f'{{"inputs": {json.dumps(head)},\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
