"""Recipes of ``train``: values of ``TrainOptions`` by name. Options that are passed as well take precedence."""

from __future__ import annotations

from typing import Any

from variegate.checks import one_of

RECIPES: dict[str, dict[str, Any]] = {
    # After airbench94 (Jordan 2024, arXiv 2404.00498), without its alternating flips, mirrored borders and averages
    # over views. The recipe's learning rate is for sums over 1,024 images with a factor for momentum:
    # 11.5 / (1 + 1 / (1 - 0.85)) = 1.5. Half as many images take 0.75. Weight decay is the recipe's 0.0153, over 11.5.
    "cifar10-fast": {
        "model": "airbench-94",
        "policy": "flip+crop2",
        "epochs": 10,
        "batch_size": 512,
        "lr": 0.75,
        "lr_schedule": "linear",
        "warmup": 2.3,
        "momentum": 0.85,
        "weight_decay": 0.00133,
        "clip": 0.0,
        "label_smoothing": 0.2,
    },
    # Fine-tune a network of timm's that was trained on ImageNet.
    "finetune": {
        "model": "timm:resnet50",
        "pretrained": True,
        "size": "224",
        "policy": "trivialaugment+flip+crop",
        "epochs": 10,
        "batch_size": 64,
        "optimizer": "adamw",
        "lr": 1e-4,
        "warmup": 1.0,
        "weight_decay": 0.05,
        "clip": 1.0,
        "label_smoothing": 0.1,
        "ema": 0.99,
    },
}


def with_recipe(recipe: str | None, passed: dict[str, Any]) -> dict[str, Any]:
    """A recipe's values, overridden by ``passed``. Raises ValueError for an unknown name."""
    if recipe is None:
        return passed
    return {**RECIPES[one_of("recipe", recipe, [*RECIPES])], **passed}
