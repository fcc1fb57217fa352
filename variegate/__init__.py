"""Variegate: image augmentation as fused programs, for training that never waits."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

# Names by the module that defines them. They are loaded when first used (PEP 562), because they import torch and NumPy,
# and `variegate --help` needs neither. Type checkers and editors read __init__.pyi instead; a test compares the two.
_NAMES = {
    "variegate.learn.attribution": ["attribution"],
    "variegate.apps.check.checking": ["check"],
    "variegate.apps.check.cleaning": ["clean"],
    "variegate.apps.check.findings": ["CheckResult"],
    "variegate.apps.doctor": ["doctor"],
    "variegate.learn.race": ["race"],
    "variegate.learn.search": ["search"],
    "variegate.apps.studio": ["studio"],
    "variegate.learn.model_file": ["load_model"],
    "variegate.augmenter.augmenter": ["Augmenter"],
    "variegate.checks": ["PIXEL_VERSION"],
    "variegate.decode.entropy.index": ["EntropyIndex"],
    "variegate.errors": ["DecodeError", "DeviceMemoryError"],
    "variegate.executors.runners.images": ["RaggedBatch"],
    "variegate.data.opening": ["open_source"],
    "variegate.data.statistics": ["dataset_statistics"],
    "variegate.data.sample_photos": ["sample_images"],
    "variegate.interop.convert": [
        "from_albumentations",
        "from_timm",
        "from_torchvision",
        "targets_from_albumentations",
    ],
    "variegate.interop.items": ["WithIds"],
    "variegate.interop.torch_data": ["Collate", "as_transform"],
    "variegate.jobs.engine": ["Engine"],
    "variegate.workers.protocol": ["EngineError"],
    "variegate.jobs.pack": ["pack"],
    "variegate.loader": ["Batch", "Loader", "Mixture", "TooManyErrors"],
    "variegate.decode.dicom": ["Dicom"],
    "variegate.loader.buckets": ["AspectBuckets"],
    "variegate.loader.options": ["ProcessWorkers", "RayWorkers"],
    "variegate.pipelines": ["PipelineError", "choice", "coin", "normal", "pipeline", "randint", "select", "uniform"],
    "variegate.policies": ["load_policy"],
    "variegate.program.draws.trace": ["trace"],
    "variegate.targets.settings": ["Targets"],
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = {
    "math": "variegate.math",
    "policies": "variegate.policies",
    "transforms": "variegate.transforms",
}

__all__ = sorted(["IMAGENET_MEAN", "IMAGENET_STD", *_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOMES:
        raise import_module("variegate.checks").missing_name(__name__, name, __all__)
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__") and name.endswith("__"))})
