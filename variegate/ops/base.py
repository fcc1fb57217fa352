"""Transforms: frozen records of arguments that draw the chances of a batch and emit instructions."""

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

# What runs a transform that is called stands far above what describes one, and brings torch along, so that it is looked
# up by its name when somebody calls one.
_CALLED_BY = "variegate.interop.one_sample"


def set_field(owner: object, name: str, value: Any) -> None:
    """Store a normalized argument on a frozen dataclass, from its ``__post_init__``."""
    object.__setattr__(owner, name, value)


_NO_DEFAULT = object()
_NOT_PICKLED = ("_alone", "_drawn", "_records")


class TypicalRange(NamedTuple):
    """The part of an operation's range that is of use, from ``low`` to ``high``, of the class's number or of ``make``'s
    argument. ``identity``: the argument that leaves every image as it is. ``unit``: "shorter" for fractions of the
    image's shorter side. ``spread(low, high, count)``: arguments as far apart as each other."""

    low: float
    high: float
    identity: float | None = None
    build: Callable[[float], Any] | None = None
    spacing: Callable[[float, float, int], Any] = np.linspace
    unit: str | None = None


class Recorded:
    """An image without pixels, which records what is done to it: that of a pipeline's function
    (``variegate/pipelines``)."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        raise NotImplementedError(f"{type(self).__name__} does not define shape")

    def through(self, transform: Transform, others: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The image after a transform that is called with it."""
        raise NotImplementedError(f"{type(self).__name__} does not define through()")

    def after(self, device: str, op: Op, args: Sequence[float], flags: int, fill: Any, size: Any) -> Any:
        """The image after one instruction of a function of ``variegate.transforms.functional``."""
        raise NotImplementedError(f"{type(self).__name__} does not define after()")

    def function_recorder(self) -> ScalarDraw:
        """The recorder of several instructions."""
        raise NotImplementedError(f"{type(self).__name__} does not define function_recorder()")

    def recorded(self, recorder: ScalarDraw, device: str, output: Output) -> Any:
        """The image after these instructions."""
        raise NotImplementedError(f"{type(self).__name__} does not define recorded()")

    def noise_slot(self) -> int:
        """The slot of the noise of a function."""
        raise NotImplementedError(f"{type(self).__name__} does not define noise_slot()")

    def refuse_pixels(self, what: str) -> NoReturn:
        """Raise an error that names ``what`` needs pixels."""
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
    # Of a function of ``variegate.transforms.functional``, the class that declares it.
    functions: ClassVar[dict[str, type[Transform]]] = {}
    # By argument, its default and the form that is kept of it: pipelines make transforms for every image.
    _known_defaults: ClassVar[dict[str, tuple[Any, Any]]] = {}
    # Names of the function of this class.
    _functions: ClassVar[Sequence[str]] = ()
    # The function's names of the class's arguments, if they differ; None for arguments that it does not have.
    _called: ClassVar[Mapping[str, str | None]] = {}
    # The argument that follows ``device`` in the function.
    _after_device: ClassVar[Sequence[str]] = ()
    num_slots: int = 0
    # It defines ``draw``, which is recorded once; else ``sample``, which runs for every batch.
    _is_recorded: ClassVar[bool] = True
    # Likewise ``emit_at``, else ``emit_magnitude``.
    _is_magnitude_recorded: ClassVar[bool] = True
    # Of the tree that this is the root of: how many transforms, and how many within one another.
    _tree_size: int = 1
    # The transform of this tree that decides about the format in which all images of a batch leave, if one does; and
    # what to do where that would be by chance.
    _format_setter: Transform | None = None
    _format_advice: ClassVar[str] = ""
    _tree_depth: int = 1
    # Whether this tree changes bytes; and the transform in it that makes finished numbers of them, after which nothing
    # may change bytes.
    _changes_bytes: bool = True
    _final_op: Transform | None = None
    # It makes several images of each, and can be part of no other transform.
    _must_be_root: ClassVar[bool] = False
    # Whether this tree makes several rows of an image.
    _makes_rows: bool = False
    # Those of this tree that mix an image with others.
    _mixers: tuple[Any, ...] = ()
    # Classes of objects that this tree asks for.
    _object_labels: tuple[int | str, ...] = ()
    # Where no published policy has a range of it.
    _typical_range: ClassVar[TypicalRange | None] = None
    # Arguments that descriptions hold even at their default, because that default was another one once.
    _always_described: ClassVar[tuple[str, ...]] = ()
    # Arguments that take paths or addresses, in Python calls alone: nothing that a description names is opened.
    _path_args: ClassVar[tuple[str, ...]] = ()
    # What the annotations of this class and its bases accept, by the names of the arguments.
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
        # Which of two methods a class defines, the last one in its line of bases.
        if "sample" in cls.__dict__ or "draw" in cls.__dict__:
            cls._is_recorded = "draw" in cls.__dict__
            if cls._is_recorded and "sample" not in cls.__dict__:
                cls.sample = Transform.sample  # type: ignore[method-assign]
        if "emit_magnitude" in cls.__dict__ or "emit_at" in cls.__dict__:
            cls._is_magnitude_recorded = "emit_at" in cls.__dict__
        # Before the dataclass decorator, which would write one of its own that lists every argument.
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

        In place of ``draw``, for what only arrays of a whole batch can say; it runs for every batch.
        """
        # A subclass that defines ``sample`` may call this one.
        drawn = self if self._is_recorded else self.__dict__.setdefault("_drawn", DrawOf(self))
        record_of(drawn, sampling.output, sampling.num_channels, sampling.epoch).run(sampling, rows, slot)

    def draw(self, image: DrawContext, slot: int) -> None:
        """Draw numbers of ``image`` and emit its instructions, using slots ``slot .. slot + num_slots - 1``.

        Runs once, on symbols, and is recorded. A draw that needs the numbers themselves, such as for an ``if``, runs
        for one image after another instead.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define draw()")

    def __call__(self, image: Any, *others: Any, targets: Any = None, **named: Any) -> Any:
        """Augment one image, as torchvision's transforms do: ``ImageFolder(root, transform=t)``.

        A sample is also accepted: ``t({"image": image, "boxes": boxes, "labels": labels})``.

        Args:
            image: a PIL image of any mode (gray ones keep one channel); a uint8 array [H, W, 3], [H, W, 1] or [H, W]; a
                uint8 tensor [C, H, W] or [H, W]; or the bytes of an image file. Or a dict of an "image" and its
                targets, as for ``vg.Augmenter``; or a list or tuple of an image and ``others``.
            others: targets of the image: a dict without it; torchvision's ``BoundingBoxes``, ``Mask`` or ``KeyPoints``;
                labels, paths and the like, which are returned unchanged.
            targets: ``vg.Targets``: how to read and filter these.

        Returns:
            A CPU tensor [C, H, W]: float32 if the transform normalizes, else uint8. For a dict, a dict; with
            ``others``, a tuple of the image and each of them.

        Random numbers follow from seed 0, epoch 0 and a running count, which all transforms of a process share. In a
        DataLoader worker, the count starts at a random place, so that neither workers nor epochs repeat each other.
        ``vg.as_transform`` takes a seed, an epoch and ids. For batches, ``vg.Augmenter`` and ``vg.Collate`` are several
        times faster.

        Raises:
            TypeError, ValueError: naming what was given and what is accepted; no ``named`` arguments are.
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
        """The call that makes it, without the arguments that have their default."""
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
        return {name: value for name, value in self.__dict__.items() if name not in _NOT_PICKLED}

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
        except (TypeError, ValueError):  # there is none, or one that stands for the class's own choice
            known[name] = _NO_DEFAULT, None
    cls._known_defaults = known  # whole, as other threads may make one now
    return known


def refuse_views(transform: Any, argument: str) -> None:
    """Raises ValueError for a transform that makes several images of each, where there is no place for them."""
    if getattr(transform, "_must_be_root", False):
        raise ValueError(
            f"{argument}: got a {type(transform).__name__}, which makes several images of each; accepted here: a "
            "transform that makes one, such as one of those in it"
        )


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    return field.default is not dataclasses.MISSING and type(value) is type(field.default) and value == field.default


def _shown_argument(value: Any) -> str:
    """Lists of transforms as they were written."""
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
