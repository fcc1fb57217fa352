"""Pipelines of other libraries as Python text: one expression, which is parsed and never run.

The expression consists of calls of transforms, literals, and names that the text assigns once to literals. Imports say
which library a name is from. Anything else is an error that names its line. Within a transform, a value that only a run
would know (such as ``args.size``) refuses that transform alone.
"""

from __future__ import annotations

import ast
import dataclasses
import textwrap
import warnings
from collections.abc import Iterator, Set
from typing import Any, NoReturn

from variegate.errors import PolicyError
from variegate.interop.convert import torchvision
from variegate.interop.convert.albumentations import CLASSES, COMPOSITIONS, from_albumentations
from variegate.interop.convert.albumentations_rules import REFUSED
from variegate.interop.convert.report import ConversionError, ConversionReport, ConversionWarning, parameters
from variegate.interop.convert.timm import from_timm
from variegate.ops.base import Transform
from variegate.ops.description import from_dict

MAX_CHARACTERS = 100_000
_ACCEPTED = "Python that calls transforms of torchvision, Albumentations, timm or Variegate"
_ONE = "one pipeline, of literals and names that are assigned once to literals: paste that expression alone"
# What names mean in texts without imports. Other names belong to the library that has the most of the classes.
_USUAL_NAMES = {
    "A": "albumentations",
    "transforms": "torchvision",
    "v2": "torchvision",
    "nn": "torch",
    "vg": "variegate",
}
_LIBRARIES: dict[str, Set[str]] = {
    "torchvision": {*torchvision.CONVERTED, *torchvision.REFUSED, "Sequential", "ModuleList"},
    "albumentations": CLASSES,
    "variegate": set(Transform.registry),
    "timm": {"create_transform"},
}
_ENUMERATIONS = ("InterpolationMode", "AutoAugmentPolicy", "Image", "Resampling", "torch")
# Names of cv2, in the order of their codes.
_CV2_BORDERS = ("BORDER_CONSTANT", "BORDER_REPLICATE", "BORDER_REFLECT", "BORDER_WRAP", "BORDER_REFLECT_101")
_CV2_INTERPOLATIONS = ("INTER_NEAREST", "INTER_LINEAR", "INTER_CUBIC", "INTER_AREA", "INTER_LANCZOS4")
# Arguments of Albumentations that people give without their names.
_POSITIONS = {
    "BboxParams": ("format",),
    "KeypointParams": ("format",),
    "Normalize": ("mean", "std"),
    "Resize": ("height", "width"),
    "RandomCrop": ("height", "width"),
    "CenterCrop": ("height", "width"),
    "PadIfNeeded": ("min_height", "min_width"),
    "RandomResizedCrop": ("size",),
    "LongestMaxSize": ("max_size",),
    "SmallestMaxSize": ("max_size",),
}
# Ranges of Albumentations for which a number means (-number, number). Numbers for other ranges are refused.
_SYMMETRIC = (
    "limit shift_limit scale_limit rotate_limit brightness_limit contrast_limit distort_limit hue_shift_limit "
    "sat_shift_limit val_shift_limit r_shift_limit g_shift_limit b_shift_limit"
)


@dataclasses.dataclass(frozen=True)
class Unread:
    """An expression whose value only a run would know."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self.text} is no literal")


@dataclasses.dataclass(frozen=True)
class Call:
    """A call in the text. ``library``: where its name is from, or "" if the text does not say it."""

    library: str
    name: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    text: str

    def __repr__(self) -> str:
        return self.text

    def bind(self, names: tuple[str, ...]) -> dict[str, Any]:
        """All arguments by name: positional ones are named by ``names``."""
        if len(self.arguments) > len(names):
            raise ConversionError(self.name, self.text, "arguments by their names")
        return {**dict(zip(names, self.arguments, strict=False)), **self.named}


def from_python(text: str) -> tuple[Transform, ConversionReport]:
    """Convert the pipeline in ``text``, with its report; refused transforms are skipped.

    Raises ConversionError for text without a pipeline, and for statements other than imports, assignments of literals
    and one pipeline.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConversionError("text", f"{len(text):,} characters", f"at most {MAX_CHARACTERS:,}")
    try:
        call = _read(ast.parse(textwrap.dedent(text)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConversionWarning)  # the report says it
            return _convert(call)
    except SyntaxError as error:
        raise ConversionError(f"line {error.lineno}", (error.text or "").strip(), f"Python ({error.msg})") from None
    except ConversionError:
        raise
    except PolicyError as error:  # of a pipeline of Variegate
        raise ConversionError(error.where, error.got, error.accepted) from error
    except (ValueError, TypeError, LookupError, RecursionError, MemoryError) as error:
        raise ConversionError("text", str(error) or "too deeply nested", _ACCEPTED) from None


def _read(tree: ast.Module) -> Call:
    """The pipeline of a text."""
    libraries = {name: name for name in (*_LIBRARIES, "torch")} | _USUAL_NAMES
    literals: dict[str, Any] = {}
    pipelines: list[ast.expr] = []
    for node in tree.body:
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    root = alias.name.partition(".")[0]
                    libraries[alias.asname or root] = root
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                for alias in aliases:
                    libraries[alias.asname or alias.name] = module.partition(".")[0]
            case ast.Expr(value=value) | ast.Assign(targets=[ast.Name()], value=value) if _has_call(value):
                pipelines.append(value)
            case ast.Expr(value=ast.List() | ast.Tuple() as value):
                pipelines.append(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in literals:
                literals[name] = _value(value, literals, libraries)
            case _:
                raise ConversionError(f"line {node.lineno}", ast.unparse(node).partition("\n")[0], _ONE)
    if len(pipelines) > 1:
        second = pipelines[1]
        raise ConversionError(f"line {second.lineno}", ast.unparse(second).partition("\n")[0], _ONE)
    pipeline = _value(pipelines[0], literals, libraries) if pipelines else None
    if isinstance(pipeline, (list, tuple)):
        return Call("", "Compose", (list(pipeline),), {}, "a list")
    if not isinstance(pipeline, Call):
        raise ConversionError("text", pipeline, _ACCEPTED)
    return pipeline


def _has_call(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _value(node: ast.expr, literals: dict[str, Any], libraries: dict[str, str]) -> Any:
    """A literal, a ``Call``, or ``Unread``; lists, tuples and dicts of these."""

    def read(part: ast.expr) -> Any:
        return _value(part, literals, libraries)

    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=parts):
            return [read(part) for part in parts]
        case ast.Tuple(elts=parts):
            return tuple(read(part) for part in parts)
        case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
            return {read(key): read(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.Name(id=name) if name in literals:
            return literals[name]
        case ast.Attribute(attr=name) if name in _CV2_BORDERS:
            return _CV2_BORDERS.index(name)
        case ast.Attribute(attr=name) if name in _CV2_INTERPOLATIONS:
            return _CV2_INTERPOLATIONS.index(name)
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name) if owner in _ENUMERATIONS:
            return name.lower()
        case ast.Call(func=function, args=arguments, keywords=keywords):
            path = ast.unparse(function).split(".")
            named = {keyword.arg or "**": read(keyword.value) for keyword in keywords}
            positional = tuple(read(argument) for argument in arguments)
            return Call(libraries.get(path[0], ""), path[-1], positional, named, ast.unparse(node))
    return Unread(ast.unparse(node))


def _convert(call: Call) -> tuple[Transform, ConversionReport]:
    library = _library_of(call)
    if library == "albumentations":
        return from_albumentations(_to_description(call), report=True)
    if library == "torchvision":
        return torchvision.from_torchvision(_to_object(call), report=True)
    if library == "timm":
        converted: Transform = from_timm(**call.bind(("input_size", "is_training")))
    else:
        converted = from_dict(_to_own_description(call), call.name)
    return converted, ConversionReport((call.name,), {}, {})


def _library_of(call: Call) -> str:
    """Find the library by the imports, or else by the number of known classes."""
    calls = list(_calls(call))
    named = {"torchvision" if each.library == "torch" else each.library for each in calls} - {""}
    if len(named) > 1:
        raise ConversionError("text", " and ".join(sorted(named)), "transforms of one library")
    counts = {library: sum(each.name in names for each in calls) for library, names in _LIBRARIES.items()}
    library = named.pop() if named else max(counts, key=counts.__getitem__)
    if not counts.get(library):
        raise ConversionError("text", call, _ACCEPTED)
    return library


def _calls(value: Any) -> Iterator[Call]:
    if isinstance(value, Call):
        yield value
        value = (*value.arguments, *value.named.values())
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _calls(each)


def _to_description(value: Any) -> Any:
    """Convert to the form of Albumentations' ``to_dict()``."""
    if isinstance(value, (list, tuple)):
        return [_to_description(each) for each in value]
    if not isinstance(value, Call):
        return value
    if value.name in REFUSED or value.name not in _LIBRARIES["albumentations"] | _POSITIONS.keys():
        return {"__class_fullname__": value.name}  # refused by its name
    positions = ("transforms", "p") if value.name in COMPOSITIONS else _POSITIONS.get(value.name, ())
    named = {name: _to_description(each) for name, each in value.bind(positions).items()}
    if value.name in ("BboxParams", "KeypointParams"):
        return named
    for name in _SYMMETRIC.split():
        if isinstance(named.get(name), (int, float)):
            named[name] = [-named[name], named[name]]
    return {**named, "__class_fullname__": value.name}


def _to_object(value: Any) -> Any:
    """Convert to the form of torchvision's object: a class of that name, with an attribute for each argument."""
    if isinstance(value, (list, tuple)):
        return type(value)(_to_object(each) for each in value)
    if not isinstance(value, Call):
        return value
    name = value.name
    made = type(name, (), {"__module__": "torchvision.transforms", "__repr__": lambda self: value.text})()
    cls = Transform.registry.get(name)
    if name == "Sequential":
        given: dict[str, Any] = {"transforms": value.arguments}
    elif name == "ModuleList":
        given = value.bind(("transforms",))
    elif name in torchvision.REFUSED or cls is None:
        given = {}
    else:
        given = value.bind((*parameters(cls), "inplace"))
        given.pop("inplace", None)
    if cls is not None and name not in torchvision.SAME - {"RandomErasing"}:
        # Attributes that the converter reads from every object.
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            setattr(made, field.name, None if field.default is dataclasses.MISSING else field.default)
    if not isinstance(given.get("transforms", []), (list, tuple, Call)):
        raise ConversionError(f"{name}.transforms", given["transforms"], "a list of transforms")
    for argument, each in given.items():
        setattr(made, argument, _to_object(each))
    if isinstance(given.get("transforms"), Call):  # a ModuleList
        made.transforms = made.transforms.transforms
    return made


def _to_own_description(value: Any) -> Any:
    """Convert to the form of ``to_dict`` of Variegate's transforms."""
    if isinstance(value, (list, tuple)):
        return [_to_own_description(each) for each in value]
    if not isinstance(value, Call):
        return value
    cls = Transform.registry.get(value.name)
    named = value.bind(parameters(cls) if cls else ())
    if "type" in named:
        raise ConversionError(f"{value.name}.type", named["type"], "arguments of the class")
    return {"type": value.name, **{name: _to_own_description(each) for name, each in named.items()}}
