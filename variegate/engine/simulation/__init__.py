"""The dispatcher under a virtual clock: devices that nobody has, failures that nobody waits for.

``simulate`` plays a ``Scenario`` by a ``Strategy``; ``ideal_seconds`` is how long it would take if work could be
divided without end and none were ever lost. All their numbers are simulated: nothing here measures a machine.
"""

from variegate.engine.simulation.inputs import RandomInputs, ideal_seconds
from variegate.engine.simulation.run import Outcome, simulate
from variegate.engine.simulation.scenario import STRATEGIES, Strategy, parse_strategies
from variegate.options.simulation import Scenario

__all__ = [
    "STRATEGIES",
    "Outcome",
    "RandomInputs",
    "Scenario",
    "Strategy",
    "ideal_seconds",
    "parse_strategies",
    "simulate",
]
