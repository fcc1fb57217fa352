"""Device names: check that this machine has the device, and return its executor."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from functools import cache, partial

from variegate.arrays import AnyArray, ImageArray
from variegate.program.program import Output, Program
from variegate.program.scalar_draw import ScalarDraw

ACCEPTED = "'cpu', 'cuda' or 'cuda:N' (a GPU), or 'auto' (a GPU if there is one, else 'cpu')"


def resolve(device: object, argument: str = "device") -> str:
    """Return the device's full name, "cpu" or "cuda:N". ``argument``: name of the argument in errors.

    Raises:
        ValueError: for other names, and for a CUDA device without a GPU, a PyTorch with CUDA, or Triton. There is no
            fallback to the CPU.
    """
    name = str(device)
    if re.fullmatch(r"cpu(:\d+)?", name):
        return "cpu"
    if name == "auto":
        import torch

        return _check_cuda("auto", "cuda", argument) if torch.cuda.is_available() else "cpu"
    if re.fullmatch(r"cuda(:\d+)?", name):
        return _check_cuda(name, name, argument)
    raise ValueError(f"{argument}: got {device!r}; accepted: {ACCEPTED}")


def _check_cuda(given: str, name: str, argument: str) -> str:
    import torch

    if torch.version.cuda is None:
        raise ValueError(
            f"{argument}: got {given!r}, but this PyTorch ({torch.__version__}) is built without CUDA; accepted: "
            "'cpu', or a PyTorch with CUDA (https://pytorch.org/get-started)"
        )
    count = torch.cuda.device_count()
    if count == 0:
        raise ValueError(f"{argument}: got {given!r}, but PyTorch finds no NVIDIA GPU; accepted: 'cpu'")
    index = int(name.split(":")[1]) if ":" in name else torch.cuda.current_device()
    if index >= count:
        accepted = "'cuda:0'" if count == 1 else f"'cuda:0' to 'cuda:{count - 1}'"
        raise ValueError(f"{argument}: got {given!r}, but PyTorch finds {count} GPU(s); accepted: {accepted}, 'cpu'")
    if importlib.util.find_spec("triton") is None:
        raise ValueError(f"{argument}: got {given!r}, which needs Triton: pip install 'variegate[cuda]'")
    return f"cuda:{index}"


@cache
def compiled_for_one() -> Callable[[ScalarDraw, ImageArray, Output], AnyArray]:
    """Return ``executors.cpu.run_one``, which runs one sampled image, contiguous [H, W, C]."""
    from variegate.executors.cpu import run_one

    return run_one


def get_executor(device: str) -> Callable[[Program, Sequence[ImageArray]], list[AnyArray]]:
    """Return the executor of a device, see ``resolve``.

    It takes a sampled program and its images ([H, W, C], C = 1 or 3, or [H, W]). It returns one array per output, in
    the host's memory for every device.

    Raises:
        ValueError: for an unavailable device, naming the accepted devices.
    """
    # Imported on demand: importing an executor takes time.
    name = resolve(device)
    if name == "cpu":
        from variegate.executors.cpu import run as run_compiled

        return run_compiled
    from variegate.executors.cuda.executor import run_on_host_arrays

    return partial(run_on_host_arrays, device=name)
