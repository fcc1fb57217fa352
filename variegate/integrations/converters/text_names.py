"""Bindings and uses of the names in Python text, by Python's rules of scopes."""

from __future__ import annotations

import ast
import builtins
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

GUESSED = "?"  # first part of the dotted name of what no import names
OWN = "__main__"
LIBRARIES = ("albumentations", "torchvision")
_MOST_TARGETS = 40  # of one assignment
# Functions and methods that only read.
_READING = {"print", "len", "str", "repr", "list", "tuple", "sorted", "reversed", "zip", "enumerate", "deepcopy"}
_READING |= {"tensor", "array", "isinstance", "iter", "sum", "min", "max", "dict", "int", "float", "range", "type"}
_READING |= {"copy", "get", "items", "keys", "values", "index", "count", "to_dict"}
CHANGING = {"append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update", "setdefault"}
_DYNAMIC = ("globals", "locals", "exec", "eval")  # functions that may bind any name
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (ast.Module, ast.ClassDef, *_DEFINITIONS)
Key = tuple[ast.AST, str]  # a name and the scope that binds it


class TextNames:
    """Bindings and uses of the names in a text.

    Lambdas and comprehensions bind their names in the function around them: a name that has another meaning there is
    bound twice, so that it is not known.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.above: dict[ast.AST, ast.AST] = {}
        self.scopes: dict[ast.AST, ast.AST] = {tree: tree}
        self.stars: list[str] = []
        self.stored: set[str] = set()  # attributes that are assigned
        self._bound: defaultdict[Key, list[tuple[Any, ast.AST]]] = defaultdict(list)
        self._loads: defaultdict[Key, list[ast.expr]] = defaultdict(list)
        self._shared: set[str] = set()  # global and nonlocal names
        self._uses: defaultdict[str, list[ast.expr]] = defaultdict(list)  # of names, and of attributes by theirs
        # Answered once for each, however often a text of many lines uses it.
        self._only, self._ends, self.is_extended = cache(self._read_only), cache(self._read_ends), cache(self._extends)
        self._defaults, self._is_bare = cache(self._read_defaults), cache(self._called_bare)
        self._is_settings = cache(self._asked_only)
        self._changed: dict[tuple[Key, bool], bool] = {}
        self._walk(tree, tree)
        self._is_dynamic = any(isinstance(each, ast.Name) for name in _DYNAMIC for each in self._uses.get(name, ()))
        for node, scope in self.scopes.items():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and (key := self._key(node.id, scope)):
                self._loads[key].append(node)

    def _walk(self, node: ast.AST, scope: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST):
                    continue
                inner = node if isinstance(node, _SCOPES) and field in ("body", "args") else scope
                if isinstance(node, ast.arguments) and not isinstance(child, ast.arg):
                    inner = self.scopes.get(scope, scope)  # defaults are of the scope around
                self.above[child], self.scopes[child] = node, inner
                self._read(child, inner)
                self._walk(child, inner)

    def _read(self, node: ast.AST, scope: ast.AST) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                self._uses[name].append(node)
            case ast.Name(id=name):
                self._bound[scope, name].append((self._given(node), node))
            case ast.Attribute(attr=name, ctx=ast.Load()):
                self._uses[name].append(node)
            case ast.Attribute(value=value, attr=name) if getattr(value, "id", "") != "self":
                self.stored.add(name)
            case ast.arg(arg=name):
                self._bound[scope, name].append((node, node))
            case ast.Import(names=names):
                for one in names:
                    root = one.name.partition(".")[0]
                    self._bound[scope, one.asname or root].append((one.name if one.asname else root, node))
            case ast.ImportFrom(module=module, names=names, level=level):
                home = "." * level + (module or "")
                for one in names:
                    if one.name == "*":
                        self.stars.append(home)
                    self._bound[scope, one.asname or one.name].append((f"{home}.{one.name}", node))
            case ast.ClassDef(name=name):
                self._bound[scope, name].append((node, node))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self._bound[scope, name].append((f"{OWN}.{name}", node))
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                self._shared.update(names)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self._bound[scope, name].append((None, node))
            case ast.MatchMapping(rest=str(name)):
                self._bound[scope, name].append((None, node))

    def _given(self, target: ast.AST) -> ast.expr | None:
        """The expression that is assigned to a name as it stands."""
        match self.above[target]:
            case ast.Assign(value=value):
                return value
            case ast.AnnAssign(value=value):
                return value
            case ast.Tuple(elts=targets) as above if isinstance(above.ctx, ast.Store) and len(targets) < _MOST_TARGETS:
                value = self._given(above)
                values = value.elts if isinstance(value, ast.Tuple) else []
                is_plain = not any(isinstance(each, ast.Starred) for each in [*targets, *values])
                same = zip(targets, values, strict=False) if is_plain and len(values) == len(targets) else ()
                return next((each for one, each in same if one is target), None)
        return None

    def _key(self, name: str, scope: ast.AST) -> Key | None:
        """Scope of a name, by Python's rules: functions do not see the names of a class around them."""
        first = scope
        while (scope, name) not in self._bound or (scope is not first and isinstance(scope, ast.ClassDef)):
            if scope is self.scopes[scope]:
                return None
            scope = self.scopes[scope]
        return scope, name

    def find(self, node: ast.Name) -> tuple[Key | None, Any]:
        """The thing that a name stands for there: an expression, an argument, a class, or a dotted name; else None."""
        key = self._key(node.id, self.scopes[node])
        if key is None:
            return None, None
        only = self._only(key)
        return key, self._last(key, node) if only is None else only

    def _read_only(self, key: Key) -> Any:
        """Value of a name that has one, once and for all."""
        found = [value for value, _ in self._bound[key]]
        # The same from different modules of a library, as behind "try:"; or one module for another.
        paths = [(each.partition(".")[0], each.rpartition(".")[2]) for each in found if isinstance(each, str)]
        origins = {(home, end if end[:1].isupper() else "") for home, end in paths}
        if len(paths) == len(found):
            return found[0] if len(origins) == 1 and key[1] not in self._shared else None
        return found[0] if len(found) == 1 and self._is_plain(key) else None

    def _last(self, key: Key, node: ast.Name) -> Any:
        """Value by the last of several lines that stand one after another in the same body."""
        home, found = key[0], self._bound[key]
        above = self.above[node]
        while above is not home and not isinstance(above, (ast.Lambda, ast.GeneratorExp)):
            above = self.above[above]
        if self.scopes[node] is not home or above is not home or not self._is_plain(key):
            return None
        at = bisect_right(self._ends(key), (node.lineno, node.col_offset))
        return found[at - 1][0] if at else None

    def _read_ends(self, key: Key) -> list[tuple[int, int]]:
        """Ends of the lines that give a name something; none unless all stand in the body of its scope."""
        lines = [self._line_of(target) for _, target in self._bound[key]]
        is_in_order = all(
            value is not None and isinstance(line, (ast.Assign, ast.AnnAssign)) and self.above[line] is key[0]
            for (value, _), line in zip(self._bound[key], lines, strict=True)
        )
        return [(line.end_lineno or 0, line.end_col_offset or 0) for line in lines if is_in_order]

    def _line_of(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.above[node]
        return node

    def _is_plain(self, key: Key) -> bool:
        """True if only the lines of its own scope give a name something."""
        return key[1] not in self._shared and not self._is_dynamic

    def _extends(self, key: Key) -> bool:
        """True if a line such as a += [b] changes what the name stands for."""
        is_list = any(isinstance(value, ast.List) for value, _ in self._bound[key])
        return is_list and any(isinstance(self.above[node], ast.AugAssign) for _, node in self._bound[key])

    def default(self, node: ast.arg) -> ast.expr | None:
        """Default of an argument of a function that the text never calls with arguments, and uses for nothing else."""
        owner, function = self.above[node], self.scopes[node]
        if not isinstance(function, _DEFINITIONS) or owner is not function.args or function.decorator_list:
            return None
        home = self.scopes[function]
        name = home.name if function.name == "__init__" and isinstance(home, ast.ClassDef) else function.name
        return self._defaults(owner).get(node) if self._is_bare(name) else None

    @staticmethod
    def _read_defaults(given: ast.arguments) -> dict[ast.arg, ast.expr | None]:
        last = [*given.posonlyargs, *given.args]
        return dict(
            [
                *zip(reversed(last), reversed(given.defaults), strict=False),
                *zip(given.kwonlyargs, given.kw_defaults, strict=True),
            ]
        )

    def _called_bare(self, name: str) -> bool:
        """True if all uses of a function are calls without arguments."""
        uses = [(each, self.above[each]) for each in self._uses.get(name, ())]
        calls = [above for each, above in uses if isinstance(above, ast.Call) and above.func is each]
        return len(calls) == len(uses) and not any(each.args or each.keywords for each in calls)

    def setting(self, node: ast.Attribute) -> ast.expr | None:
        """Value of a class's attribute that is given once and for all, such as CFG.size in the settings of a script."""
        made = self.find(node.value)[1] if isinstance(node.value, ast.Name) else None
        if not isinstance(made, ast.ClassDef) or made.bases or node.attr in self.stored or "setattr" in self._uses:
            return None
        found = self._bound.get((made, node.attr), [])
        is_one = len(found) == 1 and self.above[self._line_of(found[0][1])] is made and self._is_settings(made.name)
        return found[0][0] if is_one and isinstance(found[0][0], ast.expr) else None

    def _asked_only(self, name: str) -> bool:
        return all(map(self._is_asked, self._uses.get(name, ())))

    def _is_asked(self, node: ast.expr) -> bool:
        """True if a use of a class makes one, reads an attribute, or only looks at it."""
        above = self.above[node]
        if isinstance(above, ast.Attribute):
            return getattr(self.above[above], "func", None) is not above  # else a method may set what it likes
        return isinstance(above, ast.Call) and (above.func is node or getattr(above.func, "id", "") in _READING)

    def free(self, name: str, usual: Mapping[str, str]) -> str:
        """The dotted name of what the text does not bind: by a star import of one library, by custom, or guessed."""
        if name in usual or hasattr(builtins, name) or not self.stars:
            return usual.get(name, f"{GUESSED}.{name}")
        homes = set(self.stars)
        return f"{self.stars[0]}.{name}" if len(homes) == 1 and self.stars[0].split(".")[0] in LIBRARIES else ""

    def is_changed(self, key: Key, is_call: bool) -> bool:
        """True if the text may change in place what a name stands for. ``is_call``: functions leave it as it is, as
        they do with a transform and with numbers; not so with a list of transforms."""
        if (key, is_call) not in self._changed:
            self._changed[key, is_call] = False  # of names that go round in a circle
            self._changed[key, is_call] = any(self._changes(each, is_call) for each in self._loads[key])
        return self._changed[key, is_call]

    def _changes(self, node: ast.expr, is_call: bool) -> bool:
        """A use of a name, or of what is within."""
        above = self.above[node]
        while isinstance(above, (ast.Attribute, ast.Subscript)) and above.value is node:
            if not isinstance(above.ctx, ast.Load):
                return True
            node, above = above, self.above[above]
        while isinstance(above, (ast.Tuple, ast.IfExp)):
            above = self.above[above]
        match above:
            case ast.Call(func=function) if function is node:
                return isinstance(node, ast.Attribute) and node.attr not in _READING
            case ast.Call(func=function):
                return self._is_changing(function, is_call)
            case ast.keyword():
                called = self.above[above]
                return isinstance(called, ast.Call) and self._is_changing(called.func, is_call)
            case ast.Assign(targets=targets):
                return getattr(node, "attr", "") in CHANGING or any(self._goes_on(each, is_call) for each in targets)
            case ast.NamedExpr(target=target) | ast.comprehension(target=target) | ast.For(target=target):
                return self._goes_on(target, is_call)
        return False

    def _goes_on(self, target: ast.expr, is_call: bool) -> bool:
        """True if it is changed by another name; attributes that are given it are looked at as a whole."""
        names = [each for each in ast.walk(target) if isinstance(each, ast.Name)]
        keys = [self._key(each.id, self.scopes[each]) for each in names if isinstance(target, (ast.Name, ast.Tuple))]
        return any(key is not None and self.is_changed(key, is_call) for key in keys)

    @staticmethod
    def _is_changing(function: ast.expr, is_call: bool) -> bool:
        """True if a function may change a list that it is given; classes keep theirs, and none changes a transform."""
        name = str(getattr(function, "id", getattr(function, "attr", "")))
        return name == "setattr" or not (is_call or name in _READING or name[:1].isupper())

    def escapes(self, key: Key) -> bool:
        """True if what the name stands for is also known elsewhere: to functions, objects, or other names."""
        uses = [(each, self.above[each]) for each in self._loads[key]]
        return not all(isinstance(above, ast.Attribute) or getattr(above, "func", 0) is each for each, above in uses)
