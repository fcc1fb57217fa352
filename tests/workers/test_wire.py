"""Objects as parts, and parts through a socket."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from variegate.workers.wire import decode, encode


def test_large_arrays_and_tensors_stay_where_they_are() -> None:
    array = np.arange(10_000, dtype=np.int64).reshape(100, 100)
    tensor = torch.arange(10_000, dtype=torch.float16).to(torch.bfloat16)
    parts = encode({"a": array, "t": [tensor]})
    assert np.shares_memory(np.frombuffer(parts[1], np.int64), array)
    assert np.frombuffer(parts[2], np.uint8).ctypes.data == tensor.data_ptr()
    assert len(bytes(parts[0])) < 1000
    decoded = decode(parts)
    np.testing.assert_array_equal(decoded["a"], array)
    assert torch.equal(decoded["t"][0], tensor)


@pytest.mark.parametrize(
    "value",
    [
        torch.zeros(2, 3, requires_grad=True),
        torch.imag(torch.ones(3000, dtype=torch.complex64).conj()),
        np.ones((30, 400))[:, ::3],
        b"x" * 10_000,
        None,
    ],
    ids=str,
)
def test_anything_that_can_be_pickled_comes_back(value: Any) -> None:
    back = decode(encode([value]))[0]
    assert type(back) is type(value)
    if isinstance(value, torch.Tensor):
        assert (back.dtype, back.requires_grad) == (value.dtype, value.requires_grad)
        assert torch.equal(back.to_dense(), value.to_dense())
    else:
        assert np.array_equal(back, value)
