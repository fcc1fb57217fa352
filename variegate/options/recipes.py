"""Recipes of ``train``: other defaults, by name. What is given besides one wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from variegate.checks import one_of

# Fields of ``TrainOptions``, and their values in the place of the defaults.
RECIPES: dict[str, dict[str, Any]] = {
    # airbench94 (Jordan 2024, arXiv 2404.00498). Its rate is for sums over 1,024 images with a factor for momentum,
    # 11.5 / (1 + 1 / (1 - 0.85)) = 1.5, which is 0.75 for half as many; weight decay is its 0.0153, over 11.5.
    "cifar10-fast": {
        "model": "airbench-94",
        "policy": "flip+crop",
        "padding": 2,
        "padding_mode": "reflect",
        "alternate_flip": True,
        "epochs": 10,
        "batch_size": 512,
        "lr_base_size": 512,
        "lr": 0.75,
        "lr_schedule": "linear",
        "warmup": 2.3,
        "momentum": 0.85,
        "weight_decay": 0.00133,
        "clip": 0.0,
        "label_smoothing": 0.2,
        "tta": "flip-shift",
        "score_every": 5,
    },
    # A1 of ResNet Strikes Back (Wightman et al. 2021, arXiv 2110.00476): its 600 epochs have a third of the images,
    # each three times; these 200 have all of them. The rate is for 2,048 images a step: eight ranks, or --accumulate.
    "imagenet-a1": {
        "model": "timm:resnet50",
        "drop_path": 0.05,
        "size": "224",
        "policy": "rand-m7-mstd0.5-inc1+flip+crop",
        "mixup": 0.2,
        "cutmix": 1.0,
        "copies": 3,
        "epochs": 200,
        "batch_size": 256,
        "lr_base_size": 2048,
        "optimizer": "lamb",
        "lr": 0.005,
        "warmup": 1.666667,
        "weight_decay": 0.01,
        "decay_norms": False,
        "clip": 0.0,
        "loss": "bce",
        "label_smoothing": 0.1,
        "precision": "bfloat16",
    },
    # A network of timm's that has learnt ImageNet goes on with other images.
    "finetune": {
        "model": "timm:resnet50",
        "pretrained": True,
        "size": "224",
        "policy": "trivialaugment+flip+crop",
        "epochs": 10,
        "batch_size": 64,
        "lr_base_size": 64,
        "optimizer": "adamw",
        "lr": 1e-4,
        "warmup": 1.0,
        "weight_decay": 0.05,
        "decay_norms": False,
        "clip": 1.0,
        "label_smoothing": 0.1,
        "ema": 0.99,
    },
}


def recipe_values(recipe: str | None, epochs: int | None = None) -> Mapping[str, Any]:
    """Values of a recipe, none without; of other ``epochs``, warmup is the same share. Raises ValueError."""
    if recipe is None:
        return {}
    values = RECIPES[one_of("recipe", recipe, [*RECIPES])]
    if epochs is None or "warmup" not in values:
        return values
    return {**values, "warmup": round(values["warmup"] * epochs / values["epochs"], 6)}


class WithRecipe(type):
    """Metaclass of dataclasses with a field ``recipe``, whose values stand in for arguments that are not given."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        values = recipe_values(given.get("recipe"), given.get("epochs"))
        known = {one.name for one in fields(cls)}  # type: ignore[arg-type]
        return super().__call__(*args, **{name: value for name, value in values.items() if name in known} | given)


def describe_recipe(options: Any) -> str | None:
    """Options that the recipe has set, in a line; None without a recipe."""
    if options.recipe is None:
        return None
    values = recipe_values(options.recipe, options.epochs).items()
    defaults = {one.name: one.default for one in fields(options) if one.default is not MISSING}
    found = {name: value for name, value in values if getattr(options, name) == value != defaults.get(name)}
    return f"recipe {options.recipe}: {' '.join(_as_typed(*one) for one in found.items()) or 'sets nothing here'}"


def _as_typed(name: str, value: Any) -> str:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag} {value:g}" if isinstance(value, float) else f"--{flag} {value}"
