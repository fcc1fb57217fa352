"""Values of a pipeline, ``(name, operator, operand, ...)``, worked out for a batch when a transform asks for one.

Names begin with "$", so that no text is taken for one: ``("$turn", "*", "$uniform1", 30)``, ``("$label", "given",
"label")``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from variegate.checks import as_number
from variegate.errors import shown
from variegate.ops.arguments import MAX_ENTRIES, MAX_TRANSFORMS, ArgumentError
from variegate.ops.compose import IMAGE_VALUES
from variegate.ops.container import Verbatim
from variegate.ops.traced.operators import OPERATORS
from variegate.program.sampling import Sampling

_DEEPEST, _LONGEST = 6, 80
_DRAWS = {"coin": "vg.coin", "uniform": "vg.uniform", "randint": "vg.randint", "normal": "vg.normal"}


def expression(definitions: Mapping[str, tuple[Any, ...]], name: str) -> str:
    text = _expression(definitions, name, 0)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


def _expression(definitions: Mapping[str, tuple[Any, ...]], value: Any, depth: int) -> str:
    if not (isinstance(value, str) and value.startswith("$")):
        return shown(value)
    if value not in definitions:
        return f"image.{value.rpartition('.')[2]}"  # a size that is measured on the way
    what, *operands = definitions[value]
    if what == "given":
        return str(operands[0])
    if depth == _DEEPEST:
        return "..."
    parts = [_expression(definitions, each, depth + 1) for each in operands]
    if what == "pick":
        return f"vg.choice(..., p=[{', '.join(parts)}])"
    if what == "take":
        return f"[{', '.join(parts[1:])}][{parts[0]}]"
    if what == "where":
        return f"({parts[1]} if {parts[0]} else {parts[2]})"
    if len(parts) == 2 and what not in _DRAWS and (not what.isalpha() or what in ("and", "or", "xor")):
        text = f"{parts[0]} {what} {parts[1]}"
        return text if depth == 0 else f"({text})"
    if what == "not":
        return f"not {parts[0]}"
    return f"{_DRAWS.get(what, what)}({', '.join(parts)})"


Definition = tuple[Any, ...]
Array = npt.NDArray[Any]
Refuse = Callable[[object, str], Exception]

# Of an image within the pipeline, as ``Measure`` notes them: "$size1.height".
SIDES = ("height", "width")
_LONGEST_NAME = 100


def is_name(value: object) -> bool:
    return isinstance(value, str) and value.startswith("$")


def measured_as(name: str) -> str:
    """Name that ``Measure`` noted a value under; an empty text for values of other kinds."""
    stem, _, side = name.rpartition(".")
    return stem if side in SIDES else ""


def check_definitions(values: Any, refuse: Refuse) -> dict[str, Definition]:
    """Definitions in one form. ``refuse`` makes the error of what was got and what is accepted."""
    accepted = f"a list of up to {MAX_TRANSFORMS:,} values [name, operator, operand, ...]"
    if not isinstance(values, (list, tuple)) or len(values) > MAX_TRANSFORMS:
        raise refuse(values, accepted)
    known: dict[str, Definition] = {}
    for entry in values:
        if not isinstance(entry, (list, tuple)) or len(entry) < 2 or not isinstance(entry[1], str):
            raise refuse(entry, accepted)
        name = entry[0]
        if not is_name(name) or not 1 < len(name) <= _LONGEST_NAME or measured_as(name) or name in known:
            raise refuse(name, f'different names of up to {_LONGEST_NAME} characters, "$" first, such as "$coin1"')
        known[name] = _checked(name, tuple(entry[1:]), known, refuse)
    return known


def _checked(name: str, definition: Definition, known: Mapping[str, Definition], refuse: Refuse) -> Definition:
    what, operands = definition[0], definition[1:]
    if what == "given":
        if len(operands) != 1 or not isinstance(operands[0], str) or not operands[0] or is_name(operands[0]):
            raise refuse((name, *definition), '["given", name], such as ["given", "label"]')
        return what, operands[0]
    known_operator = OPERATORS.get(what)
    if known_operator is None:
        raise refuse((name, *definition), "an operator of: given, " + ", ".join(OPERATORS))
    most = known_operator.most or MAX_ENTRIES
    if not known_operator.least <= len(operands) <= most:
        raise refuse((name, *definition), f"{known_operator.least} to {most:,} operands of {what!r}")
    return what, *(_operand(name, operand, known, refuse) for operand in operands)


def _operand(name: str, operand: Any, known: Mapping[str, Definition], refuse: Refuse) -> Any:
    if is_name(operand):
        if operand not in known and not measured_as(operand):
            raise refuse((name, operand), "names that are defined before: " + (", ".join(known) or "none here"))
        return operand
    plain = operand if isinstance(operand, (bool, str)) else as_number(operand)
    if plain is None or (isinstance(plain, int) and abs(plain) >= 2**62):
        raise refuse((name, operand), "operands that are finite numbers, truth values, texts or names")
    return plain


class Recipes:
    """Definitions as they are worked out: looked through once, for all batches."""

    def __init__(self, definitions: Mapping[str, Definition]) -> None:
        self.by_name = {
            name: (what, tuple(operands), tuple(o for o in operands if what != "given" and is_name(o)))
            for name, (what, *operands) in definitions.items()
        }
        drawn = [name for name, (what, *_) in definitions.items() if what in OPERATORS and OPERATORS[what].draws]
        # The place of each among the pipeline's own slots.
        self.slots = {name: place for place, name in enumerate(drawn)}
        given = {operands[0] for what, *operands in definitions.values() if what == "given"}
        self.of_image = tuple(name for name in IMAGE_VALUES if name in given)
        # What depends on what ``Measure`` notes.
        moving: set[str] = set()
        for name, (_, _, used) in self.by_name.items():
            if any(measured_as(other) or other in moving for other in used):
                moving.add(name)
        self.moving = frozenset(moving)


class PipelineValues(dict[str, Any]):
    """The values given with a batch, and those of a pipeline, worked out when asked for: one entry for each sample."""

    def __init__(self, owner: object, recipes: Recipes, sampling: Sampling, slot: int) -> None:
        super().__init__({name: sampling.given[name] for name in list(sampling.given) if not is_name(name)})
        self._owner, self._recipes, self._sampling, self._slot = owner, recipes, sampling, slot
        self.number = int(sampling.source.max(initial=-1)) + 1
        self._rows = np.arange(self.number)
        self._images = {
            name: IMAGE_VALUES[name](sampling.size[self._rows], sampling.channels[self._rows])
            for name in recipes.of_image
        }

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self, name) or name in self._recipes.by_name

    def __missing__(self, name: str) -> Array:
        # Not by recursion: a loop may have added up thousands of values. Of samples that never use one, it may be odd.
        waiting = [name]
        with np.errstate(all="ignore"):
            while waiting:
                wanted = waiting[-1]
                recipe = self._recipes.by_name.get(wanted)
                if recipe is None:
                    self[wanted] = self._unmeasured(wanted)
                else:
                    missing = [other for other in recipe[2] if not dict.__contains__(self, other)]
                    if missing:
                        waiting += missing
                        continue
                    self[wanted] = self._worked_out(wanted, *recipe)
                waiting.pop()
        return self[name]

    def _unmeasured(self, name: str) -> Array:
        if not measured_as(name):
            known = ", ".join(map(repr, self._recipes.by_name)) or "none here"
            raise ArgumentError(self._owner, "values", name, f"a value of this pipeline: {known}")
        return np.zeros(self.number, np.int64)  # no image has come by there

    def note(self, name: str, value: Array) -> None:
        """A value that ``Measure`` knows from here on; what was worked out without it is forgotten."""
        self[name] = value
        for outdated in self._recipes.moving:
            self.pop(outdated, None)

    def _worked_out(self, name: str, what: str, operands: Definition, used: Definition) -> Array:
        if what == "given":
            return self._given(operands[0])
        numbers = [self[o] if o in used else o for o in operands] if used else list(operands)
        place = self._recipes.slots.get(name)
        if place is not None:
            numbers.insert(0, self._sampling.words(self._rows, self._slot + place)[:, 0])
        try:
            result = OPERATORS[what].function(*numbers)
        except (TypeError, ValueError) as error:  # of texts, also of those that are no numbers
            definitions = {known: (kind, *rest) for known, (kind, rest, _) in self._recipes.by_name.items()}
            shown_value = Verbatim(f"`{expression(definitions, name)}`")
            raise ArgumentError(self._owner, "values", shown_value, f"numbers there ({error})") from error
        is_whole = isinstance(result, np.ndarray) and result.shape == self._rows.shape
        return result if is_whole else np.asarray(np.broadcast_to(result, self.number))

    def _given(self, name: str) -> Array:
        if name == "epoch":
            return np.full(self.number, self._sampling.epoch)
        if name in self._images:
            return self._images[name]
        if not dict.__contains__(self, name):
            given = ", ".join(repr(key) for key in self if not is_name(key)) or "nothing"
            accepted = f'conditions={{"{name}": values}}, one value per image; given with this batch: {given}'
            raise ArgumentError(self._owner, name, None, accepted)
        values = np.asarray(self[name])
        if values.ndim != 1 or len(values) < self.number:
            shape = f"one value per image ({self.number}), but its shape is {values.shape}"
            raise ArgumentError(self._owner, name, values, shape)
        if values.dtype.kind == "O":
            values = np.array(values.tolist())
        types = {"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}
        return values.astype(types.get(values.dtype.kind, str), copy=False)
