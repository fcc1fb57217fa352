"""Write albumentations_grid.json: Albumentations' boxes, key points and masks for given parameters, and the transforms
that mean the same here.

Run from the repository's root with a Python that has it: ``python tests/targets/make_albumentations_grid.py``.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HEIGHT, WIDTH = 33, 41
FILE = Path(__file__).with_name("albumentations_grid.json")
MASK = np.zeros((HEIGHT, WIDTH), np.uint8)
MASK[5:19, 8:30], MASK[20:30, 3:9] = 1, 2
# Transforms' names with their arguments, or how to make them of the parameters that were drawn.
Steps = list[tuple[str, dict[str, Any]]]
Ours = Steps | Callable[[dict[str, Any]], Steps]
KEEPS_RATIO = {"keep_ratio": True, "p": 1}


def function(name: str, **arguments: Any) -> Steps:
    return [("Function", {"function": name, "arguments": arguments})]


def turned(angle: float, shift: tuple[int, int] = (0, 0), scale: float = 1.0) -> Steps:
    """torchvision's affine turns clockwise, Albumentations' counter-clockwise."""
    return function("affine", angle=-angle, translate=list(shift), scale=scale, shear=[0.0, 0.0])


def projected(matrix: Any, half: float) -> Steps:
    """A map from source to result, between places whose (0, 0) is ``half`` a pixel within the image's corner."""
    to_corner = np.array([[1.0, 0, half], [0, 1, half], [0, 0, 1]])
    back = to_corner @ np.linalg.inv(matrix) @ np.linalg.inv(to_corner)
    coefficients = (back / back[2, 2]).ravel()[:8].tolist()
    return function("perspective", startpoints=None, endpoints=None, coefficients=coefficients)


def perspective(drawn: dict[str, Any]) -> Steps:
    size = {"top": 0, "left": 0, "height": drawn["max_height"], "width": drawn["max_width"]}
    return [*projected(drawn["matrix"], 0.5), *function("resized_crop", **size, size=[HEIGHT, WIDTH])]


def cropped(drawn: dict[str, Any]) -> dict[str, int]:
    left, top, right, bottom = map(int, drawn["crop_coords"])
    return {"top": top, "left": left, "height": bottom - top, "width": right - left}


def crop(drawn: dict[str, Any]) -> Steps:
    return function("crop", **cropped(drawn))


def grid() -> list[tuple[str, dict[str, Any], Ours]]:
    turns = {"e": 0, "r90": 90, "r180": 180, "r270": 270}
    one: dict[str, Any] = {"p": 1}
    both = {"x": (0.0, 0.0), "y": (0.0, 0.0)}

    def warped(drawn: dict[str, Any]) -> Steps:
        return projected(drawn["matrix"], 0.5)

    def to_size(*size: int) -> Callable[[dict[str, Any]], Steps]:
        return lambda drawn: function("resized_crop", **cropped(drawn), size=size)

    return [
        ("HorizontalFlip", one, function("horizontal_flip")),
        ("VerticalFlip", one, function("vertical_flip")),
        ("Transpose", one, [("Transpose", one)]),
        *(
            ("RandomRotate90", {"group_element": name, **one}, function("rotate", angle=angle, expand=True))
            for name, angle in turns.items()
        ),
        ("Crop", {"x_min": 7, "y_min": 5, "x_max": 32, "y_max": 25}, crop),
        ("RandomCrop", {"height": 20, "width": 13}, crop),
        ("RandomCropFromBorders", {"crop_left": 0.3, "crop_top": 0.2, **one}, crop),
        ("CenterCrop", {"height": 17, "width": 21}, function("center_crop", output_size=[17, 21])),
        ("CenterCrop", {"height": 20, "width": 14}, crop),
        ("Pad", {"padding": (1, 2, 3, 4)}, function("pad", padding=[1, 2, 3, 4])),
        (
            "PadIfNeeded",
            {"min_height": 40, "min_width": 50, "position": "top_left"},
            function("pad", padding=[0, 0, 9, 7]),
        ),
        ("PadIfNeeded", {"min_height": 40, "min_width": 50}, function("pad", padding=[4, 3, 5, 4])),
        ("Resize", {"height": 17, "width": 13}, [("Resize", {"size": [17, 13]})]),
        ("Resize", {"height": 66, "width": 50}, [("Resize", {"size": [66, 50]})]),
        ("LongestMaxSize", {"max_size": 64}, [("LongestMaxSize", {"max_size": 64})]),
        ("LongestMaxSize", {"max_size": 20}, [("LongestMaxSize", {"max_size": 20})]),
        ("SmallestMaxSize", {"max_size": 50}, [("SmallestMaxSize", {"max_size": 50})]),
        ("LetterBox", {"size": (60, 60)}, [("LetterBox", {"size": [60, 60]})]),
        ("RandomResizedCrop", {"size": (20, 30), **one}, to_size(20, 30)),
        ("RandomSizedCrop", {"min_max_height": (12, 20), "size": (40, 31), **one}, to_size(40, 31)),
        *(
            ("Rotate", {"angle_range": (angle, angle), **one}, function("rotate", angle=angle))
            for angle in (-87.0, 15.0, 50.0, 90.0, 180.0)
        ),
        *(("SafeRotate", {"angle_range": (angle, angle), **one}, warped) for angle in (15.0, -60.0)),
        *(("Affine", {"rotate": (angle, angle), **KEEPS_RATIO}, turned(angle)) for angle in (-87.0, 15.0)),
        *(("Affine", {"scale": (s, s), **KEEPS_RATIO}, turned(0.0, scale=s)) for s in (0.77, 1.27)),
        *(
            ("Affine", {"translate_px": {"x": (x, x), "y": (y, y)}, **one}, turned(0.0, (x, y)))
            for x, y in ((5, -4), (-6, 3))
        ),
        ("Affine", {"shear": {**both, "x": (12.0, 12.0)}, **one}, warped),
        ("Affine", {"shear": {**both, "y": (-17.0, -17.0)}, **one}, warped),
        ("Affine", {"shear": {"x": (10.0, 10.0), "y": (5.0, 5.0)}, "rotate": (20.0, 20.0), **one}, warped),
        ("Affine", {"scale": {"x": (0.6, 0.6), "y": (1.4, 1.4)}, "keep_ratio": False, **one}, warped),
        (
            "Affine",
            {"rotate": (30.0, 30.0), "scale": (1.2, 1.2), "translate_px": {"x": (3, 3), "y": (-2, -2)}, **KEEPS_RATIO},
            turned(30.0, (3, -2), 1.2),
        ),
        (
            "ShiftScaleRotate",
            {"shift_range": (0.1, 0.1), "scale_range": (0.2, 0.2), "rotate_range": (35.0, 35.0), **one},
            turned(35.0, (4, 3), 1.2),
        ),
        *(("Perspective", {"scale": (scale, scale), **one}, perspective) for scale in (0.05, 0.1)),
    ]


def cases(boxes: list[Any], points: list[Any]) -> list[dict[str, Any]]:
    """``points`` are counted from the centre of the first pixel."""
    import albumentations as A

    made = []
    for name, arguments, ours in grid():
        op = getattr(A, name)(**arguments)
        run = A.Compose(
            [op],
            bbox_params=A.BboxParams(coord_format="pascal_voc", label_fields=["labels"]),
            keypoint_params=A.KeypointParams(coord_format="xy", remove_invisible=False),
            save_applied_params=True,
            seed=3,
        )
        result = run(
            image=np.zeros((HEIGHT, WIDTH, 3), np.uint8),
            mask=MASK,
            bboxes=np.array(boxes),
            labels=list(range(len(boxes))),
            keypoints=np.array(points),
        )
        case: dict[str, Any] = {"op": name, "arguments": arguments}
        case["ours"] = ours(run.transforms[0].params["params"]) if callable(ours) else ours
        case["boxes"], case["labels"] = np.round(result["bboxes"], 3).tolist(), np.array(result["labels"], int).tolist()
        case["points"], case["size"] = np.round(result["keypoints"], 3).tolist(), list(result["mask"].shape)
        case["mask"] = base64.b64encode(zlib.compress(result["mask"].tobytes(), 9)).decode()
        made.append(case)
    return made


def main() -> None:
    import albumentations as A

    inputs = json.loads(FILE.read_text())["inputs"]
    head = json.dumps({**inputs, "albumentations": A.__version__})
    lines = ",\n".join(json.dumps(case) for case in cases(inputs["boxes"], inputs["points"]))
    FILE.write_text(f'{{"inputs": {head},\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
