"""Which images train and which score in a repeat: others each time, where there are others."""

from __future__ import annotations

from dataclasses import dataclass

from variegate.search.evolution import SearchStream, repeat_seed
from variegate.training.images import LabelledImages, split


@dataclass(frozen=True)
class Subsets:
    """In every repeat another random part of ``train`` images trains, with the classes in their shares; all policies
    of a repeat get the same. ``test`` scores, or without it what does not train.

    Raises SourceError for too few images, in all or of a class.
    """

    images: LabelledImages
    train: int
    test: LabelledImages | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self.of(0)

    @property
    def varies(self) -> bool:
        return self.test is None or self.train != len(self.images)

    @property
    def scored(self) -> int:
        """How many images score a training."""
        return len(self.images) - self.train if self.test is None else len(self.test)

    def of(self, repeat: int) -> tuple[LabelledImages, LabelledImages]:
        """-> what trains, and what scores."""
        seed = repeat_seed(self.seed, repeat, SearchStream.SUBSET)
        if self.test is None:
            return split(self.images, self.train, None, seed)
        return (split(self.images, self.train, 0, seed)[0] if self.varies else self.images), self.test

    @property
    def scope(self) -> str:
        """What chance the spread over repeats is of, and so its intervals; in one sentence."""
        total, scored = f"{len(self.images):,}", f"{self.scored:,}"
        if not self.varies:
            covered = f"alone: all {total} images always train, the same {scored} always score"
        elif self.test is None:
            covered = f"and in which of these {total} images train and which {scored} score"
        else:
            covered = f"and in which {self.train:,} of these {total} images train; the same {scored} always score"
        return f"Intervals cover the chance in training {covered}. Other images may say otherwise."
