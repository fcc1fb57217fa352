"""The machine a figure was measured on, in words that travel with it."""

from __future__ import annotations

import datetime
import os
import platform
import re
from pathlib import Path
from typing import Any


def describe() -> dict[str, Any]:
    """CPU, level, cores, operating system, Python, date and how busy the machine was; no names of hosts or paths."""
    return {
        "cpu": cpu_model(),
        "level": best_level(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "load_average_at_start": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def best_level() -> str:
    """The best level of x86-64 that this processor has; "none" elsewhere."""
    from variegate.native.library import host_level  # here, as peers' environments lack the package

    return host_level() if platform.machine().lower() in ("x86_64", "amd64") else "none"


def cpu_model() -> str:
    """The system's name; hypervisors often hide the model, so family and model numbers are added."""
    path = Path("/proc/cpuinfo")
    fields = dict(re.findall(r"^(.+?)\s*: (.*)$", path.read_text(), re.M)) if path.exists() else {}
    name: str = fields.get("model name", platform.processor() or "unknown")
    return f"{name} (family {fields['cpu family']} model {fields['model']})" if "cpu family" in fields else name
