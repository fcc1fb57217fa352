"""``python -m tests.soak.mutations [NAME...] --count 5000``: parsers of foreign bytes, and files that are nearly right.

Inputs are parsed in processes that are forked from this one, some hundreds in each, which may grow by ``--gigabytes``
and take ``--seconds`` for an input. Whatever ends such a process, takes too long or too much, or is an error that is
none of the house's, is told with the command that does it again. Linux and macOS. Ends with exit code 1 for any.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tests.soak.mutating import Parser, fault_of, random_for
from tests.soak.parsers import annotated, indexes, kept, packs, tiles, trained

_MODULES = (annotated, indexes, kept, packs, tiles, trained)
PARSERS = {parser.name: parser for module in _MODULES for parser in module.PARSERS}
_BATCH = 400
# The first child does without limits: kernels may have to be compiled.
_COMPILING = 600
_GIGABYTE = 1 << 30


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", help=f"of {', '.join(PARSERS)}; all without any")
    options.add_argument("--count", type=int, default=1000, help="inputs for each")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", type=int, help="this input alone, in this process, with its traceback")
    options.add_argument("--seconds", type=int, default=20)
    options.add_argument("--gigabytes", type=float, default=2.0)
    given = options.parse_args(arguments)
    if unknown := sorted({*given.names} - {*PARSERS}):
        options.error(f"names: got {', '.join(unknown)}; accepted: {', '.join(PARSERS)}")
    warnings.simplefilter("ignore")
    logging.disable()
    faults = 0
    for name in given.names or PARSERS:
        if given.only is not None:
            _alone(PARSERS[name], given.seed, given.only)
            continue
        soak = Soak(PARSERS[name], given.seed, given.count, given.seconds, int(given.gigabytes * _GIGABYTE))
        soak.run()
        faults += sum(soak.faults.values())
        print(f"{name}: {given.count:,} inputs, {soak.taken:,} taken, {soak.elapsed:.0f} s, faults: {soak.summary}")
        sys.stdout.flush()
    return 1 if faults else 0


def _alone(parser: Parser, seed: int, number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = parser.make(random_for(parser.name, seed, number), Path(folder))
        print(f"{path}: {sorted(p.name for p in Path(folder).rglob('*'))}")
        parser.parse(path)


class Soak:
    """Of one parser. ``compiling``: seconds that the first child may take. ``faults``: how many of each kind; the first
    ten of them are told in full."""

    def __init__(
        self, parser: Parser, seed: int, count: int, seconds: int, growth: int, compiling: int = _COMPILING
    ) -> None:
        self.faults: Counter[str] = Counter()
        self.taken, self.elapsed = 0, 0.0
        self._compiling = compiling
        self._parser, self._seed, self._count, self._seconds, self._growth = parser, seed, count, seconds, growth

    @property
    def summary(self) -> str:
        return ", ".join(f"{count} {what}" for what, count in self.faults.most_common()) or "none"

    def run(self) -> None:
        if not (child := os.fork()):
            signal.alarm(self._compiling)
            self._parse_all(0, min(self._count, 5), os.open(os.devnull, os.O_WRONLY))
        os.waitpid(child, 0)
        began, number = time.monotonic(), 0
        while number < self._count:
            number = self._batch(number, min(number + _BATCH, self._count))
        self.elapsed = time.monotonic() - began

    def _batch(self, first: int, stop: int) -> int:
        """-> what was not reached."""
        readable, writable = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            os.close(readable)
            _limit(self._growth)
            self._parse_all(first, stop, writable, self._seconds)
        os.close(writable)
        number = first
        with open(readable, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                told = json.loads(line)
                if told is None:
                    self.taken += 1
                elif isinstance(told, str):
                    self._tell(number, told)
                number += 1
        _, status = os.waitpid(child, 0)
        if number == stop:
            return stop
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
            self._tell(number, f"hang: more than {self._seconds} s")
        elif os.WIFSIGNALED(status):
            self._tell(number, f"signal: {signal.Signals(os.WTERMSIG(status)).name}")
        else:
            self._tell(number, "end: of the process")
        return number + 1

    def _parse_all(self, first: int, stop: int, writable: int, seconds: int = 0) -> NoReturn:
        """The whole of a child, which is killed by its alarm: compiled code is not interrupted by less."""
        try:
            self._parse_each(first, stop, writable, seconds)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)

    def _parse_each(self, first: int, stop: int, writable: int, seconds: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            tempfile.tempdir = folder  # what parsers keep to its end goes with it
            for number in range(first, stop):
                place = Path(folder) / str(number)
                place.mkdir()
                path = self._parser.make(random_for(self._parser.name, self._seed, number), place)
                if seconds:
                    signal.alarm(seconds)
                told: str | bool | None = None
                try:
                    self._parser.parse(path)
                except Exception as error:
                    told = fault_of(path, error) or False
                os.write(writable, json.dumps(told).encode() + b"\n")
                shutil.rmtree(place, ignore_errors=True)

    def _tell(self, number: int, what: str) -> None:
        self.faults[what.partition(":")[0]] += 1
        if sum(self.faults.values()) <= 10:
            again = f"python -m tests.soak.mutations {self._parser.name} --seed {self._seed} --only {number}"
            print(f"{self._parser.name}: {what}\n    {again}", flush=True)


def _limit(growth: int) -> None:
    """Of addresses: what is asked for and never touched counts as well."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + growth, now + growth))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
