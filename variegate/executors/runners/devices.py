"""Device names: which there are on this machine, a clear refusal of the others, and the executor of each."""

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
    """The device a name stands for: "cpu" or "cuda:N". ``argument``: its name in errors.

    Raises:
        ValueError: for other names, and for a CUDA device that this machine, this PyTorch or a missing Triton cannot
            run. Nothing falls back to the CPU.
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
    """The function that runs one sampled image on the CPU, contiguous [H, W, C]; see ``executors.cpu.run_one``."""
    from variegate.executors.cpu import run_one

    return run_one


def get_executor(device: str) -> Callable[[Program, Sequence[ImageArray]], list[AnyArray]]:
    """The executor of a device, see ``resolve``.

    It takes a sampled program and its images ([H, W, C], C = 1 or 3, or [H, W]), and gives one array per output,
    on the host whichever device it is.

    Raises:
        ValueError: for a device that is not there; it says what is accepted.
    """
    # Imported on demand: an executor costs time at the start.
    name = resolve(device)
    if name == "cpu":
        from variegate.executors.cpu import run as run_compiled

        return run_compiled
    from variegate.executors.cuda.executor import run_on_host_arrays

    return partial(run_on_host_arrays, device=name)
