"""Pipelines of other libraries as Python text, which is parsed and never run."""

from __future__ import annotations

import ast
import dataclasses
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from variegate.errors import PolicyError
from variegate.integrations.converters import torchvision
from variegate.integrations.converters.albumentations import COMPOSITIONS, from_albumentations
from variegate.integrations.converters.albumentations_table import REFUSED, RULES
from variegate.integrations.converters.report import ConversionError, ConversionReport, ConversionWarning, parameters
from variegate.integrations.converters.timm import from_timm
from variegate.ops.base import Transform
from variegate.ops.description import from_dict

MOST_CHARACTERS = 100_000
# Of one value, with all that it is made of; names may be used again and again in each other.
_MOST_VALUES, _MOST_LEVELS, _MOST_NUMBER = 5000, 40, 1e12
_ACCEPTED = "Python that calls transforms of torchvision, Albumentations, timm or Variegate"
# By what people import them as, where the text has no import. Other names are guessed from the classes.
_USUAL = {"A": "albumentations", "albu": "albumentations", "transforms": "torchvision.transforms", "nn": "torch.nn"}
_USUAL |= {name: name for name in ("albumentations", "cv2", "torch", "torchvision", "variegate")}
_USUAL |= {"v2": "torchvision.transforms", "timm": "timm", "create_transform": "timm.data.create_transform"}
_GUESSED, _OWN, _GUESSED_HOMES = "?", "__main__", ("T", "TT", "tt", "tfs", "tfms")
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"?.int": math.trunc, "?.float": float, "?.round": round}
_NUMBERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    **{ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv},
}
_MODULES = ("torch.nn.Sequential", "torch.nn.ModuleList")
_ENUMERATION = re.compile(r"(torch|torchvision|PIL)\.|(\w+\.)*(InterpolationMode|AutoAugmentPolicy|Image)\.")
_DTYPES = {"float": "float32", "half": "float16", "double": "float64"}
_CV2 = {"INTER_NEAREST": 0, "INTER_LINEAR": 1, "INTER_CUBIC": 2, "INTER_AREA": 3, "INTER_LANCZOS4": 4}
_CV2 |= {"BORDER_CONSTANT": 0, "BORDER_REPLICATE": 1, "BORDER_REFLECT": 2, "BORDER_WRAP": 3, "BORDER_REFLECT_101": 4}
# Albumentations' arguments that are given without their names.
_IN_ORDER: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("Sequential", "OneOf"), ("transforms", "p")),
    **dict.fromkeys(("Compose", "ReplayCompose"), ("transforms", "bbox_params", "keypoint_params")),
    **dict.fromkeys(("SomeOf", "RandomOrder"), ("transforms", "n", "replace", "p")),
    **dict.fromkeys(("HorizontalFlip", "VerticalFlip", "Transpose", "NoOp", "D4"), ("p",)),
    **dict.fromkeys(("Resize", "RandomCrop", "CenterCrop"), ("height", "width")),
    **dict.fromkeys(("Blur", "MedianBlur", "MotionBlur"), ("blur_limit",)),
    **dict.fromkeys(("LongestMaxSize", "SmallestMaxSize"), ("max_size",)),
    **{"Normalize": ("mean", "std"), "BboxParams": ("format", "label_fields"), "KeypointParams": ("format",)},
    **{"PadIfNeeded": ("min_height", "min_width"), "Rotate": ("limit",), "ToFloat": ("max_value",)},
    **{"ShiftScaleRotate": ("shift_limit", "scale_limit", "rotate_limit"), "RandomResizedCrop": ("size",)},
    **{"RandomBrightnessContrast": ("brightness_limit", "contrast_limit")},
}
# Where a range is accepted, a number is its upper end, and this the lower one; or it stands on both sides.
_LOW: Mapping[tuple[str, str], float] = {
    **dict.fromkeys(((name, "blur_limit") for name in ("Blur", "MedianBlur", "MotionBlur")), 3),
    **{("Defocus", "radius"): 1, ("Defocus", "alias_blur"): 0.0, ("ZoomBlur", "max_factor"): 1.0},
    **{("Morphological", "scale"): 1, ("RandomGamma", "gamma_limit"): 1, ("CLAHE", "clip_limit"): 1.0},
}
_BOTH_SIDES = {"limit", "shift_limit", "scale_limit", "rotate_limit", "brightness_limit", "contrast_limit"}
_BOTH_SIDES |= {"hue_shift_limit", "sat_shift_limit", "val_shift_limit", "distort_limit"}
_BOTH_SIDES |= {"r_shift_limit", "g_shift_limit", "b_shift_limit"}
# What descriptions always say.
_UNSAID: Mapping[str, dict[str, Any]] = {
    **{"TimeMasking": {"time_mask_param": 40}, "FrequencyMasking": {"freq_mask_param": 30}},
    **{"Affine": {"keep_ratio": False}, "Spatter": {"mode": "rain"}},
}
_SPATTER = {"rain": (238, 238, 175), "mud": (20, 42, 63)}
# Arguments whose defaults are not those of version 1.
_NEWER = dict.fromkeys(("Rotate", "SafeRotate", "ShiftScaleRotate", "PadIfNeeded", "ElasticTransform"), "border_mode")
_NEWER |= dict.fromkeys(("GridDistortion", "OpticalDistortion"), "border_mode")
_NEWER |= {"SomeOf": "replace", "RandomRotate90": "p", "ColorJitter": "hue", "GaussianBlur": "sigma_limit"}
_NEWER |= {"CoarseDropout": "fill"}


@dataclasses.dataclass(frozen=True, eq=False)
class _WrittenText:
    """Code that stands for no value here: a function, or a name of elsewhere. ``path``: of a dotted name."""

    text: str
    path: str = ""

    def __repr__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True, eq=False)
class _WrittenCall:
    """A call of a transform. ``path``: the dotted name of what is called, behind its import."""

    path: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    line: int
    text: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    def __repr__(self) -> str:
        return self.text[:60]

    def bound(self, names: Sequence[str]) -> dict[str, Any]:
        """Arguments by their names. Raises ConversionError."""
        if len(self.arguments) > len(names):
            got = self.arguments[len(names)]
            raise ConversionError(f"line {self.line}: {self.name}", got, "arguments by their names")
        return {**dict(zip(names, self.arguments, strict=False)), **self.named}


def from_python(text: str) -> tuple[Transform, ConversionReport]:
    """Convert the first pipeline that ``text`` writes down, with its report; refused transforms are skipped.

    Constants, lists, names that are assigned above, changes of lists, and calls of transforms are read; nothing is run
    or imported. Raises ConversionError for text without a pipeline, and where the whole of it cannot be converted.
    """
    if len(text) > MOST_CHARACTERS:
        raise ConversionError("text", f"{len(text):,} characters", f"at most {MOST_CHARACTERS:,}")
    try:
        names = _WrittenNames()
        names.read(ast.parse(text).body)
        call = names.pipeline()
    except SyntaxError as error:
        raise ConversionError(f"line {error.lineno}", (error.text or "").strip(), f"Python ({error.msg})") from None
    except PolicyError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        raise ConversionError("text", str(error) or "too deeply nested", _ACCEPTED) from None
    if call is None:
        raise ConversionError("text", text.strip()[:60], _ACCEPTED)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConversionWarning)
            library = _library_of(call)
            if library == "albumentations":
                return _from_albumentations(call)
            if library == "torchvision":
                return torchvision.from_torchvision(_object(call), report=True)
            if library == "variegate":
                return from_dict(_own(call), call.name), ConversionReport((call.name,), {}, {})
            converted = from_timm(**_known(call.bound(("input_size", "is_training"))))
    except PolicyError:
        raise
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        accepted = f"values that the text writes down ({error})"
        raise ConversionError(f"line {call.line}: {call.name}", call, accepted) from error
    close = tuple(f": {each.message}" for each in caught)
    return converted, ConversionReport(() if close else (call.name,), {call.name: close} if close else {}, {})


class _WrittenNames:
    """Values of a text's names as its statements are read, one after another, and the pipelines in them."""

    def __init__(self) -> None:
        self._paths, self._values = dict(_USUAL), dict[str, Any]()
        self._star = ""
        self._found: list[Any] = []
        self._parts: list[Any] = []  # values that are part of others; held, so that no other has their ids
        self._changed: list[Any] = []
        self._sizes: dict[int, tuple[Any, int, int]] = {}

    def pipeline(self) -> _WrittenCall | None:
        """The first composition that is no part of another; without one, the first transform."""
        parts = {id(each) for each in self._parts}
        found = [each for each in self._found if id(each) not in parts]
        whole = ("Compose", "ReplayCompose", "Sequential", "create_transform")
        chosen = next((each for each in found if isinstance(each, list) or each.name in whole), None)
        chosen = found[0] if chosen is None and found else chosen
        if any(each is chosen for each in self._changed):
            raise ConversionError("text", chosen, "a pipeline that the text does not change afterwards")
        if not isinstance(chosen, list):
            return chosen
        first = next(_calls(chosen))
        home = first.path.partition(".")[0]
        return _WrittenCall(f"{home}.transforms.Compose", (chosen,), {}, first.line, repr(chosen))

    # -- statements ----------------------------------------------------------------------------------------------

    def read(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            match node:
                case ast.Import(names=names):
                    self._paths |= {one.asname or one.name.partition(".")[0]: one.name for one in names if one.asname}
                    self._paths |= {root: root for one in names if not one.asname for root in [one.name.split(".")[0]]}
                case ast.ImportFrom(module=module, names=names):
                    self._star = module or "" if names[0].name == "*" else self._star
                    self._paths |= {one.asname or one.name: f"{module}.{one.name}" for one in names}
                case ast.Assign(targets=targets, value=value):
                    self._assign(targets, self._found_in(value))
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assign([target], self._found_in(value))
                case ast.AugAssign(target=target, op=kind, value=value):
                    changed = self._combined(kind, self._value(_loaded(target)), self._value(value), node)
                    self._assign([target], self._found_in(changed))
                case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
                    self._found_in(value)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self._read_within(node)
                case _ if hasattr(node, "body") or hasattr(node, "cases"):
                    self._read_branches(node)

    def _read_within(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """A function, with the defaults of its arguments, or a class."""
        before = dict(self._values)
        if not isinstance(node, ast.ClassDef):
            given, last = node.args, [*node.args.posonlyargs, *node.args.args]
            names = [*last, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
            self._values |= {one.arg: _WrittenText(one.arg) for one in names}
            defaults = zip(reversed(last), reversed(given.defaults), strict=False)
            for one, default in [*defaults, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]:
                if default is not None:
                    self._values[one.arg] = self._value(default)
        self.read(node.body)
        self._values = before
        self._values.pop(node.name, None)
        self._paths[node.name] = f"{_OWN}.{node.name}"

    def _read_branches(self, node: ast.stmt) -> None:
        """Code that may run or not: behind it, the names that it changes are not known."""
        bodies = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        bodies += [each.body for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
        is_loop = isinstance(node, (ast.For, ast.While))
        stored = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
        before, changed = dict(self._values), set[str](stored)
        for body in bodies:
            self._values = dict(before)
            for name in stored if is_loop else ():
                self._values[name] = _WrittenText(name)
            self.read(body)
            changed |= {name for name, value in self._values.items() if before.get(name) is not value}
        self._values = before
        for name in changed:
            self._values[name] = _WrittenText(name)

    def _assign(self, targets: Sequence[ast.expr], value: Any) -> None:
        for target in targets:
            match target:
                case ast.Name(id=name):
                    self._values[name] = value
                case ast.Tuple(elts=parts) | ast.List(elts=parts):
                    is_known = isinstance(value, (tuple, list)) and len(value) == len(parts)
                    for n, part in enumerate(parts):
                        self._assign([part], value[n] if is_known else _WrittenText(ast.unparse(part)))
                case ast.Subscript() | ast.Attribute() | ast.Starred():  # a change within
                    self._forget(target)

    def _forget(self, node: ast.expr) -> None:
        root = node
        while isinstance(root, (ast.Attribute, ast.Subscript, ast.Starred)):
            root = root.value
        if isinstance(root, ast.Name) and isinstance(self._values.get(root.id), (list, dict, _WrittenCall)):
            self._changed.append(self._values[root.id])
            self._values[root.id] = _WrittenText(root.id)

    # -- values ------------------------------------------------------------------------------------------------------

    def _found_in(self, given: Any) -> Any:
        """A value, whose pipelines are noted."""
        value = self._value(given) if isinstance(given, ast.expr) else given
        if isinstance(value, dict):
            for each in value.values():
                self._found_in(each)
        elif isinstance(value, _WrittenCall) or (isinstance(value, list) and next(_calls(value), None) is not None):
            self._found.append(value)
        return value

    def _value(self, node: ast.expr) -> Any:
        mark = len(self._found)
        value = self._evaluated(node)
        if isinstance(value, (list, _WrittenCall)):
            del self._found[mark:]  # of its parts
        return value

    def _evaluated(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return self._number(value, node)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                parts: list[Any] = []
                for each in elements:
                    value = self._value(each.value if isinstance(each, ast.Starred) else each)
                    is_many = isinstance(each, ast.Starred) and isinstance(value, (list, tuple))
                    parts += value if is_many else [_WrittenText(ast.unparse(each)) if each is None else value]
                    self._parts += [value] if is_many else []
                return self._made(parts if isinstance(node, ast.List) else tuple(parts), parts)
            case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
                made = {key.value: self._value(each) for key, each in zip(keys, values, strict=True)}  # type: ignore[union-attr]
                return self._made(made, list(made.values()), is_whole=False)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                value = self._value(operand)
                if type(value) in (int, float):
                    return -value if isinstance(node.op, ast.USub) else value
            case ast.BinOp(left=left, op=kind, right=right):
                return self._combined(kind, self._value(left), self._value(right), node)
            case ast.Name(id=name) if name in self._values:
                return self._values[name]
            case ast.Name() | ast.Attribute():
                path = self._path(node)
                constant = _CV2.get(path.removeprefix("cv2.").replace("REFLECT101", "REFLECT_101"))
                return _WrittenText(ast.unparse(node), path) if constant is None else constant
            case ast.Call():
                return self._call(node)
        for inner in ast.iter_child_nodes(node):  # of a condition, a comprehension
            if isinstance(inner, ast.expr):
                self._found_in(inner)
        return _WrittenText(ast.unparse(node))

    def _number(self, value: Any, node: ast.AST) -> Any:
        is_huge = type(value) in (int, float) and not abs(value) <= _MOST_NUMBER
        return _WrittenText(ast.unparse(node)) if is_huge else value

    def _combined(self, kind: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        are_numbers = type(left) in (int, float) and type(right) in (int, float)
        if are_numbers and type(kind) in _NUMBERS and not (right == 0 and isinstance(kind, (ast.Div, ast.FloorDiv))):
            return self._number(_NUMBERS[type(kind)](left, right), node)
        if isinstance(kind, ast.Add) and type(left) is type(right) and isinstance(left, (list, tuple)):
            self._parts += [left, right]
            return self._made(left + right, left + right)
        return _WrittenText(ast.unparse(node))

    def _made(self, value: Any, parts: Sequence[Any], is_whole: bool = True) -> Any:
        """A value of several, within limits. ``is_whole``: the parts are no pipelines of their own."""
        sizes = [self._sizes.get(id(each), (None, 1, 0)) for each in parts]
        size, levels = 1 + sum(each[1] for each in sizes), 1 + max((each[2] for each in sizes), default=0)
        if size > _MOST_VALUES or levels > _MOST_LEVELS:
            got = f"{size:,} values in {levels} levels"
            raise ConversionError("text", got, f"at most {_MOST_VALUES:,} values in {_MOST_LEVELS} levels")
        self._sizes[id(value)] = value, size, levels
        if is_whole:
            self._parts += [each for each in parts if isinstance(each, (list, _WrittenCall))]
        return value

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            self._forget(node.func.value)  # it may change, as by append
        path, name = self._path(node.func), self._path(node.func).rpartition(".")[2]
        given = [self._value(each) for each in node.args if not isinstance(each, ast.Starred)]
        named = {each.arg: self._value(each.value) for each in node.keywords if each.arg is not None}
        is_read = len(given) == len(node.args) and len(named) == len(node.keywords)
        if name in ("tensor", "array", "list", "tuple") and len(given) == 1 and isinstance(given[0], (list, tuple)):
            return given[0]
        if (convert := _CONVERSIONS.get(path)) and len(given) == 1 and type(given[0]) in (int, float):
            return convert(given[0])
        call = _WrittenCall(path, tuple(given), named, node.lineno, ast.unparse(node)[:200])
        values = [*given, *named.values()]
        if is_read and _is_transform(call):
            return self._made(call, values)
        for each in values:
            self._found_in(each)
        return _WrittenText(ast.unparse(node))

    def _path(self, node: ast.expr) -> str:
        """A dotted name, its first part as it was imported; "" for anything else."""
        if isinstance(node, ast.Attribute):
            return f"{self._path(node.value)}.{node.attr}"
        if not isinstance(node, ast.Name) or node.id in self._values:
            return ""
        if self._star.partition(".")[0] in ("albumentations", "torchvision") and node.id not in self._paths:
            return f"{self._star}.{node.id}"
        return self._paths.get(node.id, f"{_GUESSED}.{node.id}")


def _loaded(target: ast.expr) -> ast.expr:
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _calls(value: Any) -> Iterator[_WrittenCall]:
    """Calls in a list, not those in their arguments."""
    for each in value if isinstance(value, (list, tuple)) else ():
        if isinstance(each, _WrittenCall):
            yield each
        yield from _calls(each)


_TORCHVISION = torchvision.known() | set(torchvision.REFUSED)
_ALBUMENTATIONS = {*RULES, *REFUSED, *COMPOSITIONS, "Normalize", "ToFloat", "ToTensorV2"}


def _is_transform(call: _WrittenCall) -> bool:
    home, name = call.path.partition(".")[0], call.name
    match home:
        case "albumentations":
            return name[:1].isupper()
        case "torchvision":
            return ".transforms." in call.path and name[:1].isupper()
        case "torch":
            return call.path in _MODULES and next(_calls([*call.arguments, *call.named.values()]), None) is not None
        case "timm":
            return name == "create_transform"
        case "variegate":
            return name in Transform.registry
    # No import is in the text: by the name of the class.
    is_free = home == _GUESSED and (call.path.count(".") == 1 or call.path.split(".")[1] in _GUESSED_HOMES)
    return is_free and name in _TORCHVISION | _ALBUMENTATIONS | set(Transform.registry)


def _library_of(call: _WrittenCall) -> str:
    """By the import; without one, the library that has all names of the pipeline's classes, or else the most."""
    home = call.path.partition(".")[0]
    if home in ("albumentations", "torchvision", "timm", "variegate"):
        return home
    if home == "torch":
        return "torchvision"
    names, left = [], [call]
    while left:
        one = left.pop()
        names.append(one.name)
        left += _calls([*one.arguments, *one.named.values()])
    known = {"torchvision": _TORCHVISION, "albumentations": _ALBUMENTATIONS, "variegate": set(Transform.registry)}
    return max(known, key=lambda library: sum(name in known[library] for name in names))


def _known(arguments: dict[str, Any]) -> dict[str, Any]:
    """timm's, of which every value counts. Raises ConversionError for one that the text does not write down."""
    for name, value in arguments.items():
        if any(isinstance(each, _WrittenText) for each in (value if isinstance(value, (list, tuple)) else [value])):
            raise ConversionError(f"create_transform.{name}", value, "a value that the text writes down")
    return arguments


# -- Albumentations --------------------------------------------------------------------------------------------------


def _from_albumentations(call: _WrittenCall) -> tuple[Transform, ConversionReport]:
    older: dict[str, None] = {}
    converted, report = from_albumentations(_described(call, older), report=True)
    if not older:
        return converted, report
    how = f": what the text leaves out of {', '.join(older)} has the defaults of Albumentations 2, not those of 1"
    return converted, dataclasses.replace(report, approximate={**report.approximate, "text": (how,)})


def _described(value: Any, older: dict[str, None]) -> Any:
    """As Albumentations' ``to_dict()`` gives it. ``older``: gets the classes whose defaults version 1 had otherwise."""
    if isinstance(value, dict):
        return {name: _described(each, older) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_described(each, older) for each in value]
    if not isinstance(value, _WrittenCall):
        return repr(value) if isinstance(value, _WrittenText) else value
    name = value.name
    named = value.bound(_IN_ORDER.get(name, ()))
    if isinstance(children := named.get("transforms"), (list, tuple)):
        named["transforms"] = [_child(each, older) for each in children]
    named = {argument: _described(each, older) for argument, each in named.items()}
    if name in ("BboxParams", "KeypointParams"):
        return named
    if name in _NEWER and _NEWER[name] not in named:
        older[name] = None
    named = {**_UNSAID.get(name, {}), **named}
    for argument, each in named.items():
        if type(each) not in (int, float):
            continue
        if (name, argument) in _LOW:
            named[argument] = (_LOW[name, argument], each)
        elif argument.endswith(("_limit", "_range")) and argument not in _BOTH_SIDES:
            named[argument] = f"{each} as one number"  # refused: not everywhere is it the upper end
    if name == "Affine":
        if type(turn := named.get("rotate")) in (int, float):
            named["rotate"] = (turn, turn)
        if not isinstance(scale := named.get("scale", {}), dict):
            named["scale"] = {"x": scale, "y": scale}
    if name == "Spatter" and named["mode"] in _SPATTER:
        named.setdefault("color", _SPATTER[named["mode"]])
    return {"__class_fullname__": name, **named}


def _child(value: Any, older: dict[str, None]) -> Any:
    """A transform of a list; as a class of no library where it cannot be read."""
    try:
        if isinstance(value, _WrittenCall):
            return _described(value, older)
    except ConversionError:
        pass
    return {"__class_fullname__": repr(value).replace(".", " ")}


# -- torchvision -----------------------------------------------------------------------------------------------------


def _object(value: Any) -> Any:
    """As torchvision's object: of a class of that name, with an attribute for each argument."""
    if isinstance(value, (list, tuple)):
        return type(value)(_object(each) for each in value)
    if isinstance(value, _WrittenText):
        # An enumeration's member: InterpolationMode.BICUBIC, AutoAugmentPolicy.SVHN, torch.float32.
        name = value.path.rpartition(".")[2].lower()
        return _DTYPES.get(name, name) if _ENUMERATION.match(value.path) else repr(value)
    if not isinstance(value, _WrittenCall):
        return value
    if value.path.startswith("variegate."):
        return from_dict(_own(value), value.name)
    if value.path == "torch.nn.ModuleList":
        return _children(value, *value.bound(("modules",)).values())
    if value.path == "torch.nn.Sequential":  # whose parts are arguments of their own
        value = dataclasses.replace(value, arguments=(list(value.arguments),))
    cls = Transform.registry.get(value.name)
    if value.name in torchvision.REFUSED:
        return type(value.name, (), {"__module__": "torchvision.transforms"})()
    known = ("transforms",) if cls is None or value.name in ("Compose", "Sequential") else parameters(cls)
    known += ("inplace",) if value.name in ("Normalize", "RandomErasing") else ()
    made = type(value.name, (), {"__module__": "torchvision.transforms"})()
    if cls is not None and (value.name in torchvision.FloatTail.CLASSES or value.name not in torchvision.SAME):
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        vars(made).update({one.name: None if one.default is dataclasses.MISSING else one.default for one in fields})
    given = value.bound(known)
    vars(made).update({name: _object(each) for name, each in given.items() if name not in ("transforms", "inplace")})
    if "transforms" in known:
        made.transforms = _children(value, given.get("transforms"))
    return made


def _children(owner: _WrittenCall, given: Any) -> list[Any]:
    """Raises ConversionError for what is no list."""
    if isinstance(given, _WrittenCall) and given.path in _MODULES:
        return _children(owner, given.arguments[0] if given.name == "ModuleList" else list(given.arguments))
    if not isinstance(given, (list, tuple)):
        accepted = "a list of transforms that the text writes down"
        raise ConversionError(f"line {owner.line}: {owner.name}.transforms", given, accepted)
    made = []
    for each in given:
        try:
            if not isinstance(each, _WrittenCall):
                raise ConversionError("", each, "a transform")
            made.append(_object(each))
        except PolicyError:
            made.append(type(repr(each), (), {})())  # of no library: refused, by what the text says
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
