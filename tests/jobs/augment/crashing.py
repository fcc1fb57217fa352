"""Annotations of which one image's end the process that reads them, as a kernel would that writes anywhere."""

from __future__ import annotations

import os
import signal
from dataclasses import fields
from multiprocessing import parent_process
from typing import Any

from variegate.data.annotated.objects import Objects

_CRASHING = 2


class CrashingObjects(Objects):
    """Those of image ``_CRASHING``. Who reads them outside of a worker is told so: the crash would end everything."""

    @classmethod
    def like(cls, objects: Objects) -> CrashingObjects:
        return cls(**{field.name: getattr(objects, field.name) for field in fields(objects)})

    def targets(
        self, image: int, size: tuple[int, int] | None, mask: str | None, unoutlined: str = "fill"
    ) -> dict[str, Any]:
        if image != _CRASHING:
            return super().targets(image, size, mask, unoutlined)
        if parent_process() is None:
            raise AssertionError("the parent reads what may crash")
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError("unreachable")
