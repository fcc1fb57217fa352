"""Variegate: image augmentation as fused programs, for training that never waits."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variegate import diagnose, policies, transforms
    from variegate.augmenter import Augmenter
    from variegate.backends.ragged_batch import RaggedBatch
    from variegate.convert import from_albumentations, from_timm, from_torchvision, targets_from_albumentations
    from variegate.curation.checking import check
    from variegate.curation.cleaning import clean
    from variegate.curation.result import CheckResult
    from variegate.data.decode.entropy.index import EntropyIndex
    from variegate.data.loader import Batch, Loader, TooManyErrors
    from variegate.data.samples import sample_images
    from variegate.data.sources.opening import open_source
    from variegate.data.sources.packed import dataset_statistics
    from variegate.engine.engine import Engine
    from variegate.engine.jobs import EngineError
    from variegate.engine.packing import pack
    from variegate.errors import DecodeError, DeviceMemoryError
    from variegate.integrations.torch_data import Collate, as_transform
    from variegate.integrations.with_ids import WithIds
    from variegate.pipelines import PipelineError, choice, coin, normal, pipeline, randint, select, uniform
    from variegate.policies import load_policy
    from variegate.targets.settings import Targets

__version__ = "0.1.0"

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "DecodeError", "DeviceMemoryError", "EngineError", "TooManyErrors"]
__all__ += ["Augmenter", "Batch", "CheckResult", "Collate", "Engine", "EntropyIndex", "Loader", "RaggedBatch"]
__all__ += [
    "Targets",
    "WithIds",
    "as_transform",
    "check",
    "clean",
    "from_albumentations",
    "from_timm",
    "from_torchvision",
]
__all__ += ["dataset_statistics", "diagnose", "load_policy", "open_source", "pack", "policies", "sample_images"]
__all__ += ["targets_from_albumentations", "transforms"]
__all__ += ["PipelineError", "choice", "coin", "normal", "pipeline", "randint", "select", "uniform"]

# Loaded when first asked for (PEP 562): they bring torch and Numba along, and `variegate --help` needs neither.
_HOMES = {
    "Augmenter": "variegate.augmenter",
    "Batch": "variegate.data.loader",
    "CheckResult": "variegate.curation.result",
    "Collate": "variegate.integrations.torch_data",
    "DecodeError": "variegate.errors",
    "DeviceMemoryError": "variegate.errors",
    "Engine": "variegate.engine.engine",
    "EngineError": "variegate.engine.jobs",
    "EntropyIndex": "variegate.data.decode.entropy.index",
    "Loader": "variegate.data.loader",
    "PipelineError": "variegate.pipelines",
    "RaggedBatch": "variegate.backends.ragged_batch",
    "Targets": "variegate.targets.settings",
    "TooManyErrors": "variegate.data.loader",
    "WithIds": "variegate.integrations.with_ids",
    "as_transform": "variegate.integrations.torch_data",
    "check": "variegate.curation.checking",
    "choice": "variegate.pipelines",
    "clean": "variegate.curation.cleaning",
    "coin": "variegate.pipelines",
    "dataset_statistics": "variegate.data.sources.packed",
    "from_albumentations": "variegate.convert",
    "from_timm": "variegate.convert",
    "from_torchvision": "variegate.convert",
    "load_policy": "variegate.policies",
    "normal": "variegate.pipelines",
    "pack": "variegate.engine.packing",
    "open_source": "variegate.data.sources.opening",
    "pipeline": "variegate.pipelines",
    "randint": "variegate.pipelines",
    "sample_images": "variegate.data.samples",
    "select": "variegate.pipelines",
    "targets_from_albumentations": "variegate.convert",
    "uniform": "variegate.pipelines",
}
_FOLDERS = ("diagnose", "policies", "transforms")


if not TYPE_CHECKING:  # a type checker would take it for a promise that every name exists

    def __getattr__(name: str) -> Any:
        if name in _FOLDERS:
            return import_module(f"variegate.{name}")
        if name in _HOMES:
            value = globals()[name] = getattr(import_module(_HOMES[name]), name)
            return value
        raise AttributeError(f"module 'variegate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))})
