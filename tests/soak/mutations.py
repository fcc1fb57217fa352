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
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import NoReturn

from tests.soak import parsers
from tests.soak.mutating import Parser, fault_of, random_for

_MODULES = [import_module(f"tests.soak.parsers.{found.name}") for found in iter_modules(parsers.__path__)]
PARSERS = {parser.name: parser for module in _MODULES for parser in module.PARSERS}
_BATCH = 400
# More for the first input of a process, which imports modules.
_IMPORT_SECONDS = 60
_GIGABYTE = 1 << 30
_TOLD = 10  # faults that are printed


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PARSERS)}; all without any")
    options.add_argument("--count", type=int, default=1000, help="inputs for each")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", type=int, help="this input alone, in this process, with its traceback")
    options.add_argument("--seconds", type=int, default=20)
    options.add_argument("--gigabytes", type=float, default=2.0)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    logging.disable()
    failed = False
    for name in given.names or PARSERS:
        parser = PARSERS[name]
        if given.only is not None:
            with tempfile.TemporaryDirectory() as folder:
                parser.parse(parser.make(random_for(name, given.seed, given.only), Path(folder)))
            continue
        faults = soak(parser, given.seed, given.count, given.seconds, int(given.gigabytes * _GIGABYTE))
        for number, fault in faults[:_TOLD]:
            again = f"python -m tests.soak.mutations {name} --seed {given.seed} --only {number}"
            print(f"{name}: {fault}\n    {again}")
        print(f"{name}: {given.count:,} inputs, faults: {len(faults) or 'none'}", flush=True)
        failed = failed or bool(faults)
    return int(failed)


def soak(parser: Parser, seed: int, count: int, seconds: int, growth: int) -> list[tuple[int, str]]:
    """Number and fault of each input that has one."""
    faults: list[tuple[int, str]] = []
    number = 0
    while number < count:
        stop = min(number + _BATCH, count)
        readable, writable = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            _parse_each(parser, seed, range(number, stop), writable, seconds, growth)
        os.close(writable)
        with open(readable, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if fault := json.loads(line):
                    faults.append((number, fault))
                number += 1
        _, status = os.waitpid(child, 0)
        if number < stop:  # the child died of this input
            ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
            faults.append((number, f"its process ended ({ended}; SIGALRM: more than {seconds} s)"))
            number += 1
    return faults


def _parse_each(parser: Parser, seed: int, numbers: range, writable: int, seconds: int, growth: int) -> NoReturn:
    """The whole of a child, which is killed by its alarm: compiled code is not interrupted by less."""
    try:
        _limit(growth)
        with tempfile.TemporaryDirectory() as folder:
            tempfile.tempdir = folder  # what parsers keep to its end goes with it
            for number in numbers:
                place = Path(folder) / str(number)
                place.mkdir()
                signal.alarm(seconds + (_IMPORT_SECONDS if number == numbers[0] else 0))
                path = parser.make(random_for(parser.name, seed, number), place)
                fault = ""
                try:
                    parser.parse(path)
                except Exception as error:
                    fault = fault_of(path, error)
                os.write(writable, json.dumps(fault).encode() + b"\n")
                shutil.rmtree(place, ignore_errors=True)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _limit(growth: int) -> None:
    """Of addresses: what is asked for and never touched counts as well."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + growth, now + growth))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())
