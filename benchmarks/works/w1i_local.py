"""W1i of small crops, as DINO's local ones: 96 pixels a side, of 5 to 40 % of the picture."""

from __future__ import annotations

from benchmarks.works.indexed import indexed_work

WORK = indexed_work("w1i_local", "JPEG bytes -> RandomResizedCrop(96, scale=(0.05, 0.4)), then as W1", 4.0)
