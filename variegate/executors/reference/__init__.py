"""The plain executor: short NumPy code that defines what every instruction means (docs/operations.md)."""

from variegate.executors.reference.executor import apply, run

__all__ = ["apply", "run"]
