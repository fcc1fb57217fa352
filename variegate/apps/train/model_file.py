"""``model.pt``: a model that was trained, and all that it takes to use it elsewhere."""

from __future__ import annotations

import io
import os
import pickle
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from variegate import transforms as T
from variegate.apps.train.models import ModelError, model_to_train
from variegate.checks import integer, spelt
from variegate.executors.runners.devices import resolve
from variegate.io.durable import write_atomically
from variegate.ops.description import from_dict

if TYPE_CHECKING:
    from variegate.apps.train.feed import Feed

MODEL_NAME = "model.pt"
_KEYS = ("model", "classes", "weights", "channels", "scoring")
# Names that stand for code of Variegate and timm. Any other imports a module, or has timm ask a server.
_SAFE = re.compile(r"(wrn|airbench)-[\w.-]+|timm:[\w.-]+")

_DAMAGE = (RuntimeError, ValueError, LookupError, TypeError, AttributeError, EOFError, pickle.UnpicklingError)


def write_model(folder: Path, feed: Feed, weights: dict[str, torch.Tensor]) -> None:
    """Write what ``load_model`` reads, for ``torch.load(..., weights_only=True)``. Raises WriteError."""
    plain = feed.plain
    # Of images that keep their size, validation has no other.
    steps = [*plain.transforms] if isinstance(plain, T.Compose) else [T.Resize(feed.size), plain]
    scoring = T.Compose([*([T.Grayscale()] if feed.channels == 1 else []), *steps])
    values = (feed.model, list(feed.classes), weights, feed.channels, scoring.to_dict())
    buffer = io.BytesIO()
    torch.save(dict(zip(_KEYS, values, strict=True)), buffer)
    write_atomically(folder / MODEL_NAME, buffer.getvalue(), durable=True)


@spelt()
def load_model(
    path: str | os.PathLike[str], *, model: str | torch.nn.Module | None = None, device: str = "cpu"
) -> tuple[torch.nn.Module, T.Transform, tuple[str, ...]]:
    """Load a model that ``variegate train`` wrote, ready to predict.

    Nothing in the file is executed, and nothing is imported because of it, except timm for timm's models.

    Args:
        path: ``OUT/model.pt``, or the folder OUT.
        model: for a model of your own, which a file cannot name: "package.module:factory" as for ``--model``, which is
            imported and called with ``num_classes``, or the module itself. The file has its weights.
        device: "cpu", "cuda", "cuda:N", or "auto" for a GPU if there is one.

    Returns:
        - The model in evaluation mode, from images float32 [N, C, H, W] to scores [N, classes].
        - The transform of validation images (resize, crop, normalize): ``scoring(image)``, ``vg.Augmenter(scoring)``.
        - The names of the classes, by their numbers.

    Raises:
        ModelError: for a file that is not a ``model.pt`` or lacks entries, a model that needs ``model=`` or cannot be
            made, and weights that do not fit it.
        FileNotFoundError: if there is no such file.
        ValueError: naming ``device``.
    """
    path, device = Path(path), resolve(device)
    path = path / MODEL_NAME if path.is_dir() else path
    try:
        saved: Any = torch.load(path, map_location="cpu", weights_only=True)
    except _DAMAGE as error:
        raise ModelError(f"{path}: is damaged, or no {MODEL_NAME} of variegate train ({_said(error)})") from error
    if missing := [key for key in _KEYS if not isinstance(saved, dict) or key not in saved]:
        raise ModelError(
            f"{path}: lacks {', '.join(missing)}; accepted: what variegate train wrote. The same train command again "
            "completes the file of an earlier version, and trains nothing"
        )
    name, classes, weights, channels, described = (saved[key] for key in _KEYS)
    scoring = from_dict(described, f"{path}: scoring")
    if model is None and not _SAFE.fullmatch(str(name)):
        raise ModelError(
            f"{path}: has weights of {name}, which a file cannot have imported; accepted: model={name!r} if you trust "
            "it, or the module itself as model"
        )
    if not isinstance(model, torch.nn.Module):
        name = str(name if model is None else model)
        model = model_to_train(name, len(classes), integer("channels", channels, 1), device, 0)
    try:
        model.load_state_dict(weights)
    except _DAMAGE as error:
        raise ModelError(f"{path}: its weights are not those of {name} ({_said(error)})") from error
    return model.to(device).eval(), scoring, tuple(map(str, classes))


def _said(error: BaseException) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:200]
