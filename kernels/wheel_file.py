"""Write a wheel of a folder of files, as the specification of binary distributions at packaging.python.org says."""

from __future__ import annotations

import base64
import hashlib
import sys
import sysconfig
import zipfile
from importlib.metadata import version
from pathlib import Path

import variegate
from variegate.compiling.stored import versions

NAME = "variegate_kernels"
URLS = {
    "Documentation": "https://variegate.github.io/variegate/",
    "Source": "https://github.com/variegate/variegate",
    "Issues": "https://github.com/variegate/variegate/issues",
}
DESCRIPTION = """\
# variegate-kernels

Machine code of [Variegate](https://variegate.github.io/variegate/) for x86-64 processors. With it, the first batch does
not wait a minute for compilation. Install both together:

```sh
pip install 'variegate[kernels]'
```

The code is for one version of Variegate, Numba, llvmlite and NumPy, which this package requires."""


def platform_tag() -> str:
    """Of this machine."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def python_tag() -> str:
    """Of this Python, which is that of its binary interface as well."""
    return f"cp{sys.version_info[0]}{sys.version_info[1]}"


def write_wheel(package: Path, out: Path, platform: str) -> Path:
    """The wheel of ``package``, a folder, in the folder ``out``."""
    info = f"{NAME}-{variegate.__version__}.dist-info"
    tag = f"{python_tag()}-{python_tag()}{getattr(sys, 'abiflags', '')}-{platform}"
    numpy_version = versions()["numpy"]
    requirements = [
        f"variegate=={variegate.__version__}",
        *(f"{name}=={version(name)}" for name in ("numba", "llvmlite")),
        f"numpy=={numpy_version}.*",
    ]
    license_text = (Path(__file__).resolve().parent.parent / "LICENSE").read_bytes()
    metadata = [
        "Metadata-Version: 2.4",
        "Name: variegate-kernels",
        f"Version: {variegate.__version__}",
        "Summary: Compiled CPU kernels of Variegate, so that nothing is compiled when it starts.",
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        *(f"Project-URL: {name}, {url}" for name, url in URLS.items()),
        f"Requires-Python: =={sys.version_info[0]}.{sys.version_info[1]}.*",
        *(f"Requires-Dist: {requirement}" for requirement in requirements),
        "Description-Content-Type: text/markdown",
        "",
        DESCRIPTION,
    ]
    wheel = ["Wheel-Version: 1.0", "Generator: variegate", "Root-Is-Purelib: false", f"Tag: {tag}"]
    files = {
        f"{NAME}/{path.relative_to(package).as_posix()}": path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file()
    }
    files[f"{info}/METADATA"] = ("\n".join(metadata) + "\n").encode()
    files[f"{info}/licenses/LICENSE"] = license_text
    files[f"{info}/WHEEL"] = ("\n".join(wheel) + "\n").encode()
    files[f"{info}/RECORD"] = "".join(
        [*(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items()), f"{info}/RECORD,,\n"]
    ).encode()
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{NAME}-{variegate.__version__}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
