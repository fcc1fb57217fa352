"""Processor instructions that kernels may name: levels of x86-64, and the one that code is generated for.

Numba compiles for this very processor, or for the one that ``NUMBA_CPU_NAME`` names; there it still adds the features
of this one, unless ``NUMBA_CPU_FEATURES`` is set too.
"""

from __future__ import annotations

from dataclasses import dataclass

import llvmlite.binding
import numba as nb

_V2 = frozenset({"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@dataclass(frozen=True)
class Level:
    """``cpu_name`` and ``extra`` are what ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` say to compile for it;
    ``features`` are those (by LLVM's names) that a processor must have to run the code."""

    name: str
    cpu_name: str
    extra: tuple[str, ...]
    features: frozenset[str]


LEVELS = (
    Level("x86-64-v2", "x86-64-v2", (), _V2),
    Level("x86-64-v3", "x86-64-v3", (), _V3),
    Level("x86-64-v4", "x86-64-v4", (), _V4),
    Level("x86-64-v4-vbmi", "x86-64-v4", ("avx512vbmi", "avx512vnni"), _V4 | {"avx512vbmi", "avx512vnni"}),
)
"""From what every processor since 2009 can run to the best."""


def host_features() -> frozenset[str]:
    """Of this very processor, as far as LLVM knows."""
    return frozenset(name for name, has in llvmlite.binding.get_host_cpu_features().items() if has)


def host_level() -> Level | None:
    """The best one that this processor can run; None where it can run none of them, such as on aarch64."""
    found = host_features()
    return next((level for level in reversed(LEVELS) if level.features <= found), None)


def target_features() -> frozenset[str]:
    """Features that code is generated for. Of a processor named otherwise than by its level, nothing is assumed.

    Of this very processor it is what its level has, so that code that was compiled for that level elsewhere and is
    loaded here has the same branches as code that is compiled here.
    """
    name = nb.config.CPU_NAME
    if name in (None, "host"):
        level = host_level()
        found = host_features() if level is None else level.features
    else:
        found = next((level.features for level in LEVELS if level.cpu_name == name), frozenset())
    for change in filter(None, (nb.config.CPU_FEATURES or "").split(",")):
        found = found | {change[1:]} if change.startswith("+") else found - {change[1:]}
    # As Numba has it, where users switch AVX off.
    return found if nb.config.ENABLE_AVX else frozenset(name for name in found if not name.startswith("avx"))


TARGET_FEATURES = target_features()
HAS_BYTE_SHUFFLE = "ssse3" in TARGET_FEATURES
HAS_AVX2 = "avx2" in TARGET_FEATURES
HAS_AVX512 = _V4 <= TARGET_FEATURES
HAS_BYTE_PERMUTE = HAS_AVX512 and "avx512vbmi" in TARGET_FEATURES
HAS_BYTE_DOT = HAS_BYTE_PERMUTE and "avx512vnni" in TARGET_FEATURES
