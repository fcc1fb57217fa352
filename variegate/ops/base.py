"""Transforms: frozen dataclasses of arguments, which draw random numbers for a batch and emit instructions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from variegate.ops.arguments import ArgumentError
from variegate.ops.schema import Argument, arguments_of_class
from variegate.program.draws.record import DrawOf, record_of
from variegate.program.draws.recorder import DrawContext
from variegate.program.ops import Op
from variegate.program.program import Output
from variegate.program.sampling import Rows, Sampling
from variegate.program.scalar_draw import ScalarDraw

# Module that runs a transform when it is called. Imported by name on the first call, because it depends on this module
# and imports torch.
_CALLED_BY = "variegate.interop.one_sample"


def set_field(owner: object, name: str, value: Any) -> None:
    """Store a normalized argument on a frozen dataclass, from its ``__post_init__``."""
    object.__setattr__(owner, name, value)


_NO_DEFAULT = object()
_NOT_PICKLED = ("_alone", "_drawn", "_records")


class TypicalRange(NamedTuple):
    """Useful range of an operation's magnitude, for tests, pictures and ``preview --sweep``.

    Attributes:
        low, high: ends of the range, in the unit of the class's magnitude or of ``build``'s argument.
        identity: the value at which images do not change; None if there is no such value.
        build: creates the transform from a value of the range; None: pass the value as the magnitude.
        spacing: ``spacing(low, high, count)`` returns perceptually equidistant values, ``np.linspace`` by default.
        unit: "shorter" if values are fractions of the image's shorter side; None otherwise.
    """

    low: float
    high: float
    identity: float | None = None
    build: Callable[[float], Any] | None = None
    spacing: Callable[[float, float, int], Any] = np.linspace
    unit: str | None = None


class Recorded:
    """Base class of symbolic images, which record transforms and functions that a pipeline (``variegate/pipelines``)
    applies to them."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        raise NotImplementedError(f"{type(self).__name__} does not define shape")

    def through(self, transform: Transform, others: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Record a call of ``transform`` with this image. Returns the resulting image."""
        raise NotImplementedError(f"{type(self).__name__} does not define through()")

    def after(self, device: str, op: Op, args: Sequence[float], flags: int, fill: Any, size: Any) -> Any:
        """Record one instruction of a function of ``variegate.transforms.functional``. Returns the resulting image."""
        raise NotImplementedError(f"{type(self).__name__} does not define after()")

    def function_recorder(self) -> ScalarDraw:
        """Return a recorder for a function of several instructions, to pass to ``recorded``."""
        raise NotImplementedError(f"{type(self).__name__} does not define function_recorder()")

    def recorded(self, recorder: ScalarDraw, device: str, output: Output) -> Any:
        """Record the instructions of ``recorder``. Returns the resulting image."""
        raise NotImplementedError(f"{type(self).__name__} does not define recorded()")

    def noise_slot(self) -> int:
        """Return the slot of random numbers for a function that adds noise."""
        raise NotImplementedError(f"{type(self).__name__} does not define noise_slot()")

    def refuse_pixels(self, what: str) -> NoReturn:
        """Raise the error for ``what``, an operation that needs pixels."""
        raise NotImplementedError(f"{type(self).__name__} does not define refuse_pixels()")


class Transform:
    """Base class of all transforms: frozen dataclasses whose fields are the arguments of their constructors.

    These arguments have the same meaning in every transform that takes them:

    Args:
        p: probability of applying the transform to an image, 0 to 1.
        interpolation: "nearest", "bilinear" or "bicubic", also as a torchvision ``InterpolationMode`` or Pillow's code.
            Resizes accept "box", "hamming" and "lanczos" as well.
        fill: color of pixels that the transform leaves empty or erases: a level from 0 to 255, three of them (red,
            green, blue), or None for black. Policies with None take the color of their magnitude space.
        antialias: for torchvision's signature. All interpolations but "nearest" are antialiased, whatever it says, as
            torchvision does for PIL images.
        inplace: for torchvision's signature; images are never changed in place.
        size: of an output: (height, width) in pixels, or one integer for a square, unless the transform says otherwise.

    An argument of type ``Number`` ("a number or a range") is a constant, or a pair (low, high) from which each image
    draws uniformly. An argument out of range raises ArgumentError.
    """

    registry: ClassVar[dict[str, type[Transform]]] = {}
    # {name of a function of ``variegate.transforms.functional``: the class that declares it}
    functions: ClassVar[dict[str, type[Transform]]] = {}
    # {argument: (default, converted default)}. Cached, because pipelines create transforms for every image.
    _known_defaults: ClassVar[dict[str, tuple[Any, Any]]] = {}
    # Names of the class's function, aliases included.
    _functions: ClassVar[Sequence[str]] = ()
    # {argument of the class: its different name in the function, None if the function lacks it}
    _called: ClassVar[Mapping[str, str | None]] = {}
    # Arguments that follow ``device`` in the function's signature.
    _after_device: ClassVar[Sequence[str]] = ()
    num_slots: int = 0
    # True if the class defines ``draw``, which is recorded once; False for ``sample``, which runs for every batch.
    _is_recorded: ClassVar[bool] = True
    # True if the class defines ``emit_at``, which is recorded; False for ``emit_magnitude``.
    _is_magnitude_recorded: ClassVar[bool] = True
    # Number of transforms, and nesting depth (``_tree_depth``), of the tree whose root is this transform.
    _tree_size: int = 1
    # The transform of this tree that sets the output format of a batch; None if no transform does. ``_format_advice``:
    # its hint in the error for a random choice, because a batch has one format.
    _format_setter: Transform | None = None
    _format_advice: ClassVar[str] = ""
    _tree_depth: int = 1
    # Whether this tree changes pixels before normalization. ``_final_op``: the transform in it that converts pixels to
    # the final values, after which no transform may change pixels.
    _changes_bytes: bool = True
    _final_op: Transform | None = None
    # Whether the transform returns several images per image. It cannot be part of another transform then.
    _must_be_root: ClassVar[bool] = False
    # Whether this tree blends several rows per image.
    _makes_rows: bool = False
    # Transforms of this tree that mix an image with other samples.
    _mixers: tuple[Any, ...] = ()
    # Classes of objects on which this tree depends.
    _object_labels: tuple[int | str, ...] = ()
    # Set for operations without a range in a published policy.
    _typical_range: ClassVar[TypicalRange | None] = None
    # Arguments that ``to_dict`` always includes, because their default has changed between versions.
    _always_described: ClassVar[tuple[str, ...]] = ()
    # Arguments that accept paths or addresses in Python calls only. Descriptions may not, for security: loading a
    # description opens no files.
    _path_args: ClassVar[tuple[str, ...]] = ()
    # {argument: accepted values}, from the annotations of this class and its bases.
    _arguments: ClassVar[Mapping[str, Argument]] = {}

    def __init_subclass__(
        cls, abstract: bool = False, function: str = "", called: Mapping[str, str | None] | None = None, **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls._functions, cls._called = function.split(), called or {}
        Transform.functions |= dict.fromkeys(cls._functions, cls)
        cls._arguments = {
            name: argument
            for base in reversed(cls.__mro__[1:])
            for name, argument in base.__dict__.get("_arguments", {}).items()
        } | arguments_of_class(cls)
        cls._known_defaults = {}
        # A class that defines one of two alternative methods overrides the choice of its bases.
        if "sample" in cls.__dict__ or "draw" in cls.__dict__:
            cls._is_recorded = "draw" in cls.__dict__
            if cls._is_recorded and "sample" not in cls.__dict__:
                cls.sample = Transform.sample  # type: ignore[method-assign]
        if "emit_magnitude" in cls.__dict__ or "emit_at" in cls.__dict__:
            cls._is_magnitude_recorded = "emit_at" in cls.__dict__
        # Set before the dataclass decorator runs, which would otherwise generate a ``__repr__`` with all arguments.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]
        if not abstract and not cls.__name__.startswith("_"):
            Transform.registry[cls.__name__] = cls

    def __post_init__(self) -> None:
        known = self._known_defaults or _learn_defaults(type(self))
        for name, argument in self._arguments.items():
            value = getattr(self, name)
            default, kept = known[name]
            if value is not default:
                kept = argument.check(name, value, error=partial(ArgumentError, self))
            if kept is not value:
                object.__setattr__(self, name, kept)
        if self._format_advice:
            object.__setattr__(self, "_format_setter", self)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        """Draw and emit for ``rows`` (indices into the batch) using slots ``slot .. slot + num_slots - 1``.

        An alternative to ``draw`` for transforms that compute with arrays of the full batch. It runs for every batch.
        """
        # A subclass that defines ``sample`` may call this method.
        drawn = self if self._is_recorded else self.__dict__.setdefault("_drawn", DrawOf(self))
        record_of(drawn, sampling.output, sampling.num_channels, sampling.epoch).run(sampling, rows, slot)

    def draw(self, image: DrawContext, slot: int) -> None:
        """Draw random numbers of ``image`` and emit instructions, using slots ``slot .. slot + num_slots - 1``.

        Runs once with symbols and is recorded. A ``draw`` that needs concrete numbers, such as for an ``if``, runs for
        each image instead.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define draw()")

    def __call__(self, image: Any, *others: Any, targets: Any = None, **named: Any) -> Any:
        """Augment one image, as torchvision's transforms do: ``ImageFolder(root, transform=t)``.

        A sample is also accepted: ``t({"image": image, "boxes": boxes, "labels": labels})``.

        Args:
            image: a PIL image of any mode (gray ones keep one channel); an array [H, W, 3], [H, W, 1] or [H, W]; a
                tensor [C, H, W] or [H, W]; or the bytes of an image file. Or a dict of an "image" and its
                targets, as for ``vg.Augmenter``; or a list or tuple of an image and ``others``.
            others: targets of the image: a dict without it; torchvision's ``BoundingBoxes``, ``Mask`` or ``KeyPoints``;
                or any other objects, such as labels and paths, which are returned unchanged.
            targets: ``vg.Targets``: how to read and filter targets.

        Returns:
            A CPU tensor [C, H, W]: float32 if the transform normalizes, else of the image's dtype. For a dict, a dict;
            with ``others``, a tuple of the image and each of them.

        Random numbers follow from seed 0, epoch 0 and a running count, which all transforms of a process share. In a
        DataLoader worker, the count starts at a random place, so that neither workers nor epochs repeat each other.
        ``vg.as_transform`` takes a seed, an epoch and ids. For batches, ``vg.Augmenter`` and ``vg.Collate`` are several
        times faster.

        Raises:
            TypeError, ValueError: for an image or targets that are not accepted, and for any ``named`` argument.
        """
        if isinstance(image, Recorded):
            return image.through(self, others, {})
        if named:
            accepted = (
                "image, targets; what belongs to the image in one dict with it, t({'image': image, 'mask': mask})"
            )
            raise TypeError(f"{type(self).__name__}: got {', '.join(named)}=; accepted: {accepted}")
        return import_module(_CALLED_BY).augment_one(self, image, others, targets)

    def __repr__(self) -> str:
        """Return the call that creates this transform, without arguments at their default."""
        arguments = []
        is_positional = True
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name, None)
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            is_positional = is_positional and required
            if field.init and (required or not _is_default(field, value)):
                shown_as = _shown_argument(value)
                arguments.append(shown_as if is_positional else f"{field.name}={shown_as}")
        return f"{type(self).__name__}({', '.join(arguments)})"

    def __getstate__(self) -> dict[str, Any]:
        # A copy, because another thread may be adding a record.
        return {name: value for name, value in self.__dict__.copy().items() if name not in _NOT_PICKLED}

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-compatible description, ``{"type": name, argument: value, ...}``, without default values."""
        described: dict[str, Any] = {"type": type(self).__name__}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if not field.init or (_is_default(field, value) and field.name not in self._always_described):
                continue
            described[field.name] = _plain(value)
        return described


def _learn_defaults(cls: type[Transform]) -> dict[str, tuple[Any, Any]]:
    known: dict[str, tuple[Any, Any]] = {}
    for name, argument in cls._arguments.items():
        default = getattr(cls, name, _NO_DEFAULT)
        try:
            known[name] = default, argument.check(name, default)
        except (TypeError, ValueError):  # no default, or a default that only ``__post_init__`` can interpret
            known[name] = _NO_DEFAULT, None
    cls._known_defaults = known  # assigned in one step, because other threads may do the same now
    return known


def refuse_views(transform: Any, argument: str) -> None:
    """Raise ValueError for a transform that returns several images per image, where one is required."""
    if getattr(transform, "_must_be_root", False):
        raise ValueError(
            f"{argument}: got a {type(transform).__name__}, which makes several images of each; accepted here: a "
            "transform that makes one, such as one of those in it"
        )


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    return field.default is not dataclasses.MISSING and type(value) is type(field.default) and value == field.default


def _shown_argument(value: Any) -> str:
    """Format an argument for ``__repr__``: lists of transforms, stored as tuples, are shown as lists."""
    return f"[{', '.join(map(_shown_argument, value))}]" if _are_transforms(value) else repr(value)


def _are_transforms(value: Any) -> bool:
    is_list = isinstance(value, tuple) and bool(value)
    return is_list and all(isinstance(each, Transform) or _are_transforms(each) for each in value)


def _plain(value: Any) -> Any:
    if isinstance(value, Transform):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value
