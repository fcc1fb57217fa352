"""Arrays of whatever a sample brings: lists, arrays and tensors, or an error that names it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from variegate.errors import shown

Floats = npt.NDArray[np.float64]
# Results are float32.
_MOST = float(np.finfo(np.float32).max) / 1e3


def as_array(name: str, value: Any, accepted: str) -> npt.NDArray[Any]:
    """In the order of this machine's bytes."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_meta:
            kind = "meta" if value.is_meta else str(value.layout).removeprefix("torch.")
            raise TypeError(f"{name}: got a {kind} tensor; accepted: {accepted}, as a dense tensor that holds values")
        value = value.detach().cpu()
        return np.asarray((value.float() if value.dtype == torch.bfloat16 else value).numpy())
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: got {shown(value)}; accepted: {accepted}") from error
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_numbers(name: str, value: Any, accepted: str) -> Floats:
    array = as_array(name, value, accepted)
    if array.dtype.kind not in "iuf":
        what = f"{array.dtype}{list(array.shape)}" if array.ndim else shown(value)
        raise TypeError(f"{name}: got {what}; accepted: {accepted}")
    return array.astype(np.float64)


def not_finite(values: Floats) -> Any:
    """bool[M]: which lines of [M, N] hold what is no finite number, or none as float32."""
    return ~(np.abs(values) <= _MOST).all(axis=1)
