"""The devices that W3 is predicted for, from NVIDIA's data sheets, white papers and programming guide.

Rates are results per clock and multiprocessor (CUDA C++ Programming Guide, "Arithmetic Instructions"); a warp has 32.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """``clock``: Hz under load (boost); ``memory``: bytes per second. ``warps``, ``programs``, ``shared``: the most on
    a multiprocessor."""

    name: str
    capability: int
    multiprocessors: int
    clock: float
    memory: float
    fp64: float
    fp32: float
    integer: float
    conversions: float = 16.0
    # Addresses that the load and store units take.
    addresses: float = 32.0
    warps: int = 64
    programs: int = 32
    shared: int = 228 << 10
    registers: int = 64 << 10


DEVICES = (
    Device("A100 SXM, 80 GB", 80, 108, 1.41e9, 2.039e12, fp64=32, fp32=64, integer=64, shared=164 << 10),
    Device("H100 SXM", 90, 132, 1.755e9, 3.35e12, fp64=64, fp32=128, integer=64),
    Device("H200 SXM", 90, 132, 1.755e9, 4.8e12, fp64=64, fp32=128, integer=64),
    Device("RTX 4090", 89, 128, 2.52e9, 1.008e12, 2, 128, 64, warps=48, programs=24, shared=100 << 10),
)
ISSUE = 4.0  # warp instructions per clock and multiprocessor
COPY_SHARE = 0.9  # of the memory's bandwidth that a plain copy reaches
LAUNCH_SECONDS = 3e-6  # from the end of a launch's work to the begin of the next one's
UPLOAD_SECONDS, UPLOAD_BYTES_PER_SECOND = 8e-6, 20e9  # of the program, pinned memory over PCIe 4 or 5
# Programs wait for memory and for one another; well made kernels of this kind reach about this part of a bound.
REACHED = 0.6
