"""What fits so many images, where nobody says: the size of a batch, and a model."""

from __future__ import annotations

# Of Population Based Augmentation on CIFAR-10, which is what the rules come to for its 50,000 images.
BATCH, LARGE_MODEL = 128, "wrn-28-2"
_SMALL_MODEL, _SMALL_BELOW = "wrn-16-1", 2_000
# Updates of an epoch: with fewer a short training hardly moves, and the last images of an epoch are often left out.
_STEPS, _LEAST_BATCH = 8, 8


def fitting_batch(train: int) -> int:
    """A power of two that gives an epoch eight steps, from 8 to 128, and no more than there are."""
    batch = BATCH
    while batch > _LEAST_BATCH and batch * _STEPS > train:
        batch //= 2
    return min(batch, train)


def fitting_model(images: int) -> str:
    return _SMALL_MODEL if images < _SMALL_BELOW else LARGE_MODEL
