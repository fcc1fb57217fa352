"""Augment a batch in memory: a random policy per image, one output tensor."""

from __future__ import annotations

import variegate as vg
from variegate import transforms as T

transform = T.Compose(
    [
        T.RandomResizedCrop(96),
        T.RandomHorizontalFlip(),
        T.RandAugment(num_ops=2, magnitude=9),
        T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD),
    ]
)
aug = vg.Augmenter(transform, seed=0)

# Sizes may differ; the crop brings them to one.
images = vg.sample_images(8)
ids = list(range(8))

batch = aug(images, ids=ids, epoch=0)
print(f"{tuple(batch.shape)} {batch.dtype}, mean {batch.mean():.3f}")

# The id decides what happens to an image, not its place in the batch: sample 5 in its own batch has the same pixels.
alone = aug([images[5]], ids=[5], epoch=0)
print("sample 5 alone is the same:", bool((alone[0] == batch[5]).all()))
print("and another in epoch 1:", bool((aug([images[5]], ids=[5], epoch=1)[0] != batch[5]).any()))
print(aug.explain(id=5, epoch=0, size=images[5].shape))
