"""Which panel of ``--help`` an option or a command stands in: the same option in the same panel everywhere."""

from __future__ import annotations

_OPTIONS: dict[str, tuple[str, ...]] = {
    "Augmentation": ("policy", "policies", "sweep", "copies", "size", "seed", "epoch", "padding", "flip", "cutout"),
    "Search": ("population", "interval", "operations", "space", "validation"),
    "Training": (
        *("model", "train", "test", "repeats", "epochs", "batch-size", "lr", "lr-schedule", "weight-decay", "momentum"),
        *("clip", "precision", "capture"),
    ),
    "Sheet": ("images", "samples", "cell"),
    "Loader": ("threads", "cache", "cache-side", "prefetch", "device"),
    "Model": ("consume", "model-ms"),
    "Measurement": ("seconds", "limit"),
    "Work": ("tasks", "task-items", "task-seconds", "variation"),
    "Dispatcher": ("queue", "in-flight", "strategies"),
    "Failures": ("failure-rate", "restart"),
    "Devices": (
        *("devices", "speeds", "spread", "workers", "address", "allocation", "steal", "backend"),
        "gpus-per-member",
    ),
    "Running": ("resume", "on-error", "changed", "ordered", "delete-damaged", "source"),
    "Output": ("layout", "shard-size", "format", "quality", "out", "json", "help"),
}
REST = "Options"
_OPTION_PANELS = {f"--{name}": panel for panel, names in _OPTIONS.items() for name in names}

_COMMANDS: dict[str, tuple[str, ...]] = {
    "Try it": ("demo", "preview", "warm"),
    "Data sets on disk": ("augment", "verify", "replay"),
    "Find a policy": ("search", "evaluate"),
    "Find the bottleneck": ("bench", "doctor", "simulate"),
}
OTHERS = "More"
_COMMAND_PANELS = {name: panel for panel, names in _COMMANDS.items() for name in names}


def panel_of_option(name: str) -> str:
    """``REST`` for one that is not listed."""
    return _OPTION_PANELS.get(name, REST)


def panel_of_command(name: str) -> str:
    """``OTHERS`` for one that is not listed."""
    return _COMMAND_PANELS.get(name, OTHERS)


def in_order(panels: set[str]) -> list[str]:
    """Panels as ``--help`` shows them; those that no table lists come last."""
    known = [*_OPTIONS, *_COMMANDS]
    return sorted(panels, key=lambda panel: (known.index(panel) if panel in known else len(known), panel == REST))
