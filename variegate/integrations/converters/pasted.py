"""Pipelines of other libraries as Python text, which is parsed and never run."""

from __future__ import annotations

import ast
import dataclasses
import operator
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from variegate.integrations.converters import albumentations_table, torchvision
from variegate.integrations.converters.albumentations import COMPOSITIONS, from_albumentations
from variegate.integrations.converters.report import ConversionError, ConversionReport, ConversionWarning, parameters
from variegate.integrations.converters.timm import from_timm
from variegate.ops.base import Transform
from variegate.ops.description import from_dict

MOST_CHARACTERS = 100_000
_ACCEPTED = "Python that calls transforms of torchvision, Albumentations, timm or Variegate"
# By what people import them as, where the text has no import.
_USUAL = {
    "A": "albumentations",
    "transforms": "torchvision.transforms",
    "v2": "torchvision.transforms",
    "vg": "variegate",
}
_USUAL |= {"nn": "torch.nn", "tv": "torchvision", "timm": "timm", "create_transform": "timm.data.create_transform"}
_NUMBERS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_CV2 = {"INTER_NEAREST": 0, "INTER_LINEAR": 1, "INTER_CUBIC": 2, "INTER_AREA": 3, "INTER_LANCZOS4": 4}
_CV2 |= {"BORDER_CONSTANT": 0, "BORDER_REPLICATE": 1, "BORDER_REFLECT": 2, "BORDER_WRAP": 3, "BORDER_REFLECT_101": 4}
# Albumentations' arguments that are given without their names.
_IN_ORDER: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("Sequential", "OneOf"), ("transforms", "p")),
    **dict.fromkeys(("SomeOf", "RandomOrder"), ("transforms", "n", "replace", "p")),
    **dict.fromkeys(("HorizontalFlip", "VerticalFlip", "Transpose", "NoOp", "D4"), ("p",)),
    "Compose": ("transforms", "bbox_params", "keypoint_params"),
    **dict.fromkeys(("Resize", "RandomCrop", "CenterCrop"), ("height", "width")),
    **{"Normalize": ("mean", "std"), "BboxParams": ("format", "label_fields"), "KeypointParams": ("format",)},
    **{"LongestMaxSize": ("max_size",), "SmallestMaxSize": ("max_size",), "RandomResizedCrop": ("size",)},
}


# Arguments of which a number is the end of a range from 3 on.
_FROM_3 = [(name, "blur_limit") for name in ("Blur", "MedianBlur", "MotionBlur")]


@dataclasses.dataclass(frozen=True)
class _WrittenText:
    """Code that stands for no value: a function, or a name of elsewhere. ``path``: of a dotted name."""

    text: str
    path: str = ""

    def __repr__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class _WrittenCall:
    """A call as it is written. ``path``: the dotted name of what is called, behind its import."""

    path: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    line: int

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def library(self) -> str:
        home, name = self.path.partition(".")[0], self.name
        if home in ("albumentations", "timm", "variegate"):
            return home
        if home in ("torchvision", "torch") or name in torchvision.known() | set(torchvision.REFUSED):
            return "torchvision"
        if name in albumentations_table.RULES or name in COMPOSITIONS:
            return "albumentations"
        return "variegate" if name in Transform.registry else ""

    def bound(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Arguments by their names. Raises ConversionError."""
        if len(self.arguments) > len(names):
            got = self.arguments[len(names)]
            raise ConversionError(f"line {self.line}: {self.name}", got, "arguments by their names")
        return {**dict(zip(names, self.arguments, strict=False)), **self.named}


def from_python(text: str) -> tuple[Transform, ConversionReport]:
    """Convert the first pipeline that ``text`` writes down, whole, with its report; refused transforms are skipped.

    Constants, lists, names that are assigned above, and calls of transforms are read; nothing is run or imported.
    Raises ConversionError for text without a pipeline, and where the whole of it cannot be converted.
    """
    if len(text) > MOST_CHARACTERS:
        raise ConversionError("text", f"{len(text):,} characters", f"at most {MOST_CHARACTERS:,}")
    try:
        tree = ast.parse(text)
        pipelines = list(_WrittenNames().pipelines(tree.body))
    except SyntaxError as error:
        raise ConversionError(f"line {error.lineno}", (error.text or "").strip(), f"Python ({error.msg})") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ConversionError("text", str(error) or "too deeply nested", _ACCEPTED) from None
    if not pipelines:
        raise ConversionError("text", text.strip()[:60], _ACCEPTED)
    call = pipelines[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConversionWarning)
        if call.library == "albumentations":
            return from_albumentations(_described(call), report=True)
        if call.library == "torchvision":
            return torchvision.from_torchvision(_object(call), report=True)
        if call.library == "variegate":
            return from_dict(_own(call), call.name), ConversionReport((call.name,), {}, {})
        converted = from_timm(**call.bound(("input_size", "is_training")))
    close = tuple(f": {each.message}" for each in caught)
    return converted, ConversionReport(() if close else (call.name,), {call.name: close} if close else {}, {})


class _WrittenNames:
    """Values of a text's names, by its imports and assignments."""

    def __init__(self) -> None:
        self._paths, self._values = dict(_USUAL), dict[str, Any]()
        self._used: set[int] = set()  # calls that are part of others

    def pipelines(self, body: list[ast.stmt]) -> Iterator[_WrittenCall]:
        """Calls of transforms that no other is made of, in order."""
        found = [call for value in self._statements(body) for call in _pipelines(value)]
        return (call for call in found if id(call) not in self._used)

    def _statements(self, body: list[ast.stmt]) -> Iterator[Any]:
        for node in body:
            if isinstance(node, ast.Import):
                self._paths |= {one.asname or one.name.partition(".")[0]: one.name for one in node.names}
            elif isinstance(node, ast.ImportFrom):
                self._paths |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                value = self._value(node.value)
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._assign(target, value)
                yield value
            elif isinstance(node, (ast.Expr, ast.Return)) and node.value is not None:
                yield self._value(node.value)
            for inner in ("body", "orelse"):
                yield from self._statements(getattr(node, inner, []))

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self._values[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (tuple, list)):
            for each, part in zip(target.elts, value, strict=False):
                self._assign(each, part)

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                made = [self._value(each) for each in parts]
                return made if isinstance(node, ast.List) else tuple(made)
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {key.value: self._value(each) for key, each in pairs if isinstance(key, ast.Constant)}
            case ast.UnaryOp(op=ast.USub(), operand=operand) if isinstance(value := self._value(operand), (int, float)):
                return -value
            case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _NUMBERS:
                ends = self._value(left), self._value(right)
                if all(type(each) in (int, float) for each in ends) and not (type(kind) is ast.Div and ends[1] == 0):
                    return _NUMBERS[type(kind)](*ends)
            case ast.Name(id=name) if name in self._values:
                return self._values[name]
            case ast.Name() | ast.Attribute():
                path = self._path(node)
                constant = _CV2.get(path.removeprefix("cv2."))
                return _WrittenText(ast.unparse(node), path) if constant is None else constant
            case ast.Call(func=func, args=args, keywords=keywords):
                return self._call(node, self._path(func), args, keywords)
        return _WrittenText(ast.unparse(node))

    def _call(self, node: ast.Call, path: str, args: list[ast.expr], keywords: list[ast.keyword]) -> Any:
        given = tuple(self._value(each) for each in args)
        if path.rpartition(".")[2] in ("tensor", "array", "list", "tuple") and len(given) == 1:
            return given[0]
        named = {each.arg: self._value(each.value) for each in keywords if each.arg is not None}
        call = _WrittenCall(path, given, named, node.lineno)
        is_read = len(named) == len(keywords) and not any(isinstance(each, ast.Starred) for each in args)
        if not is_read or not (call.library or call.name in ("BboxParams", "KeypointParams")):
            return _WrittenText(ast.unparse(node))
        self._used |= {id(inner) for value in (*given, *named.values()) for inner in _calls(value)}
        return call

    def _path(self, node: ast.expr) -> str:
        """A dotted name, its first part as it was imported; "" for anything else."""
        if isinstance(node, ast.Name):
            return self._paths.get(node.id, node.id)
        return f"{self._path(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _pipelines(value: Any) -> list[_WrittenCall]:
    """Of a statement: its calls; a list of calls is one pipeline, a dict holds several."""
    if isinstance(value, dict):
        return [call for each in value.values() for call in _pipelines(each)]
    if isinstance(value, (list, tuple)) and (calls := _calls(value)):
        home = "albumentations" if calls[0].library == "albumentations" else "torchvision"
        return [_WrittenCall(f"{home}.Compose", (value,), {}, calls[0].line)]
    return _calls(value)


def _calls(value: Any) -> list[_WrittenCall]:
    """Calls in a value, not those in their arguments."""
    if isinstance(value, (list, tuple)):
        return [call for each in value for call in _calls(each)]
    if isinstance(value, dict):
        return [call for each in value.values() for call in _calls(each)]
    return [value] if isinstance(value, _WrittenCall) else []


def _described(value: Any) -> Any:
    """As Albumentations' ``to_dict()`` gives it."""
    if isinstance(value, _WrittenCall):
        named = {name: _described(each) for name, each in value.bound(_IN_ORDER.get(value.name, ())).items()}
        for name, argument in _FROM_3:
            if value.name == name and isinstance(end := named.get(argument), int):
                named[argument] = (3, end)
        is_transform = value.name not in ("BboxParams", "KeypointParams")
        return {"__class_fullname__": value.name, **named} if is_transform else named
    if isinstance(value, (list, tuple)):
        return [_described(each) for each in value]
    return repr(value) if isinstance(value, _WrittenText) else value


def _object(value: Any) -> Any:
    """As torchvision's object: of a class of that name, with an attribute for each argument."""
    if isinstance(value, (list, tuple)):
        return type(value)(_object(each) for each in value)
    if isinstance(value, _WrittenText):
        # An enumeration's member: InterpolationMode.BICUBIC, AutoAugmentPolicy.SVHN, torch.float32.
        return value.path.rpartition(".")[2].lower() if value.path else value
    if not isinstance(value, _WrittenCall):
        return value
    if value.library == "variegate":
        return from_dict(_own(value), value.name)
    if value.path.startswith("torch.nn"):  # whose parts are arguments of their own
        children = value.arguments[0] if value.name == "ModuleList" and value.arguments else value.arguments
        value = _WrittenCall(value.path, (list(children),), {}, value.line)
    cls = Transform.registry.get(value.name)
    known = ("transforms",) if cls is None or value.name == "Compose" else parameters(cls)
    made = type(value.name, (), {"__module__": "torchvision.transforms"})()
    if cls is not None and (value.name in torchvision.FloatTail.CLASSES or value.name not in torchvision.SAME):
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        vars(made).update({one.name: one.default for one in fields if one.default is not dataclasses.MISSING})
    vars(made).update({name: _object(each) for name, each in value.bound(known).items()})
    if isinstance(children := value.bound(known).get("transforms"), (list, tuple)):
        made.transforms = [
            type(each.text, (), {})() if isinstance(each, _WrittenText) else _object(each) for each in children
        ]
    return made


def _own(value: Any) -> Any:
    """As ``to_dict`` describes Variegate's transforms."""
    if isinstance(value, _WrittenCall):
        cls = Transform.registry.get(value.name)
        named = value.bound(() if cls is None else parameters(cls))
        return {"type": value.name, **{name: _own(each) for name, each in named.items()}}
    if isinstance(value, (list, tuple)):
        return [_own(each) for each in value]
    return repr(value) if isinstance(value, _WrittenText) else value
