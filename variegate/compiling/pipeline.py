"""Numba's way from Python to machine code, with a stop between types and code: for callees that are put off.

The type of a call is all that its caller's types need. Where a callee's annotation says that it returns nothing, that
type is known before the callee is compiled; so all of a kernel's callees can be known first, and compiled together, in
several processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types, typing
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference

BRING_CALLEES: list[Callable[[], None]] = []
"""Called between types and code; empty where nothing is put off."""


@register_pass(mutates_CFG=False, analysis_only=True)
class BringCallees(FunctionPass):
    """Has the callees that were put off compiled, before code that calls them is made."""

    _name = "bring_callees"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        for bring in BRING_CALLEES:
            bring()
        return False


class KernelCompiler(CompilerBase):
    """Numba's own, and ``BringCallees``."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(BringCallees, NopythonTypeInference)
        passes.finalize()
        return [passes]


def returns_nothing(dispatcher: Any) -> bool:
    """True if the kernel is annotated to return None."""
    return dispatcher.py_func.__annotations__.get("return", "") in (None, "None")


def call_of_nothing(dispatcher: Any, args: Any, kwargs: Any) -> Any:
    """The answer of ``Dispatcher.get_call_template`` for a kernel that returns nothing and may not be compiled yet."""
    signature, args = dispatcher._compiler.fold_argument_types(args, kwargs)
    name = dispatcher.py_func.__name__
    signatures = [typing.signature(types.none, *args)]
    template = typing.make_concrete_template(f"CallTemplate({name})", key=name, signatures=signatures)
    return template, signature, args, {}
