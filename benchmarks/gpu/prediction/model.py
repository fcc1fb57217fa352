"""Seconds that a launch takes on a device: the largest of what its units, its memory and its launch need."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.gpu.prediction.devices import COPY_SHARE, ISSUE, LAUNCH_SECONDS, REACHED, Device
from benchmarks.gpu.prediction.machine_code import Code
from benchmarks.gpu.prediction.weights import Executed

LANES = 32
# Lines of the cache that a load of a warp touches, on average: pixels of a row lie side by side, a turned row's not.
TOUCHED = 2.0


@dataclass(frozen=True)
class Prediction:
    """``bounds``: seconds by each unit alone, at its full rate; ``seconds``: as likely as such a model can say."""

    bounds: dict[str, float]
    occupancy: float

    @property
    def bound(self) -> str:
        return max(self.bounds, key=lambda name: self.bounds[name])

    @property
    def seconds(self) -> float:
        waiting = {
            name: seconds / (1.0 if name in ("memory", "launch") else REACHED) for name, seconds in self.bounds.items()
        }
        launch = waiting.pop("launch")
        return max(waiting.values()) + launch


def occupancy(code: Code, device: Device) -> float:
    """Warps that a multiprocessor holds of this code, as a share of the most that it can hold."""
    by_registers = device.registers // (-(-code.registers // 8) * 8 * LANES * code.warps)
    by_shared = device.shared // (code.shared + 1024)
    return min(by_registers, by_shared, device.programs, device.warps // code.warps) * code.warps / device.warps


def predict(code: Code, executed: Executed, programs: float, moved: float, device: Device) -> Prediction:
    """``programs``: of the launch; ``moved``: bytes that it must read and write."""
    warps = programs * code.warps
    per_second = device.multiprocessors * device.clock
    count = executed.by_class
    integer, conversions = count.get("integer", 0.0), count.get("conversions", 0.0)
    multiplied = count.get("imad", 0.0) + count.get("fp32", 0.0)
    addressed = TOUCHED * (count.get("loads", 0.0) + count.get("stores", 0.0)) + count.get("shared", 0.0)
    addressed += 4 * count.get("atomics", 0.0)
    bounds = {
        "issue slots": sum(count.values()) / ISSUE,
        "fp64": count.get("fp64", 0.0) * LANES / device.fp64,
        "integer units": integer * LANES / device.integer,
        "multiplications": multiplied * LANES / device.fp32,
        "conversions": conversions * LANES / device.conversions,
        "loads and stores": addressed * LANES / device.addresses,
    }
    seconds = {name: clocks * warps / per_second for name, clocks in bounds.items()}
    seconds |= {"memory": moved / (COPY_SHARE * device.memory), "launch": LAUNCH_SECONDS}
    return Prediction(seconds, occupancy(code, device))
