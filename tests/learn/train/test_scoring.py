"""How many images a model is right about, however they are cut up."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tests.learn.train.digits import digits
from tests.needed import needs
from variegate import Loader
from variegate import transforms as T
from variegate.learn.learner import top_accuracies
from variegate.learn.ranks import Ranks

pytestmark = needs("sklearn")


def test_accuracies_depend_on_neither_batches_nor_ranks() -> None:
    """Also where the last batch is a part of one, and where a rank's is filled up with rows that do not count."""
    source, _ = digits(45)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10)).eval()

    def counted(size: int, ranks: int = 1) -> list[float]:
        shares = [
            Loader(
                source,
                T.Normalize([0.5], [0.5]),
                size,
                "cpu",
                shuffle=False,
                layout="NHWC",
                rank=rank,
                world_size=ranks,
            )
            for rank in range(ranks)
        ]
        told = []

        class Told(Ranks):
            def sum_and_max(self, sums: list[float], most: list[float]) -> tuple[list[float], list[float]]:
                told.append(sums)
                return sums, most

        for one in shares:
            top_accuracies(model, one, "float32", Told())
        return np.sum(told, 0).tolist()

    whole = counted(45)
    assert whole[2] == 45
    for size, ranks in ((1, 1), (7, 1), (64, 1), (4, 2), (8, 3), (16, 3)):
        assert counted(size, ranks) == whole
