"""``model.pt``: a model that was trained, and all that it takes to use it elsewhere."""

from __future__ import annotations

import io
import json
import math
import pickle
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from variegate import transforms as T
from variegate.data.samples import Samples
from variegate.errors import PolicyError, one_line, short_repr
from variegate.executors.runners.devices import resolve
from variegate.io.durable import write_atomically
from variegate.io.files import StrPath
from variegate.jobs.arguments import absolute_place
from variegate.learn.models import ModelError, model_to_train
from variegate.learn.reading import read_settings
from variegate.ops.description import from_dict
from variegate.program.program import MAX_CHANNELS

if TYPE_CHECKING:
    from variegate.learn.feed import DataPipeline

MODEL_NAME = "model.pt"
AUGMENTATION_NAME = "augmentation.json"
_KEYS = ("model", "classes", "weights", "channels", "scoring")
# Names that stand for code of Variegate and timm. Any other imports a module, or has timm ask a server.
_SAFE = re.compile(r"(wrn|airbench)-[\w.-]+|timm:[\w.-]+")

_LONGEST_NAME = 100
# Numbers that a model of timm may hold beyond one per byte of the file: tables that are computed, not stored.
_COMPUTED_NUMBERS = 4 << 20
_FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye)
# Errors that a damaged file may raise, besides OSError.
DAMAGE = (
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    MemoryError,
    ArithmeticError,
    AssertionError,
    pickle.UnpicklingError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def write_model(folder: Path, feed: DataPipeline, weights: dict[str, torch.Tensor]) -> None:
    """Write what ``load_model`` and ``attribution`` read. Raises WriteError."""
    plain = feed.plain
    steps = [*plain.transforms] if isinstance(plain, T.Compose) else [plain]
    if feed.choice.is_kept:  # validation has images of no other size
        steps.insert(0, T.Resize(feed.size))
    scoring = T.Compose([*([T.Grayscale()] if feed.channels == 1 else []), *steps])
    values = (feed.model, list(feed.classes), weights, feed.channels, scoring.to_dict())
    buffer = io.BytesIO()
    torch.save(dict(zip(_KEYS, values, strict=True)), buffer)
    write_atomically(folder / MODEL_NAME, buffer.getvalue(), durable=True)
    if isinstance(feed.source, Samples):
        settings = {
            "source": None if feed.place == "source" else absolute_place(feed.place),
            "fingerprint": feed.source.fingerprint,
            "seed": feed.options.seed,
            "epoch": feed.options.num_epochs - 1,
            "transform": feed.transform.to_dict(),
            **read_settings(feed.options),
        }
        write_atomically(folder / AUGMENTATION_NAME, (json.dumps(settings) + "\n").encode(), durable=True)


def load_model(
    path: StrPath, *, model: str | torch.nn.Module | None = None, device: str = "cpu"
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
            made, and unsuitable weights.
        FileNotFoundError: if there is no such file.
        ValueError: naming ``device``.
    """
    path = Path(path)
    device = resolve(device)
    path = path / MODEL_NAME if path.is_dir() else path
    saved = _read(path)
    name, classes, weights, channels, described = (saved[key] for key in _KEYS)
    try:
        scoring = from_dict(described, f"{path}: scoring")
    except PolicyError as error:
        raise ModelError(str(error)) from error
    if model is None and not _SAFE.fullmatch(name):
        raise ModelError(
            f"{path}: has weights of {name}, which a file cannot have imported; accepted: model={name!r} if you trust "
            "it, or the module itself as model"
        )
    if isinstance(model, str):
        name = model
        model = model_to_train(name, len(classes), channels, device, 0)
    elif model is None:
        with _SizeLimit(path.stat().st_size + _COMPUTED_NUMBERS * name.startswith("timm:")):
            try:
                model = model_to_train(name, len(classes), channels, "cpu", 0)
            except (*DAMAGE, OSError) as error:
                raise ModelError(f"{path}: {_said(error)}") from error
    try:
        model.load_state_dict(weights)
    except DAMAGE as error:
        raise ModelError(f"{path}: its weights are not those of {name} ({_said(error)})") from error
    return model.to(device).eval(), scoring, tuple(classes)


def read_saved(path: Path) -> Any:
    """Load a file of ``torch.save`` to the CPU without executing anything.

    Raises OSError, ModelError and ``DAMAGE``.
    """
    with zipfile.ZipFile(path) as archive:
        # torch.save does not compress, so a larger content is not its own.
        if sum(entry.file_size for entry in archive.infolist()) > path.stat().st_size:
            raise ModelError(f"{path}: is damaged: its entries are larger than the file")
    return torch.load(path, map_location="cpu", weights_only=True)


def _read(path: Path) -> dict[str, Any]:
    """The entries of the file, each of its type. Raises ModelError, FileNotFoundError."""
    size = path.stat().st_size
    try:
        saved = read_saved(path)
    except ModelError:
        raise
    except (*DAMAGE, OSError) as error:
        raise ModelError(f"{path}: is damaged, or no {MODEL_NAME} of variegate train ({_said(error)})") from error
    if missing := [key for key in _KEYS if not isinstance(saved, dict) or key not in saved]:
        raise ModelError(
            f"{path}: lacks {', '.join(missing)}; accepted: what variegate train wrote. The same train command again "
            "completes the file of an earlier version, and trains nothing"
        )
    for key, fits, accepted in _ACCEPTED:
        if not fits(saved[key]):
            raise ModelError(f"{path}: {key}: got {short_repr(saved[key])}; accepted: {accepted}")
    storages = {weight.untyped_storage().data_ptr(): weight.untyped_storage() for weight in saved["weights"].values()}
    if sum(storage.nbytes() for storage in storages.values()) > size:
        raise ModelError(f"{path}: is damaged: its weights are larger than the file")
    return dict(saved)


def _is_weight(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_quantized


def _are_weights(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) and _is_weight(value[name]) for name in value)


def _are_names(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(name, str) for name in value)


_ACCEPTED: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("model", lambda name: isinstance(name, str) and len(name) <= _LONGEST_NAME, "the name of a model"),
    ("classes", _are_names, "a list of the names of the classes"),
    ("weights", _are_weights, "a dict of tensors"),
    ("channels", lambda number: type(number) is int and 1 <= number <= MAX_CHANNELS, f"1 to {MAX_CHANNELS}"),
)


class _SizeLimit(TorchFunctionMode):
    """Within it, raise ModelError before tensors of more than ``numbers`` numbers in all are made.

    A file names its model by a few letters. Its weights are what says how large a model may be built for it.
    """

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self._left = numbers

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _FACTORIES:
            size = kwargs.get("size", args[0] if args and not isinstance(args[0], int) else args)
            self._left -= math.prod(size)
            if self._left < 0:
                raise ModelError("is larger than the weights in the file")
        return func(*args, **kwargs)


def _said(error: BaseException) -> str:
    return (one_line(error) or type(error).__name__)[:200]
