"""The plain executor: short NumPy code that defines what every instruction means (docs/operations.md)."""

from tests.oracle.executor import apply, run

__all__ = ["apply", "run"]
