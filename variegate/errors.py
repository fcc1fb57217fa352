"""Errors that say what was wrong: the place, the value it held, and what is accepted."""

from __future__ import annotations


class PolicyError(ValueError):
    """A transform description (dict, JSON or YAML) that cannot be understood; ``where`` is the path to the bad key."""

    def __init__(self, where: str, got: object, accepted: str) -> None:
        self.where, self.got, self.accepted = where, got, accepted
        super().__init__(f"{where}: got {got!r}; accepted: {accepted}")


class DecodeError(ValueError):
    """A file that does not decode to an image; ``path`` names it."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: {reason}")


class DeviceMemoryError(RuntimeError):
    """A device has no room for a batch: its images, results, or what lies between passes."""
