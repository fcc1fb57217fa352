"""How many images a model is right about, however they are cut up."""

from __future__ import annotations

import numpy as np
from torch import nn

from tests.learn.train.digits import digits
from tests.needed import needs
from variegate import Loader
from variegate import transforms as T
from variegate.learn.averaging import DistContext
from variegate.learn.fit import Fit
from variegate.options.fit import FitOptions

pytestmark = needs("sklearn")


def linear(num_classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))


def test_accuracies_depend_on_neither_batches_nor_ranks() -> None:
    """Also where the last batch is a part of one, and where a rank's is filled up with rows that do not count."""
    source, _ = digits(45)

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

        class Told(DistContext):
            def sum_and_max(self, sums: list[float], most: list[float]) -> tuple[list[float], list[float]]:
                told.append(sums)
                return sums, most

        for one in shares:
            Fit(f"{__name__}:linear", 10, 1, FitOptions(), 0, Told()).score(one)
        return np.sum(told, 0).tolist()

    whole = counted(45)
    assert whole[2:] == [45, 0]
    for size, ranks in ((1, 1), (7, 1), (64, 1), (4, 2), (8, 3), (16, 3)):
        assert counted(size, ranks) == whole


def test_five_guesses_count_from_ten_classes_on() -> None:
    (pixels, labels), _ = digits(45)
    for classes, names in ((10, {"top1", "top5"}), (9, {"top1"})):
        loader = Loader((pixels, np.minimum(labels, classes - 1)), T.Normalize([0.5], [0.5]), 45, "cpu", layout="NHWC")
        assert set(Fit(f"{__name__}:linear", classes, 1, FitOptions(), 0).score(loader)) == names
