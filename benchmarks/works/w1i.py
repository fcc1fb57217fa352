"""W1i: W1 with an entropy index."""

from __future__ import annotations

from benchmarks.works import w1
from benchmarks.works.indexed import indexed_work

WORK = indexed_work("w1i", w1.WORK.title, 2.5)
