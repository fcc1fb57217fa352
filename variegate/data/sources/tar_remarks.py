"""What a user may want to know about the shards that were read, a line for each kind of thing."""

from __future__ import annotations

from variegate.data.sources.tar_samples import Seen


class Remarks:
    """Shards may be added in any order, and again; the lines are in the order of their numbers."""

    def __init__(self) -> None:
        self._shards: dict[int, tuple[str, Seen, str]] = {}

    def add(self, number: int, shard: str, seen: Seen, loss: str = "") -> None:
        self._shards[number] = (shard, seen, loss)

    def lines(self) -> list[str]:
        shards = [self._shards[number] for number in sorted(self._shards)]
        lines = [
            f"{shard}: {loss}; {seen.samples:,} whole samples before it are used"
            for shard, seen, loss in shards
            if loss
        ]
        if unmarked := [shard for shard, seen, loss in shards if not (seen.has_end_mark or loss)]:
            lines.append(f"no mark of the end, perhaps cut off between two members: {some(unmarked)}")
        if count := sum(seen.many_images for _, seen, _ in shards):
            first = next(f"{shard}: {seen.first_many_images}" for shard, seen, _ in shards if seen.many_images)
            lines.append(
                f"{count:,} samples have several images, of which one is taken (the first such: {first}); members "
                "whose names are the same up to the first dot are one sample"
            )
        if count := sum(seen.without_image for _, seen, _ in shards):
            first = next(f"{shard}: {seen.first_without_image}" for shard, seen, _ in shards if seen.without_image)
            lines.append(f"{count:,} keys without an image are left out (the first: {first})")
        if count := sum(seen.links for _, seen, _ in shards):
            lines.append(f"{count:,} links in archives are not followed")
        return lines


def some(names: list[str], shown: int = 5) -> str:
    return ", ".join(names[:shown]) + (f" and {len(names) - shown:,} more" if len(names) > shown else "")
