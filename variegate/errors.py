"""Errors that say what was wrong: the place, the value it held, and what is accepted."""

from __future__ import annotations

from variegate.outside.addresses import speakable, without_secrets


class PolicyError(ValueError):
    """A transform description (dict, JSON or YAML) that cannot be understood; ``where`` is the path to the bad key."""

    def __init__(self, where: str, got: object, accepted: str) -> None:
        self.where, self.got, self.accepted = where, got, accepted
        super().__init__(speakable(f"{where}: got {got!r}; accepted: {accepted}"))


class DecodeError(ValueError):
    """A file that does not decode to an image; ``path`` names it, as it is; the message has it as it may be printed."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = without_secrets(path)
        self.reason = without_secrets(reason)
        super().__init__(speakable(f"{path}: {reason}"))


class DeviceMemoryError(RuntimeError):
    """A device has no room for a batch: its images, results, or what lies between passes."""
