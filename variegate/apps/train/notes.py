"""What somebody may want to know of the options of a training before it begins."""

from __future__ import annotations

import os

import torch

from variegate.options.recipes import told_of
from variegate.options.training import TrainOptions


def notes_on(options: TrainOptions) -> list[str]:
    """A line each."""
    notes = [said] if (said := told_of(options)) is not None else []
    if options.alternate_flip and not options.flip:
        notes.append("--alternate-flip does nothing with --no-flip")
    if options.validation is None:
        unused = [("--tta", options.tta != "none"), ("--score-every", options.score_every != 1)]
        notes += [f"{name} does nothing without --validation" for name, is_given in unused if is_given]
    on_cpu = options.device.startswith("cpu") or not torch.cuda.is_available()
    if on_cpu and options.precision != "float32" and not _has_half(options.precision):
        notes.append(f"this processor has no arithmetic in {options.precision}: --precision float32 is faster here")
    if options.shard and os.environ.get("WORLD_SIZE", "1") == "1":
        notes.append("--shard: one process has nothing to split; torchrun starts several")
    if options.averaging != "sync" and os.environ.get("WORLD_SIZE", "1") == "1":
        notes.append("--averaging: one process has nothing to average; torchrun starts several")
    return notes


def _has_half(precision: str) -> bool:
    name = {"bfloat16": "_is_avx512_bf16_supported", "float16": "_is_amx_fp16_supported"}[precision]
    asked = [getattr(torch.cpu, one, None) for one in (name, "_is_amx_tile_supported")]
    return any(ask() for ask in asked[: 2 if precision == "bfloat16" else 1] if ask is not None)
