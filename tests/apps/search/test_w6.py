"""What the benchmark of the search writes down."""

from __future__ import annotations

import json
import math

from benchmarks.w6_pba import described
from variegate.apps.search.compare import Summary


def test_a_single_training_is_json() -> None:
    one = described(Summary("none", (0.75,), 0.75, math.nan, 2.0, 1.5))
    wanted = {"policy": "none", "accuracies": [0.75], "mean": 0.75, "spread": None, "seconds": 2.0, "processor": 1.5}
    assert json.loads(json.dumps(one, allow_nan=False)) == {**wanted, "test_error": 25.0}
