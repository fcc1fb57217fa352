"""The arguments of one Albumentations transform, taken one by one: whatever nobody took is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variegate.integrations.converters.report import Place, plain

# Of masks, boxes and the way in which the library works, which images do not see.
_NOT_OF_IMAGES = {
    *("p", "always_apply", "fill_mask", "mask_fill_value", "mask_value", "mask_interpolation", "area_for_downscale"),
    *("keypoint_remapping_method", "rotate_method", "transpose_mask", "mask_params", "__class_fullname__", "strict"),
}
# cv2's codes.
_INTERPOLATIONS = {0: "nearest", 1: "bilinear", 2: "bicubic", 3: "area", 4: "lanczos", 5: "bilinear", 6: "nearest"}
_BORDERS = {0: "constant", 1: "edge", 2: "symmetric", 4: "reflect"}


class Arguments:
    """What a description holds beside its class and its probability."""

    def __init__(self, place: Place, given: Mapping[str, Any]) -> None:
        self.place = place
        self._given = {name: plain(value) for name, value in given.items() if name not in _NOT_OF_IMAGES}

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def take(self, names: str, default: Any = None) -> Any:
        """The value of the first of ``names`` (separated by blanks, today's first) that is there, else ``default``."""
        values = [self._given.pop(name) for name in names.split() if name in self._given]
        return values[0] if values else default

    def take_range(self, names: str, default: tuple[float, float], centre: float = 0.0) -> tuple[float, float]:
        """A range, of which older versions also write a number for what is around ``centre``."""
        value = self.take(names, default)
        return value if isinstance(value, tuple) else (centre - value, centre + value)

    def require(self, name: str, *accepted: Any, why: str = "") -> None:
        """``name``, where it is there, must be one of ``accepted``; it says nothing more."""
        value = self.take(name, accepted[0])
        if value not in accepted:
            self.place.refuse(name, value, " or ".join(map(repr, accepted)) + (f": {why}" if why else ""))

    def interpolation(self) -> str:
        return self.kind("interpolation", self.take("interpolation", 1))

    def kind(self, name: str, code: Any) -> str:
        """cv2's interpolation of that code."""
        if code not in _INTERPOLATIONS:
            self.place.refuse(name, code, "a code of cv2 from 0 to 6")
        return _INTERPOLATIONS[code]

    def warped(self) -> dict[str, Any]:
        """Interpolation and fill of a geometric operation, which shows a colour beyond the image's edge."""
        kind = self.interpolation()
        if kind == "area":
            kind = "bilinear"  # of cv2's warps
        if kind == "bicubic":
            self.place.differs("interpolation", 2, "cubic weights with a = -1 here (Pillow), -0.75 there (cv2)")
        self.require("border_mode", 0, why="a colour, as geometric operations here show no other border")
        return {"interpolation": kind, "fill": self.colour()}

    def colour(self) -> Any:
        """A fill, whole levels."""
        value = self.take("fill value fill_value", 0)
        return tuple(map(round, value)) if isinstance(value, tuple) else round(value) if value else 0

    def border(self) -> str:
        mode = self.take("border_mode", 0)
        if mode not in _BORDERS:
            self.place.refuse("border_mode", mode, ", ".join(f"{code} ({name})" for code, name in _BORDERS.items()))
        return _BORDERS[mode]

    def check_all_taken(self) -> None:
        for name, value in self._given.items():
            if value is not None:
                self.place.refuse(name, value, "a description without it: nothing here means the same")
