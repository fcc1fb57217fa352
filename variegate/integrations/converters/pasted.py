"""Pipelines of other libraries as Python text, which is parsed and never run."""

from __future__ import annotations

import ast
import dataclasses
import re
import textwrap
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from variegate.errors import PolicyError
from variegate.integrations.converters import torchvision
from variegate.integrations.converters.albumentations import BY_PLACE, COMPOSITIONS, NO_CLASS, from_albumentations
from variegate.integrations.converters.albumentations_table import REFUSED, RULES
from variegate.integrations.converters.python_text import WHOLE, WrittenCall, WrittenNames, WrittenText, calls_in
from variegate.integrations.converters.report import ConversionError, ConversionReport, ConversionWarning, parameters
from variegate.integrations.converters.text_names import GUESSED
from variegate.integrations.converters.timm import from_timm
from variegate.ops.base import Transform
from variegate.ops.description import from_dict

MOST_CHARACTERS = 100_000
_ACCEPTED = "Python that calls transforms of torchvision, Albumentations, timm or Variegate"
# By what people import them as, where the text has no import. Other names are guessed from the classes.
_USUAL = {"A": "albumentations", "albu": "albumentations", "transforms": "torchvision.transforms", "nn": "torch.nn"}
_USUAL |= {name: name for name in ("albumentations", "cv2", "torch", "torchvision", "variegate")}
_USUAL |= {"v2": "torchvision.transforms", "timm": "timm", "create_transform": "timm.data.create_transform"}
_GUESSED_HOMES = ("T", "TT", "tt", "tfs", "tfms")
_MODULES = ("torch.nn.Sequential", "torch.nn.ModuleList")
_ENUMERATION = re.compile(
    r"torch\.(b?float\d*|u?int\d+|half|double)|([\w?]+\.)*(InterpolationMode|AutoAugmentPolicy|Image|Resampling)\.[A-Z0-9_]+"
)
_DTYPES = {"float": "float32", "half": "float16", "double": "float64"}
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


def from_python(text: str) -> tuple[Transform, ConversionReport]:
    """Convert the first pipeline that ``text`` writes down, with its report; refused transforms are skipped.

    Constants, lists, names that are assigned once, and calls of transforms are read; nothing is run or imported. Raises
    ConversionError for text without a pipeline, and where the whole of it cannot be converted.
    """
    if len(text) > MOST_CHARACTERS:
        raise ConversionError("text", f"{len(text):,} characters", f"at most {MOST_CHARACTERS:,}")
    try:
        text = _as_code(text)
        tree = ast.parse(text)
        call, notes = WrittenNames(_from_within(text, tree) or tree, _USUAL, _is_transform).pipeline()
    except SyntaxError as error:
        raise ConversionError(f"line {error.lineno}", (error.text or "").strip(), f"Python ({error.msg})") from None
    except PolicyError:
        raise
    except (ValueError, RecursionError, MemoryError) as error:
        raise ConversionError("text", str(error) or "too deeply nested", _ACCEPTED) from None
    if call is None:
        raise ConversionError("text", text.strip()[:60], _ACCEPTED)
    converted, report = _converted(call)
    how = (*report.approximate.get("text", ()), *notes)
    return converted, dataclasses.replace(report, approximate={**report.approximate, **({"text": how} if how else {})})


def _as_code(text: str) -> str:
    """Text as from a notebook or a page: without its prompts, fences, shell commands, and odd spaces."""
    text = text.lstrip("\ufeff").replace("\u00a0", " ")
    text = re.sub(r"^(>>>|\.\.\.) ?|^[ \t]*([!%]|```).*$", "", text, flags=re.MULTILINE)
    return textwrap.dedent(text)


def _from_within(text: str, tree: ast.Module) -> ast.Module | None:
    """Lines from within a list of transforms, as that list."""
    lines = [each.value for each in tree.body if isinstance(each, ast.Expr)]
    count = sum(len(each.elts) if isinstance(each, ast.Tuple) else 1 for each in lines)
    if len(lines) != len(tree.body):
        return None
    with suppress(SyntaxError):
        listed = ast.parse(f"[{text.strip()}\n]")
        match listed.body:
            case [ast.Expr(value=ast.List(elts=parts))] if len(parts) == count > 1:
                called = [getattr(each.func, "attr", getattr(each.func, "id", "")) for each in parts
                          if isinstance(each, ast.Call)]  # fmt: skip
                return listed if any(name not in WHOLE for name in called) else None
    return None


def _converted(call: WrittenCall) -> tuple[Transform, ConversionReport]:
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
            arguments = call.bound(("input_size", "is_training"))
            for name, value in arguments.items():
                _check_written(f"create_transform.{name}", value)
            converted = from_timm(**arguments)
    except ConversionError:
        raise
    except PolicyError as error:  # of a pipeline of Variegate
        raise ConversionError(error.where, error.got, error.accepted) from error
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as error:
        accepted = f"values that the text writes down ({error})"
        raise ConversionError(f"line {call.line}: {call.name}", call, accepted) from error
    close = tuple(f": {each.message}" for each in caught)
    return converted, ConversionReport(() if close else (call.name,), {call.name: close} if close else {}, {})


_TORCHVISION = torchvision.known() | set(torchvision.REFUSED)
_ALBUMENTATIONS = {*RULES, *REFUSED, *COMPOSITIONS, "Normalize", "ToFloat", "ToTensorV2"}


def _is_transform(call: WrittenCall) -> bool:
    home, name = call.home, call.name
    match home:
        case "albumentations":
            return name[:1].isupper()
        case "torchvision":
            return ".transforms." in call.path and name[:1].isupper()
        case "torch":
            return call.path in _MODULES and next(calls_in([*call.arguments, *call.named.values()]), None) is not None
        case "timm":
            return name == "create_transform"
        case "variegate":
            return name in Transform.registry
    # No import is in the text: by the name of the class.
    is_free = home == GUESSED and (call.path.count(".") == 1 or call.path.split(".")[1] in _GUESSED_HOMES)
    return is_free and any(name in known for known in (_TORCHVISION, _ALBUMENTATIONS, Transform.registry))


def _library_of(call: WrittenCall) -> str:
    """By the import; without one, the library that has all names of the pipeline's classes, or else the most."""
    home = call.home
    if home in ("albumentations", "torchvision", "timm", "variegate"):
        return home
    if home == "torch":
        return "torchvision"
    names, left = [], [call]
    while left:
        one = left.pop()
        names.append(one.name)
        left += calls_in([*one.arguments, *one.named.values()])
    known = {"torchvision": _TORCHVISION, "albumentations": _ALBUMENTATIONS, "variegate": set(Transform.registry)}
    return max(known, key=lambda library: sum(name in known[library] for name in names))


def _check_written(place: str, value: Any) -> None:
    """Raise ConversionError for a value that the text does not write down."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, WrittenText):
            raise ConversionError(place, value, "a value that the text writes down")
        left += one.values() if isinstance(one, dict) else one if isinstance(one, (list, tuple)) else ()


# -- Albumentations --------------------------------------------------------------------------------------------------


def _from_albumentations(call: WrittenCall) -> tuple[Transform, ConversionReport]:
    older, unread = dict[str, None](), dict[str, ConversionError]()
    converted, report = from_albumentations(_described(call, older, unread), report=True)
    refused: dict[str, str] = {}
    for place, how in report.refused.items():
        error = unread.get(place.partition(" ")[0])
        how = how if error is None else f"{error.accepted}; got {error.where} = {error.got!r}"
        refused[place.removesuffix(f".{BY_PLACE}")] = how
    report = dataclasses.replace(report, refused=refused)
    if not older:
        return converted, report
    how = f": what the text leaves out of {', '.join(older)} has the defaults of Albumentations 2, not those of 1"
    return converted, dataclasses.replace(report, approximate={**report.approximate, "text": (how,)})


def _described(value: Any, older: dict[str, None], unread: dict[str, ConversionError], path: str = "") -> Any:
    """As Albumentations' ``to_dict()`` gives it.

    ``older``: gets the classes whose defaults version 1 had otherwise; ``unread``: the places of what is not written.
    """
    if isinstance(value, dict):
        return {name: _described(each, older, unread, path) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_described(each, older, unread, path) for each in value]
    if not isinstance(value, WrittenCall):
        return value
    if value.home not in (GUESSED, "albumentations"):
        raise ConversionError(f"line {value.line}: {value.name}", value, "transforms of Albumentations, as the others")
    name = value.name
    named = value.bound(_IN_ORDER.get(name, ()))
    for argument, each in named.items():
        if argument != "transforms" or isinstance(each, WrittenText):
            _check_written(f"{name}.{argument}", each)
    if isinstance(children := named.get("transforms"), (list, tuple)):
        named["transforms"] = [_child(each, older, unread, f"{path}transforms[{i}]") for i, each in enumerate(children)]
    named = {argument: _described(each, older, unread, path) for argument, each in named.items()}
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


def _child(value: Any, older: dict[str, None], unread: dict[str, ConversionError], path: str) -> Any:
    """A transform of a list; as a class of no library where it cannot be read."""
    if not isinstance(value, WrittenCall):
        return {"__class_fullname__": repr(value), NO_CLASS: True}
    try:
        return _described(value, older, unread, f"{path}.")
    except ConversionError as error:
        unread[path] = error
        if value.name in COMPOSITIONS or value.home not in (GUESSED, "albumentations"):
            return {"__class_fullname__": repr(value), NO_CLASS: True}
        return {"__class_fullname__": value.name, "p": 1.0, BY_PLACE: repr(value)}


# -- torchvision -----------------------------------------------------------------------------------------------------


def _object(value: Any) -> Any:
    """As torchvision's object: of a class of that name, with an attribute for each argument."""
    if isinstance(value, (list, tuple)):
        return type(value)(_object(each) for each in value)
    if isinstance(value, WrittenText):
        # An enumeration's member: InterpolationMode.BICUBIC, AutoAugmentPolicy.SVHN, torch.float32.
        name = value.path.rpartition(".")[2].lower()
        return _DTYPES.get(name, name) if _ENUMERATION.fullmatch(value.path) else value
    if not isinstance(value, WrittenCall):
        return value
    if value.home in ("albumentations", "timm"):
        raise ConversionError(f"line {value.line}: {value.name}", value, "transforms of torchvision, as the others")
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


def _children(owner: WrittenCall, given: Any) -> list[Any]:
    """Raises ConversionError for what is no list."""
    if isinstance(given, WrittenCall) and given.path in _MODULES:
        return _children(owner, given.arguments[0] if given.name == "ModuleList" else list(given.arguments))
    if not isinstance(given, (list, tuple)):
        accepted = "a list of transforms that the text writes down"
        raise ConversionError(f"line {owner.line}: {owner.name}.transforms", given, accepted)
    made = []
    for each in given:
        try:
            if not isinstance(each, WrittenCall):
                raise ConversionError("", each, "a transform")
            made.append(_object(each))
        except PolicyError:
            made.append(type(repr(each), (), {})())  # of no library: refused, by what the text says
    return made


def _own(value: Any) -> Any:
    """As ``to_dict`` describes Variegate's transforms."""
    if isinstance(value, WrittenCall):
        if value.home not in (GUESSED, "variegate"):
            raise ConversionError(f"line {value.line}: {value.name}", value, "transforms of Variegate, as the others")
        cls = Transform.registry.get(value.name)
        named = value.bound(() if cls is None else parameters(cls))
        for name, each in named.items():
            _check_written(f"{value.name}.{name}", each)
        return {"type": value.name, **{name: _own(each) for name, each in named.items()}}
    return [_own(each) for each in value] if isinstance(value, (list, tuple)) else value
