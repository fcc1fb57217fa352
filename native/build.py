"""Compile this folder into one shared library, ``variegate/_native.so``: ``python native/build.py [--levels all]``.

The sources are C++17 without a C++ library, so that the C driver of any compiler links them: ``$CC``, gcc, clang, or
the compiler of PyPI's ``ziglang``. Files of ``kernels/`` and ``lowering/`` are compiled once for each level of x86-64,
from what every processor has to AVX-512 with VBMI, VNNI and VPOPCNTDQ; Python picks a level when it loads the library.
All others are compiled for the oldest. Only what changed is compiled again.

``--fuzz`` makes a program of each file of ``fuzz/`` instead, which feeds mutated bytes to a parser under sanitizers:
``build/native/fuzz/NAME [ITERATIONS [SEED]]``.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
ROOT = SOURCES.parent
LIBRARY = ROOT / "variegate" / "_native.so"
OBJECTS = ROOT / "build" / "native"
FUZZERS = OBJECTS / "fuzz"

FLAGS = (
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    # a * b + c rounds twice on every processor: pixels are the same bits everywhere.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wall",
    "-Wextra",
    # A switch over the instructions of a kind (constants.h) that forgets one.
    "-Werror=switch",
    "-Wno-psabi",
    # In GCC's own headers of intrinsics. clang does not know the first name.
    "-Wno-maybe-uninitialized",
    "-Wno-unknown-warning-option",
    "-Wno-unknown-pragmas",
)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")

# GCC 12 warns of its own headers of AVX-512. The other levels check the same code.
_AVX512 = ("-march=x86-64-v4", "-Wno-uninitialized")
# Names of levels are parts of symbols: vg_run_v3.
X86_LEVELS = {
    "base": ("-march=x86-64",),
    "v2": ("-march=x86-64-v2",),
    "v3": ("-march=x86-64-v3",),
    "v4": _AVX512,
    "vbmi": (*_AVX512, "-mavx512vbmi", "-mavx512vnni", "-mavx512vpopcntdq"),
}
FOLDERS_OF_LEVELS = ("kernels", "lowering")
# Kernels that use nothing of VBMI and VNNI: a library with v4 has no other code of them for vbmi.
KERNELS_WITHOUT_VBMI = ("brushes", "fields", "fingerprint")
# Levels whose simd.h includes all intrinsics.
PRECOMPILED_LEVELS = ("v3", "v4", "vbmi")


@dataclass(frozen=True)
class Compiler:
    """``command`` compiles C++ for ``machine`` and links shared libraries."""

    command: tuple[str, ...]
    machine: str
    is_zig: bool

    def flags(self, level: str) -> list[str]:
        flags = X86_LEVELS.get(level, ()) if self.machine == "x86_64" else ()
        # zig spells x86-64-v3 x86_64_v3.
        return [flag.replace("x86-64", "x86_64").replace("-v", "_v") if self.is_zig else flag for flag in flags]


def target_machine() -> str:
    """The processor that is compiled for: $VARIEGATE_TARGET (for ziglang, which compiles for any), else this one's."""
    machine = os.environ.get("VARIEGATE_TARGET", platform.machine()).lower()
    return "x86_64" if machine == "amd64" else "aarch64" if machine == "arm64" else machine


def needs_ziglang() -> bool:
    """True if no compiler is installed, or none that compiles for another processor."""
    if "CC" in os.environ:
        return False
    return "VARIEGATE_TARGET" in os.environ or not any(map(shutil.which, ("gcc", "clang", "cc")))


def find_compiler() -> Compiler:
    machine = target_machine()
    command: tuple[str, ...]
    if needs_ziglang():
        command = (sys.executable, "-m", "ziglang", "cc")
    elif "CC" in os.environ:
        command = tuple(shlex.split(os.environ["CC"]))
    else:
        command = (next(filter(None, map(shutil.which, ("gcc", "clang", "cc")))),)
    is_zig = "ziglang" in command or Path(command[0]).name == "zig"
    if is_zig and sys.platform == "linux":
        # The oldest C library that wheels of this tag meet.
        command = (*command, "-target", f"{machine}-linux-gnu.2.17")
    return Compiler(command, machine, is_zig)


def wheel_tag() -> str:
    system = "macosx_11_0" if sys.platform == "darwin" else "manylinux_2_17"
    machine = "arm64" if sys.platform == "darwin" and target_machine() == "aarch64" else target_machine()
    return f"py3-none-{system}_{machine}"


def host_levels() -> list[str]:
    """The best level of this processor."""
    flags = _cpu_flags()
    best = "base"
    needed = {
        "v2": {"ssse3", "sse4_2", "popcnt"},
        "v3": {"avx2", "bmi2", "fma", "movbe"},
        "v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
        "vbmi": {"avx512vbmi", "avx512_vnni", "avx512_vpopcntdq"},
    }
    for level, features in needed.items():
        if not features <= flags:
            break
        best = level
    return [best]


def _cpu_flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.split(":")[1].split()) for line in lines if line.startswith("flags")), set())


def build(library: Path = LIBRARY, levels: Sequence[str] | None = None, flags: Sequence[str] = ()) -> Path:
    """Compile and link ``library``. ``levels``: names of X86_LEVELS (all); other processors have one, "base".

    ``flags``: further flags of the compiler, such as SANITIZERS.
    """
    compiler = find_compiler()
    levels = list(levels or X86_LEVELS) if compiler.machine == "x86_64" else ["base"]
    jobs = [(source, "base") for source in _common_sources()]
    kernels = sorted(path for folder in FOLDERS_OF_LEVELS for path in SOURCES.glob(f"{folder}/*.cpp"))
    jobs += [(kernel, level) for kernel in kernels for level in _levels_of(kernel, levels)]
    with _lock():
        objects = sorted(_compile_all(compiler, jobs, flags))
        strip = [] if flags else ["-s"]
        _link(compiler, ["-shared", *strip, *flags], objects, library)
    return library


def build_fuzzers() -> list[Path]:
    """Compile and link the programs of ``fuzz/`` with all but the kernels."""
    compiler = find_compiler()
    sources = sorted(SOURCES.glob("fuzz/*.cpp"))
    with _lock():
        objects = _compile_all(compiler, [(source, "base") for source in [*sources, *_common_sources()]], SANITIZERS)
        common = objects[len(sources) :]
        fuzzers = []
        for source, main in zip(sources, objects, strict=False):
            fuzzers.append(FUZZERS / source.stem)
            _link(compiler, SANITIZERS, [main, *common], fuzzers[-1])
    return fuzzers


def _levels_of(kernel: Path, levels: Sequence[str]) -> list[str]:
    """The levels that a kernel is compiled for, in a library of these levels."""
    is_same_as_v4 = kernel.stem in KERNELS_WITHOUT_VBMI and "v4" in levels
    return [level for level in levels if not (is_same_as_v4 and level == "vbmi")]


@contextmanager
def _lock() -> Iterator[None]:
    """Wait for builds of other processes: what they compile is not compiled again."""
    OBJECTS.mkdir(parents=True, exist_ok=True)
    with (OBJECTS / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _common_sources() -> list[Path]:
    """What is compiled once, for the oldest level."""
    return sorted(path for path in SOURCES.rglob("*.cpp") if path.parent.name not in (*FOLDERS_OF_LEVELS, "fuzz"))


def objects_folder(compiler: Compiler | None = None, flags: Sequence[str] = ()) -> Path:
    """The folder of the objects that these flags make, by level."""
    compiler = compiler or find_compiler()
    key = json.dumps([compiler.command, FLAGS, X86_LEVELS, list(flags)])
    return OBJECTS / f"{compiler.machine}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def _compile_all(compiler: Compiler, jobs: Sequence[tuple[Path, str]], flags: Sequence[str]) -> list[Path]:
    """Compile sources for levels -> the objects, in this order."""
    folder = objects_folder(compiler, flags)
    objects = {job: folder / job[1] / f"{job[0].parent.name}-{job[0].stem}.o" for job in jobs}

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = {
            level: pool.submit(_precompile_header, compiler, level, folder, flags)
            for level in sorted({level for _, level in jobs})
            if level in PRECOMPILED_LEVELS and not compiler.is_zig
        }

        def compile_one(job: tuple[Path, str]) -> None:
            source, level = job
            header = [headers[level].result()] if level in headers else []
            included = [word for compiled in header for word in ("-include", str(compiled.with_suffix("")))]
            # GCC does not name the header in the dependencies of an object.
            if not _is_current(objects[job]) or _is_older(objects[job], header):
                _compile(compiler, source, level, objects[job], [*flags, *included])

        # Files that need no header come first, then those that take longest.
        ordered = sorted(jobs, key=lambda job: (job[1] in headers, -job[0].stat().st_size))
        list(pool.map(compile_one, ordered))
    return list(objects.values())


def _precompile_header(compiler: Compiler, level: str, folder: Path, flags: Sequence[str]) -> Path:
    """Compile simd.h for a level -> its compiled form, simd.h.gch, next to a simd.h to include.

    GCC takes 0.4 s to read its intrinsics, as long as it takes for the code of most kernels.
    """
    header = folder / level / "simd.h"
    text = f'#include "{SOURCES / "simd.h"}"\n'
    if not header.exists() or header.read_text() != text:
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(text)
    compiled = header.with_suffix(".h.gch")
    if not _is_current(compiled):
        _compile(compiler, header, level, compiled, [*flags, "-x", "c++-header"])
    return compiled


def _is_older(target: Path, objects: Sequence[Path]) -> bool:
    """True if an object was compiled since, or there is no target."""
    return not target.exists() or any(path.stat().st_mtime_ns > target.stat().st_mtime_ns for path in objects)


def _link(compiler: Compiler, flags: Sequence[str], objects: Sequence[Path], target: Path) -> None:
    """Link ``target``, unless it was linked from these objects (and of more levels, perhaps) as they are now.

    A file in build/native/linked lists the objects of each target. Times do not show that another compiler's objects
    were linked since.
    """
    record = OBJECTS / "linked" / hashlib.sha256(str(target.resolve()).encode()).hexdigest()[:16]
    linked = record.read_text().splitlines() if record.exists() else []
    names = [str(path) for path in objects]
    if set(names) <= set(linked) and not _is_older(target, objects):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    record.parent.mkdir(parents=True, exist_ok=True)
    # Written beside it and renamed: a process may have the old one mapped.
    made = target.with_suffix(f".{os.getpid()}")
    subprocess.run([*compiler.command, *flags, *names, "-lm", "-o", str(made)], check=True)
    # A build that is killed between the two leaves no record, and the next build links again.
    record.unlink(missing_ok=True)
    made.replace(target)
    record.write_text("\n".join(names))


def _compile(compiler: Compiler, source: Path, level: str, target: Path, flags: Sequence[str]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Written beside the target and renamed: a build may be killed.
    made, rule = target.with_suffix(f".{os.getpid()}.o"), target.with_suffix(f".{os.getpid()}.d")
    command = [*compiler.command, *FLAGS, *flags, *compiler.flags(level), f"-DVG_LEVEL={level}"]
    command += ["-MMD", "-MF", str(rule), "-c", str(source), "-o", str(made)]
    subprocess.run(command, check=True)
    rule.replace(target.with_suffix(".d"))
    made.replace(target)


def _is_current(target: Path) -> bool:
    """True if no file that ``target`` was compiled from has changed since."""
    rule = target.with_suffix(".d")
    if not target.exists() or not rule.exists():
        return False
    sources = rule.read_text().replace("\\\n", " ").split(":", 1)[1].split()
    compiled = target.stat().st_mtime_ns
    return all(os.path.exists(source) and os.stat(source).st_mtime_ns <= compiled for source in sources)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", choices=("host", "all"), default="host", help="levels of x86-64 (host)")
    parser.add_argument("--out", type=Path, default=LIBRARY, help="the library")
    parser.add_argument("--sanitize", action="store_true", help="with ASan and UBSan")
    parser.add_argument("--fuzz", action="store_true", help="the programs of fuzz/ instead")
    parser.add_argument("--before-pip", action="store_true", help="nothing if pip has to install the compiler first")
    arguments = parser.parse_args()
    if arguments.before_pip and needs_ziglang():
        return
    if arguments.fuzz:
        print(*build_fuzzers(), sep="\n")
        return
    levels = None if arguments.levels == "all" else host_levels()
    print(build(arguments.out, levels, SANITIZERS if arguments.sanitize else ()))


if __name__ == "__main__":
    main()
