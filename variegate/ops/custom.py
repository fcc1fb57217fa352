"""User-defined operations: a magnitude's domain with a LUT, an affine or color matrix, or a pixel function."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from variegate.arrays import AnyArray
from variegate.checks import as_number, number
from variegate.ops.arguments import INTERPOLATIONS, ArgumentError, InterpolationName, Number, PaddingMode
from variegate.ops.base import Transform, set_field
from variegate.ops.magnitude import BORDER_FLAGS, INTERPOLATION_FLAGS, between
from variegate.ops.schema import Range
from variegate.program.ops import Op
from variegate.program.pixel_functions import PixelFunction, row_address
from variegate.program.sampling import Floats, Rows, Sampling

FORMS = ("lut", "affine", "color_matrix", "point")


@dataclass(frozen=True)
class Magnitude:
    """Domain of a custom operation's magnitude: ``low`` to ``high``, in ``unit``. ``signed`` also draws a sign."""

    low: float
    high: float
    signed: bool = False
    unit: str = ""

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            set_field(self, name, number(name, getattr(self, name), error=partial(ArgumentError, self)))
        if self.low > self.high:
            raise ArgumentError(self, "low", self.low, f"a number up to high={self.high}")
        if self.signed and self.low < 0:
            raise ArgumentError(self, "low", self.low, "a number >= 0, as signed=True draws the sign")


@dataclass(frozen=True)
class CustomOp(Transform, abstract=True):
    """Base class of user-defined operations, which run inside the fused pass like built-in ones.

    A subclass sets ``magnitude = Magnitude(low, high)`` (or omits it, for an operation without a number) and exactly
    one of::

        def lut(self, m): ...                   # uint8[256], or [3, 256] for red, green, blue
        def affine(self, m, height, width): ... # six coefficients: output (x, y) reads input (ax+by+c, dx+ey+f)
        def color_matrix(self, m): ...          # [3, 4], times (r, g, b, 1) on 0..255
        @staticmethod
        def point(r, g, b, m): ...              # three numbers on 0..255, by arithmetic and functions of vg.math
        point = pointer                         # to a function in C (see docs/custom.md): for CPUs only

    ``point`` runs once, on symbols, and its record runs on CPUs and GPUs.

    Affine operations may also set ``interpolation``, ``fill`` and ``padding_mode``. An instance holds a ``magnitude``,
    a number or a range: ``Warm(0.3)``, ``Warm((0.1, 0.5))``; without an argument, the whole domain. Declaring a class
    registers its name for descriptions (dict, JSON, YAML).
    """

    magnitude: Any = None

    interpolation: ClassVar[InterpolationName] = "nearest"
    fill: ClassVar[Sequence[int]] = (0, 0, 0)
    padding_mode: ClassVar[PaddingMode] = "constant"
    num_slots = 1
    _form: ClassVar[str] = ""
    _domain: ClassVar[Magnitude | None] = None
    _pixel_function: ClassVar[PixelFunction | None] = None

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        known = Transform.registry.get(cls.__name__)
        if known is not None and not abstract and not issubclass(known, CustomOp):
            raise TypeError(f"class {cls.__name__}: this name is a built-in transform; accepted: any other name")
        if not abstract:
            _declare(cls)
        super().__init_subclass__(abstract=abstract, **kwargs)

    def __post_init__(self) -> None:
        domain = self._domain
        if self.magnitude is None or self.magnitude is domain:
            set_field(self, "magnitude", None if domain is None else (domain.low, domain.high))
        elif domain is None:
            raise ArgumentError(self, "magnitude", self.magnitude, "None: the class declares no magnitude")
        else:
            # A constant may be negative; a drawn magnitude gets a random sign.
            low = -domain.high if domain.signed and as_number(self.magnitude) is not None else domain.low
            accepted = Range(low, domain.high).of_type(Number)
            set_field(
                self, "magnitude", accepted.check("magnitude", self.magnitude, error=partial(ArgumentError, self))
            )

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        values = np.zeros(len(rows))
        if self.magnitude is not None:
            unit = sampling.uniform(rows, slot)
            values = between(self.magnitude, unit[:, 0])
            if self._domain is not None and self._domain.signed and isinstance(self.magnitude, tuple):
                values = np.where(unit[:, 1] < 0.5, -values, values)
        self.emit_magnitude(sampling, rows, values, slot)

    def emit_magnitude(self, sampling: Sampling, rows: Rows, values: Floats, slot: int) -> None:
        """Emit the operation for ``rows`` with magnitudes ``values[R]``, including signs."""
        name = type(self).__name__
        if self._form == "affine":
            size = sampling.size[rows]
            matrix = np.empty((len(rows), 6))
            for i, (value, (height, width)) in enumerate(zip(values.tolist(), size.tolist(), strict=True)):
                matrix[i] = self._table("affine", (6,), value, height, width)
            flags = INTERPOLATION_FLAGS[self.interpolation] | BORDER_FLAGS[self.padding_mode]
            sampling.emit(rows, Op.AFFINE, *matrix.T, values, flags=flags, fill=self.fill, name=name)
        elif self._pixel_function is not None:
            sampling.emit(rows, Op.PIXEL_FUNCTION, sampling.add_pixel_function(self._pixel_function), values, name=name)
        else:
            distinct, which = np.unique(values, return_inverse=True)
            if self._form == "lut":
                curves = [self._table("lut", (256,), value) for value in distinct.tolist()]
                tables, op = [sampling.add_curve(curve, name) for curve in curves], Op.LUT
            else:
                tables = [sampling.add_matrix(self._table("color_matrix", (3, 4), v)) for v in distinct.tolist()]
                op = Op.COLOR_MATRIX
            sampling.emit(rows, op, np.array(tables, np.float64)[which.reshape(-1)], values, name=name)

    def _table(self, form: str, shape: tuple[int, ...], *arguments: float) -> AnyArray:
        """Call the user's method ``form`` and check its result. Raises ArgumentError for other shapes and values."""
        table = np.asarray(getattr(self, form)(*arguments))
        accepted_shapes = [shape, (3, 256)] if form == "lut" else [shape]
        ok = table.shape in accepted_shapes and table.dtype.kind in "iuf" and bool(np.isfinite(table).all())
        if form == "lut" and ok:
            ok = table.dtype.kind in "iu" and int(table.min()) >= 0 and int(table.max()) <= 255
        if not ok:
            wanted = {"lut": "uint8[256] or uint8[3, 256]", "affine": "6 finite numbers", "color_matrix": "float[3, 4]"}
            got = f"{table.dtype}{list(table.shape)}"
            raise ArgumentError(self, f"{form}({', '.join(f'{a:g}' for a in arguments)})", got, wanted[form])
        return table


def _declare(cls: type[CustomOp]) -> None:
    """Set ``_form``, ``_domain`` and ``_pixel_function`` from a subclass's declaration."""
    forms = [form for form in FORMS if inspect.getattr_static(cls, form, None) is not None]
    if len(forms) != 1:
        got = ", ".join(forms) or "none"
        raise TypeError(f"class {cls.__name__}: got {got}; accepted: exactly one of {', '.join(FORMS)}")
    domain = inspect.getattr_static(cls, "magnitude", None)
    if domain is not None and not isinstance(domain, Magnitude):
        raise TypeError(f"class {cls.__name__}: magnitude={domain!r}; accepted: Magnitude(low, high), or none at all")
    for name, choices in (("interpolation", INTERPOLATIONS), ("padding_mode", tuple(BORDER_FLAGS))):
        if getattr(cls, name) not in choices:
            accepted = ", ".join(map(repr, choices))
            raise TypeError(f"class {cls.__name__}: {name}={getattr(cls, name)!r}; accepted: {accepted}")
    cls._form, cls._domain = forms[0], domain
    cls._pixel_function = None
    if cls._form == "point":
        function: Any = inspect.getattr_static(cls, "point")
        function = function.__func__ if isinstance(function, staticmethod) else function
        if row_address(function) == 0 or not (callable(function) or row_address(function)):
            accepted = "a function (r, g, b, m) -> (r, g, b), or a pointer to a compiled function of a row"
            raise TypeError(f"class {cls.__name__}: point={function!r}; accepted: {accepted}")
        cls._pixel_function = PixelFunction(function, cls.__name__)
