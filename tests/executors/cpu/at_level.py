"""Vector blocks at one level: ``python -m tests.executors.cpu.at_level CPU FEATURES TASK...``.

A task is ``run``, on this processor; or ``TRIPLE=CPU``, a target that they are compiled for; or ``broken``, which in a
fork compiles one of them for a target that lacks its instructions. A line is said of each when it is done.

Which blocks there are is decided once in a process, by the level in ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES``.
"""

from __future__ import annotations

import os
import sys

from tests.executors.cpu.blocks import assemble
from tests.executors.cpu.twins import check_all


def main(cpu: str, features: str, *tasks: str) -> None:
    for task in tasks:
        said: list[object] = []
        if task == "run":
            said += check_all(cpu, features)
        elif task == "broken":
            said.append(_status_of_broken())
        else:
            triple, _, processor = task.partition("=")
            assemble(triple, processor, features)
        print(task, *said, flush=True)


def _status_of_broken() -> int:
    child = os.fork()
    if child == 0:
        assemble("aarch64-unknown-linux-gnu", "generic", "", ["lookup_by_bytes"])
        os._exit(0)
    return os.waitpid(child, 0)[1]


if __name__ == "__main__":
    main(*sys.argv[1:])
