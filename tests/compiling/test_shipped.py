"""Compiled code that is installed: taken where it fits in every respect, and nowhere else."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import typeof
from numba.core import config

from kernels.build import SHIPPED, settings_of
from tests.compiling.tiny import ROOT
from tests.compiling.tiny import run as run_tiny
from variegate import doctor
from variegate.compiling import stored as shipped_module
from variegate.compiling.levels import LEVELS, Level, host_level
from variegate.compiling.stored import Shipped, pack, versions, write_manifest
from variegate.jobs import warm
from variegate.program.rng import _fill_keys
from variegate.transforms import Identity

NAME, DIGEST = "program.kernel", "digest"


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shipped:
    monkeypatch.setattr(shipped_module, "_rebuild", lambda *data: data)
    pack(str(tmp_path / "level"), [(NAME, DIGEST, "(int64,)", (("library", "object", (b"code", b"bitcode")), 1, 2))])
    return Shipped(str(tmp_path / "level"), {NAME: DIGEST})


def test_what_is_packed_is_loaded(code: Shipped) -> None:
    assert code.load(NAME, DIGEST, "(int64,)", "context") == ("context", "library", b"code", [1, 2])


def test_code_of_other_sources_or_types_is_not_loaded(code: Shipped) -> None:
    assert code.load(NAME, "other", "(int64,)", None) is None
    assert code.load("other", DIGEST, "(int64,)", None) is None
    assert code.load(NAME, DIGEST, "(float32,)", None) is None
    # Not even where the manifest says that there is some.
    assert Shipped(code.folder, {NAME: "other"}).load(NAME, "other", "(int64,)", None) is None
    shutil.copy(Path(code.folder) / NAME, Path(code.folder) / "other")
    assert Shipped(code.folder, {"other": DIGEST}).load("other", DIGEST, "(int64,)", None) is None


def test_damaged_code_is_not_loaded(code: Shipped) -> None:
    path = Path(code.folder) / NAME
    whole = path.read_bytes()
    for n in range(len(whole)):
        for damaged in (whole[:n], whole[:n] + bytes([whole[n] ^ 8]) + whole[n + 1 :]):
            path.write_bytes(damaged)
            assert code.load(NAME, DIGEST, "(int64,)", None) is None
    path.unlink()
    assert code.load(NAME, DIGEST, "(int64,)", None) is None


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with code for all levels; here, as if nobody had said what to compile for."""
    folder = tmp_path / shipped_module.PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    write_manifest(str(folder), [level.name for level in LEVELS], {NAME: DIGEST})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, shipped_module.PACKAGE, raising=False)
    for name, value in (("CPU_NAME", None), ("CPU_FEATURES", None), ("ENABLE_AVX", 1)):
        monkeypatch.setattr(config, name, value)
    monkeypatch.setattr(shipped_module, "host_level", lambda: LEVELS[1])
    return folder


def found() -> Shipped | None:
    return shipped_module.shipped.__wrapped__()


def test_the_level_of_the_processor_is_taken(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in LEVELS:
        monkeypatch.setattr(shipped_module, "host_level", lambda level=level: level)
        code = found()
        assert code is not None
        assert code.folder == str(package / level.name)
        assert (code.has(NAME, DIGEST), code.has(NAME, "other")) == (True, False)
    monkeypatch.setattr(shipped_module, "host_level", lambda: None)
    assert found() is None


@pytest.mark.parametrize(("name", "value"), [("CPU_NAME", "x86-64"), ("CPU_FEATURES", ""), ("ENABLE_AVX", 0)])
@pytest.mark.usefixtures("package")
def test_who_says_what_to_compile_for_gets_it(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> None:
    assert found() is not None
    monkeypatch.setattr(config, name, value)
    assert found() is None


@pytest.mark.parametrize("what", list(versions()))
def test_code_for_other_versions_is_not_taken(package: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    manifest = json.loads((package / "manifest.json").read_text())
    assert found() is not None
    assert shipped_module.mismatch() == ""
    here = manifest["versions"][what]
    manifest["versions"][what] += "1"
    (package / "manifest.json").write_text(json.dumps(manifest))
    assert found() is None
    assert shipped_module.mismatch() == f"{what} {here}1 (installed: {here})"
    # Who says what to compile for wants no other code.
    monkeypatch.setattr(config, "CPU_NAME", "x86-64")
    assert shipped_module.mismatch() == ""


def test_a_package_that_is_not_whole_or_not_there(package: Path) -> None:
    for text in ("", "{}", '{"versions": 3}', "[]", "\udcff"):
        (package / "manifest.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        assert (found(), shipped_module.mismatch()) == (None, "")
    (package / "manifest.json").unlink()
    assert (found(), shipped_module.mismatch()) == (None, "")
    (package / "__init__.py").unlink()
    package.rmdir()
    assert found() is None


def claim_others(package: Path) -> None:
    """Say in the package's table of contents that it was made with other versions."""
    manifest = json.loads((package / "manifest.json").read_text())
    manifest["versions"].update(numba="0.1.2", numpy="1.0")
    (package / "manifest.json").write_text(json.dumps(manifest))


OTHERS = f"numba 0.1.2 (installed: {versions()['numba']}), numpy 1.0 (installed: {versions()['numpy']})"
NOT_USED = (
    f"variegate: the installed kernels wheel is not used: it needs {OTHERS}. To fix this, run: "
    "pip install --upgrade 'variegate[kernels]'"
)


@pytest.mark.process
def test_one_line_says_what_the_installed_code_needs(package: Path, tmp_path: Path) -> None:
    claim_others(package)
    path = os.pathsep.join(map(str, (ROOT, tmp_path / "a", tmp_path / "b", tmp_path)))
    settings = {"PYTHONPATH": path, "NUMBA_CPU_NAME": None, "NUMBA_CPU_FEATURES": None, "NUMBA_ENABLE_AVX": None}
    done, said = run_tiny(tmp_path / "a", env=settings)
    assert done["compiled"]
    assert [line for line in said if "compil" not in line] == [NOT_USED]  # those depend on the time it took
    # Nothing is to be compiled any more.
    assert run_tiny(tmp_path / "a", env=settings)[1] == []
    assert run_tiny(tmp_path / "b", env={**settings, "VARIEGATE_QUIET": "1"})[1] == []


def test_doctor_reports_installed_code_that_is_not_used(package: Path) -> None:
    def notes() -> list[str]:
        pixels = np.zeros((2, 8, 8, 3), np.uint8)
        found = doctor((pixels, np.arange(2)), Identity(), batch_size=2, seconds=0.01, device="cpu")
        return [note for note in found.notes if "kernels wheel" in note]

    assert notes() == []
    claim_others(package)
    [note] = notes()
    assert note.endswith("pip install --upgrade 'variegate[kernels]'")
    assert OTHERS in note


def test_a_kernel_that_is_shipped_is_called_by_no_other() -> None:
    """Code that is shipped is without what its callers would be compiled with."""
    from variegate.program.compiled import KERNELS

    entries = {id(entry) for entry in warm._entries(SHIPPED)}
    for kernel in KERNELS:
        named = [kernel.py_func.__globals__.get(name) for name in kernel.py_func.__code__.co_names]
        assert [other for other in named if id(other) in entries] == [], kernel


# -- both wheels in a fresh environment --------------------------------------------------------------------------------

# Whatever is opened to be written, or made, is refused, as on a disk that is read-only, except below the folder in the
# first argument; LEVEL_FEATURES are what the processor is said to have.
PROBE = """
import os, sys

def refuse(event, arguments):
    if arguments and str(arguments[0]).startswith(sys.argv[1]):
        return
    if event == "open":
        path, mode, flags = arguments
        writes = (flags or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or set(mode or "r") & set("wax+")
        if writes and not str(path).startswith(("/dev/", "/proc/")) and not isinstance(path, int):
            raise PermissionError(30, "Read-only file system", path)
    elif event in ("os.mkdir", "os.rename", "os.remove", "tempfile.mkstemp", "tempfile.mkdtemp", "subprocess.Popen"):
        raise PermissionError(30, "Read-only file system", arguments[0])

sys.addaudithook(refuse)
import json
import llvmlite.binding
from numba.core import event

features = LEVEL_FEATURES
if features is not None:
    has = llvmlite.binding.get_host_cpu_features()
    has = {name: on and (name in features or not name.startswith(LATER)) for name, on in has.items()}
    llvmlite.binding.get_host_cpu_features = lambda: type("Features", (dict,), {"flatten": lambda self: ",".join(
        ("+" if on else "-") + name for name, on in self.items())})(has)

class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
import numpy as np
import torch
import variegate as vg
from variegate import policies
from variegate.jobs import warm
from variegate import transforms as T
from variegate.compiling.stored import shipped

rng = np.random.default_rng(0)
images = [rng.integers(0, 256, size, dtype=np.uint8) for size in ((37, 53, 3), (64, 64, 3), (17, 31, 1), (1, 1, 3))] * 4
same = True
for t in (
    T.Compose([T.RandomHorizontalFlip(), T.RandAugment(), T.Normalize((0.5,), (0.5,))]),
    T.Compose([T.RandomResizedCrop(24), policies.AugMix()]),
    T.Compose([T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.GaussianBlur(5), T.RandomRotation(30, interpolation="bilinear")]),
):
    ids = range(len(images))
    pair = [vg.Augmenter(t, device=device)(images, ids=ids) for device in ("cpu", "reference")]
    for a, b in zip(*pair):
        difference = (a.float() - b.float()).abs().max().item()
        same &= difference <= (1 if a.dtype == torch.uint8 else 1e-6)
from pathlib import Path
from variegate.cli import main
indexed = main(["index", str(Path(vg.__file__).parent / "formats" / "photos"), "--out", f"{sys.argv[1]}/photos.vgjpeg"])
print(json.dumps({
    "compiled": Compiled.names, "same": same, "code": shipped() and shipped().folder, "package": vg.__file__,
    "ready": warm.is_ready(), "indexed": indexed,
}))
"""


def pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert run.returncode == 0, run.stderr


def build(folder: Path, *options: str) -> list[Path]:
    """Both wheels, as ``make wheel`` does, but for the environment of its own in which pip would build the first."""
    pip("wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", str(folder), ".")
    command = [sys.executable, "-m", "kernels.build", "--out", str(folder), *options]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return sorted(folder.glob("*.whl"))


def install(folder: Path, wheels: list[Path]) -> tuple[Path, Path]:
    """A fresh environment that has the wheels, and everything else from ours -> (its Python, its packages)."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip("--python", str(python), "install", "--no-deps", "--no-index", "--no-compile", *map(str, wheels))
    packages = next(folder.rglob("site-packages"))
    # As a path alone: what our environment adds to it, such as this checkout, does not count.
    ours = {str(Path(path)) for path in sys.path if path.endswith("site-packages")}
    (packages / "ours.pth").write_text("\n".join(sorted(ours)) + "\n")
    return python, packages


def probe(python: Path, folder: Path, features: frozenset[str] | None = None) -> dict[str, Any]:
    code = PROBE.replace("LEVEL_FEATURES", repr(sorted(features) if features is not None else None))
    code = code.replace("LATER", repr((*sorted(LEVELS[-1].features), "avx", "vaes", "vpclmul", "gfni", "amx")))
    nothing_else = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH") if name in os.environ}
    folder.mkdir()
    (out := folder.with_name(f"{folder.name} out")).mkdir()
    run = subprocess.run(
        [str(python), "-c", code, str(out)], capture_output=True, text=True, check=False, cwd=folder, env=nothing_else
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert list(folder.iterdir()) == []
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


def check_wheels(tmp_path: Path, levels: Sequence[Level], *options: str) -> None:
    wheels = build(tmp_path / "wheels", *options)
    assert [wheel.name.split("-")[0] for wheel in wheels] == ["variegate", "variegate_kernels"]
    names = zipfile.ZipFile(wheels[1]).namelist()
    code = [name for name in names if name.startswith("variegate_kernels/") and name.count("/") == 2]
    assert len(code) == len(levels) * len(SHIPPED)
    python, packages = install(tmp_path / "fresh", wheels)
    best = levels[-1]
    for level in levels:
        done = probe(python, tmp_path / level.name, None if level == best else level.features)
        assert done["package"].startswith(str(packages))
        assert done["code"] == str(packages / "variegate_kernels" / level.name)
        assert (done["compiled"], done["same"], done["ready"], done["indexed"]) == ([], True, True, 0)


x86_64 = pytest.mark.skipif(host_level() is None, reason="there are levels for x86-64 alone")


@pytest.mark.process
@x86_64
def test_nothing_is_compiled_where_the_wheels_are_installed(tmp_path: Path) -> None:
    """With the code that is there for this very processor, which takes no minute to compile."""
    level = host_level()
    assert level is not None
    check_wheels(tmp_path, [level], "--own")


@x86_64
@pytest.mark.slow
def test_every_level_that_this_processor_has(tmp_path: Path) -> None:
    level = host_level()
    assert level is not None
    levels = LEVELS[: LEVELS.index(level) + 1]
    check_wheels(tmp_path, levels, "--levels", *(each.name for each in levels))


@pytest.mark.process
@x86_64
def test_what_is_compiled_for_a_level_runs(tmp_path: Path) -> None:
    """One kernel for the lowest level, by the process that compiles them all for the wheel; for arrays that nobody else
    in this process calls it with, so that no other code of it is there."""
    counters: Any = np.arange(40, dtype=np.uint32).reshape(5, 8)[:, ::2]
    made: Any = np.zeros((5, 4), np.uint32)[:, ::2]
    expected: Any = np.zeros((5, 2), np.uint32)
    key = np.array([7, 9], np.uint32)
    cache, signature = _fill_keys._cache, tuple(map(typeof, (counters, key, made)))
    (tmp_path / "signatures").write_bytes(pickle.dumps({cache.name: signature}))
    command = [sys.executable, "-m", "kernels.level", str(tmp_path / "signatures"), str(tmp_path / "level")]
    environment = {**os.environ, **settings_of(LEVELS[0], str(tmp_path / "cache"))}
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    shipped = Shipped(str(tmp_path / "level"), {cache.name: cache.digest})
    _fill_keys(np.ascontiguousarray(counters), key, expected)  # which also begins Numba's runtime
    code = shipped.load(cache.name, cache.digest, signature, _fill_keys.targetctx)
    code.entry_point(counters, key, made)
    assert expected.any()
    np.testing.assert_array_equal(made, expected)
