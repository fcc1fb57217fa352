"""A process that helps another to compile: it does what it is told, and ends when the other one does.

On Numba's way from Python to machine code it stops between types and code, for callees that are put off. The type of a
call is all that its caller's types need. Where a callee's annotation says that it returns nothing, that type is known
before the callee is compiled; so all of a kernel's callees can be known first, and compiled together, in several
processes.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, BinaryIO

from numba.core import sigutils, types, typing
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference

from variegate.compiling.team import Answer, Ask, Do, Done, KernelJob, Message, Run

Name = tuple[str, str]  # of a kernel: its module and its own


class HelperLink:
    """To the process that is helped, by pipes that were our standard input and output."""

    def __init__(self) -> None:
        # What anybody prints goes where errors go.
        self._out: BinaryIO = os.fdopen(os.dup(1), "wb")
        self._in: BinaryIO = os.fdopen(os.dup(0), "rb")
        os.dup2(2, 1)
        # Ctrl-C in a terminal reaches us too; whom we help decides what it means.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._heard: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def say(self, what: object) -> None:
        pickle.dump(what, self._out)
        self._out.flush()

    def hear(self) -> Any:
        return self._heard.get()

    def _listen(self) -> None:
        """Its death closes the pipe, in whatever way it died, and whatever we are doing."""
        try:
            while True:
                self._heard.put(pickle.load(self._in))
        except BaseException:
            os._exit(1)


class Helper:
    """Compiles what it is told, and asks before it compiles anything.

    ``kernels``: dispatchers, filled as modules are imported; ``failure``: what kept this process from writing code.
    """

    def __init__(self, link: HelperLink, kernels: Sequence[Any], failure: Callable[[], OSError | None]) -> None:
        self._link, self._kernels, self._failure = link, kernels, failure
        # One for each kernel that is being compiled: the callees that it put off.
        self._put_off: list[list[tuple[Any, Any]]] = []
        BRING_CALLEES.append(self._bring_callees)

    def serve(self, tasks: Mapping[str, Callable[[], object]]) -> None:
        """Until nothing is left to do."""
        while isinstance(answer := self._ask([]), Do | Run):
            if isinstance(answer, Do):
                self._do(answer.job)
            else:
                tasks[answer.task]()
                self._link.say(Done(answer.task))

    def compile(self, dispatcher: Any, signature: Any) -> Any:
        """In place of the dispatcher's own."""
        args, _ = sigutils.normalize_signature(signature)
        if args not in dispatcher.overloads:
            self._bring([(dispatcher, args)])
        return type(dispatcher).compile(dispatcher, args)

    def call_template(self, dispatcher: Any, args: Any, kwargs: Any) -> Any:
        """In place of the dispatcher's own, for kernels that kernels call; None: ask the dispatcher."""
        if not self._put_off or not returns_nothing(dispatcher):
            return None
        call = call_of_nothing(dispatcher, args, kwargs)
        args = tuple(call[2])
        if args in dispatcher.overloads:
            return None
        self._put_off[-1].append((dispatcher, args))
        return call

    def _bring_callees(self) -> None:
        if not self._put_off:
            return
        wanted, self._put_off[-1] = self._put_off[-1], []
        self._bring(wanted)
        for dispatcher, args in wanted:
            type(dispatcher).compile(dispatcher, args)
            if dispatcher.overloads[args].signature.return_type != types.none:
                raise TypeError(f"{dispatcher.py_func.__name__}: annotated to return None, and returns something")

    def _bring(self, wanted: list[tuple[Any, Any]]) -> None:
        """Have them compiled, by whomever: afterwards they are on disk."""
        jobs, own = [], []
        for dispatcher, args in wanted:
            name = _name_of(dispatcher)
            if self._named(name) is dispatcher:
                jobs.append(KernelJob(f"{name} {args}", pickle.dumps((name, args)), weight_of(dispatcher)))
            else:
                own.append((dispatcher, args))
        if jobs:
            while isinstance(answer := self._ask(jobs), Do):
                self._do(answer.job)
        for dispatcher, args in own:  # several kernels have its name, so that others could not know which is meant
            self._compile_here(dispatcher, args)

    def _ask(self, jobs: list[KernelJob]) -> Answer:
        self._link.say(Ask(jobs, not self._put_off))
        answer: Answer = self._link.hear()
        return answer

    def _do(self, job: KernelJob) -> None:
        name, args = pickle.loads(job.kernel)
        self._compile_here(self._named(name), args)
        # Without this the others would wait for what never comes.
        if (failure := self._failure()) is not None:
            raise failure
        said: Message = Done(job.key)
        self._link.say(said)

    def _compile_here(self, dispatcher: Any, args: Any) -> None:
        self._put_off.append([])
        try:
            type(dispatcher).compile(dispatcher, args)
        finally:
            self._put_off.pop()

    def _named(self, name: Name) -> Any:
        """The kernel of that name; None where there are several."""
        found = [kernel for kernel in self._kernels if _name_of(kernel) == name]
        return found[0] if len(found) == 1 else None


def _name_of(dispatcher: Any) -> Name:
    return dispatcher.py_func.__module__, dispatcher.py_func.__name__


@cache
def weight_of(dispatcher: Any) -> int:
    """Rough time to compile, in no unit: the bytecode of the kernel and of all kernels that it calls."""
    found: set[Any] = set()
    left = [dispatcher]
    while left:
        function = left.pop().py_func
        if function in found:
            continue
        found.add(function)
        named = (function.__globals__.get(name) for name in function.__code__.co_names)
        left += [value for value in named if hasattr(value, "py_func")]
    return sum(len(function.__code__.co_code) for function in found)


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
