"""Functions generated from declarations: an operation's class with ``function=``, or the annotations of a function.

A class whose operation is one instruction gets a function that emits it; any other class is made with the function's
arguments, and run.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from variegate.ops.arguments import BLACK
from variegate.ops.base import Transform
from variegate.ops.magnitude import MagnitudeOp, PlainOp, Resampled, WithProbability
from variegate.ops.schema import Argument, Range, read_arguments
from variegate.transforms.functional.single import refused, run, run_map, run_step

Function = TypeVar("Function", bound=Callable[..., Any])


def checked(function: Function) -> Function:
    """``function`` with arguments that are checked, and converted, as their annotations say."""
    signature = inspect.signature(function)
    arguments = read_arguments(function.__annotations__, function.__globals__)
    call = _compiled(function.__name__, signature, arguments, function, [*signature.parameters])
    call.__signature__ = signature  # type: ignore[attr-defined]
    return cast(Function, wraps(function)(call))


def function_of(cls: type[Transform]) -> Callable[..., Any]:
    """The function of an operation that declares one: an image, the operation's arguments, a device."""
    signature, fields = signature_of(cls), fields_of(cls)
    is_operation = issubclass(cls, (MagnitudeOp, PlainOp, WithProbability))
    arguments = {name: of_constant(cls, field.name) for name, field in fields.items()} if is_operation else {}
    target = _run_operation(cls) if is_operation and not _emits_by_itself(cls) else _run_transform(cls)
    function: Any = _compiled(cls._functions[0], signature, arguments, target, ["img", "device", *fields])
    function.__module__ = __package__
    function.__doc__ = documentation_of(cls)
    return function


def _compiled(
    name: str,
    signature: inspect.Signature,
    arguments: Mapping[str, Argument],
    target: Callable[..., Any],
    order: Sequence[str],
) -> Callable[..., Any]:
    """A function of this signature that passes its checked arguments on to ``target``, in this order."""
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    passed = [f"check_{one}({one!r}, {one}, error=refused)" if one in arguments else one for one in order]
    source = f"def {name}{inspect.Signature(parameters)}:\n    return target({', '.join(passed)})"
    namespace: dict[str, Any] = {f"check_{one}": argument.check for one, argument in arguments.items()}
    namespace |= {"target": target, "refused": refused}
    exec(compile(source, __file__, "exec"), namespace)
    return cast(Callable[..., Any], namespace[name])


def accepted_by(function: Callable[..., Any]) -> dict[str, Argument]:
    """The arguments of a function, by their names."""
    cls = Transform.functions.get(function.__name__) if function.__module__ == __package__ else None
    if cls is not None:
        return {
            name: of_constant(cls, field.name) for name, field in fields_of(cls).items() if field.name in cls._arguments
        }
    written = inspect.unwrap(function)
    return read_arguments(written.__annotations__, written.__globals__)


def of_constant(cls: Any, name: str) -> Argument:
    """The argument of an operation without ranges to draw from, as a function has it."""
    argument = cls._arguments[name]
    if not isinstance(argument, Range):
        return argument
    return argument.of_type(float) if getattr(cls, "_allows_fractions", False) else argument.of_constant()


def fields_of(cls: type[Transform]) -> dict[str, dataclasses.Field[Any]]:
    """The fields of an operation that its function takes, by the function's names."""
    fields = {cls._called.get(field.name, field.name): field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return {name: field for name, field in fields.items() if name is not None}


def signature_of(cls: type[Transform]) -> inspect.Signature:
    """The signature of the function of an operation."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("img", kind)]
    for name, field in fields_of(cls).items():
        default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
        parameters.append(inspect.Parameter(name, kind, default=0 if default == BLACK else default))
    after = parameters.pop() if parameters[-1].name in cls._after_device else None
    parameters.append(inspect.Parameter("device", kind, default="cpu"))
    return inspect.Signature(parameters if after is None else [*parameters, after])


def documentation_of(cls: type[Transform]) -> str:
    """The docstring of an operation, with the arguments that its function has, by the function's names."""
    fields = fields_of(cls)
    text, _, listed = (inspect.getdoc(cls) or "").partition("\nArgs:\n")
    for hidden in [name for name, called in cls._called.items() if called is None]:
        text = " ".join(sentence for sentence in re.split(r"(?<=\.)\s+", text) if f"``{hidden}``" not in sentence)
    described = [
        f"    {name}: {entry[1]}"
        for name, field in fields.items()
        if (entry := re.search(rf"^    {field.name}: (.*(?:\n {{8}}.*)*)", listed, re.M))
    ]
    text = "\n".join([text, "Args:", *described]) if described else text.rstrip()
    for name, field in fields.items():
        text = text.replace(f"``{field.name}``", f"``{name}``")
    return text


def _emits_by_itself(cls: Any) -> bool:
    """True if the instruction has arguments besides the class's own, such as arguments that follow from the image."""
    if not issubclass(cls, MagnitudeOp) or issubclass(cls, Resampled):
        return False
    return cls.emit_at is not MagnitudeOp.emit_at or not cls._is_magnitude_recorded


def _run_transform(cls: type[Transform]) -> Callable[..., Any]:
    """Makes a transform of a function's values, and runs it."""
    names = {field.name: name for name, field in fields_of(cls).items()}
    return lambda img, device, *values: run(img, device, lambda: cls(*values), **names)


def _run_operation(cls: Any) -> Callable[..., Any]:
    """Emits the instruction of an operation with a function's values."""
    if issubclass(cls, Resampled):
        return lambda img, device, number, *others: run_map(img, device, cls._op, (number,), *others)
    return lambda img, device, *values: run_step(img, device, cls._op, values)
