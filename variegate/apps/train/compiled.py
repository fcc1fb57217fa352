"""A model through ``torch.compile``, once for batches of every size: the last of an epoch has fewer images."""

from __future__ import annotations

from typing import Any

import torch

from variegate.apps.train.models import ModelError


class CompiledModel(torch.nn.Module):
    """Called as ``model`` is, which is compiled in the first call. Raises ModelError where that fails."""

    def __init__(self, model: torch.nn.Module, name: str) -> None:
        super().__init__()
        self._name = name
        try:
            self._compiled: Any = torch.compile(model)
        except RuntimeError as error:  # of a Python or a system that torch compiles nothing for
            raise self._failed(error) from error

    def forward(self, images: torch.Tensor) -> Any:
        # Else the second size that comes by has everything compiled once more.
        torch._dynamo.maybe_mark_dynamic(images, 0)
        try:
            return self._compiled(images)
        except torch._dynamo.exc.TorchDynamoException as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> ModelError:
        said = str(error).strip().splitlines()[0]
        return ModelError(
            f"model {self._name}: cannot be compiled ({said}); leave --compile out, or give it what it needs: on a "
            "CPU a C++ compiler"
        )
