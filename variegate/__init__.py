"""Variegate: image augmentation as fused programs, for training that never waits."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from variegate import policies, transforms
    from variegate.apps import diagnose
    from variegate.apps.attribution import attribution
    from variegate.apps.curate.checking import check
    from variegate.apps.curate.cleaning import clean
    from variegate.apps.curate.findings import CheckResult
    from variegate.apps.search.race import race
    from variegate.apps.search.searching import search
    from variegate.apps.studio import studio
    from variegate.apps.train.model_file import load_model
    from variegate.augmenter.augmenter import Augmenter
    from variegate.checks import PIXEL_VERSION
    from variegate.decode.entropy.index import EntropyIndex
    from variegate.errors import DecodeError, DeviceMemoryError
    from variegate.executors.runners.images import RaggedBatch
    from variegate.formats.opening import open_source
    from variegate.formats.packed import dataset_statistics
    from variegate.formats.samples import sample_images
    from variegate.integrations.converters import (
        from_albumentations,
        from_timm,
        from_torchvision,
        targets_from_albumentations,
    )
    from variegate.integrations.items import WithIds
    from variegate.integrations.torch_data import Collate, as_transform
    from variegate.jobs.engine import Engine
    from variegate.jobs.jobs import EngineError
    from variegate.jobs.pack import pack
    from variegate.loader import Batch, Loader, Mixture, TooManyErrors
    from variegate.loader.options import ProcessWorkers, RayWorkers
    from variegate.pipelines import PipelineError, choice, coin, normal, pipeline, randint, select, uniform
    from variegate.policies import load_policy
    from variegate.targets.settings import Targets

__version__ = "0.1.0"

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "DecodeError", "DeviceMemoryError", "EngineError", "TooManyErrors"]
__all__ += ["PIXEL_VERSION", "Mixture", "ProcessWorkers", "RayWorkers"]
__all__ += ["Augmenter", "Batch", "CheckResult", "Collate", "Engine", "EntropyIndex", "Loader", "RaggedBatch"]
__all__ += [
    "Targets",
    "WithIds",
    "as_transform",
    "attribution",
    "check",
    "clean",
    "from_albumentations",
    "from_timm",
    "from_torchvision",
]
__all__ += ["dataset_statistics", "diagnose", "load_model", "load_policy", "open_source", "pack", "policies", "race"]
__all__ += ["sample_images", "search", "studio", "targets_from_albumentations", "transforms"]
__all__ += ["PipelineError", "choice", "coin", "normal", "pipeline", "randint", "select", "uniform"]

# Loaded when first asked for (PEP 562): they bring torch and Numba along, and `variegate --help` needs neither.
_HOMES = {
    "Augmenter": "variegate.augmenter.augmenter",
    "Batch": "variegate.loader",
    "CheckResult": "variegate.apps.curate.findings",
    "Collate": "variegate.integrations.torch_data",
    "DecodeError": "variegate.errors",
    "DeviceMemoryError": "variegate.errors",
    "Engine": "variegate.jobs.engine",
    "EngineError": "variegate.jobs.jobs",
    "EntropyIndex": "variegate.decode.entropy.index",
    "Loader": "variegate.loader",
    "Mixture": "variegate.loader",
    "PIXEL_VERSION": "variegate.checks",
    "PipelineError": "variegate.pipelines",
    "RaggedBatch": "variegate.executors.runners.images",
    "Targets": "variegate.targets.settings",
    "ProcessWorkers": "variegate.loader.options",
    "RayWorkers": "variegate.loader.options",
    "TooManyErrors": "variegate.loader",
    "WithIds": "variegate.integrations.items",
    "as_transform": "variegate.integrations.torch_data",
    "attribution": "variegate.apps.attribution",
    "check": "variegate.apps.curate.checking",
    "choice": "variegate.pipelines",
    "clean": "variegate.apps.curate.cleaning",
    "coin": "variegate.pipelines",
    "dataset_statistics": "variegate.formats.packed",
    "from_albumentations": "variegate.integrations.converters",
    "from_timm": "variegate.integrations.converters",
    "from_torchvision": "variegate.integrations.converters",
    "load_model": "variegate.apps.train.model_file",
    "load_policy": "variegate.policies",
    "normal": "variegate.pipelines",
    "pack": "variegate.jobs.pack",
    "open_source": "variegate.formats.opening",
    "pipeline": "variegate.pipelines",
    "race": "variegate.apps.search.race",
    "randint": "variegate.pipelines",
    "sample_images": "variegate.formats.samples",
    "search": "variegate.apps.search.searching",
    "studio": "variegate.apps.studio",
    "select": "variegate.pipelines",
    "targets_from_albumentations": "variegate.integrations.converters",
    "uniform": "variegate.pipelines",
}
_FOLDERS = {
    "diagnose": "variegate.apps.diagnose",
    "policies": "variegate.policies",
    "transforms": "variegate.transforms",
}


if not TYPE_CHECKING:  # a type checker would take it for a promise that every name exists

    def __getattr__(name: str) -> Any:
        if name in _FOLDERS:
            return import_module(_FOLDERS[name])
        if name in _HOMES:
            value = globals()[name] = getattr(import_module(_HOMES[name]), name)
            return value
        raise import_module("variegate.checks").missing_name(__name__, name, __all__)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))})
