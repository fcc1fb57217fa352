"""A data set whose items carry their index, by which their random numbers are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

from torch.utils.data import Dataset, IterableDataset

from variegate.integrations.items import form_of


class WithIds(Dataset[Any]):
    """A map-style data set whose items also carry their index, which ``vg.Collate`` takes as the sample's id.

    Items (image, label) become (image, label, index); dicts get an "id". Other attributes (``classes``) are those of
    ``dataset``. Wrap before ``Subset`` or ``random_split``, so that a sample keeps its id whatever part it falls into.

    Raises TypeError for data sets that cannot be indexed, and when an item has another form.
    """

    def __init__(self, dataset: Any) -> None:
        is_indexed = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
        if isinstance(dataset, IterableDataset) or not is_indexed:
            accepted = "a map-style data set, with __getitem__ and __len__"
            raise TypeError(f"dataset: got {type(dataset).__name__}; accepted: {accepted}")
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> Any:
        place = self._place(i)
        return self._with_id(self.dataset[place], place)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """What the DataLoader calls for a batch; data sets that have it fetch a batch at once."""
        places = [self._place(i) for i in indices]
        fetch = getattr(self.dataset, "__getitems__", None)
        items = fetch(places) if callable(fetch) else [self.dataset[place] for place in places]
        return [self._with_id(item, place) for item, place in zip(items, places, strict=True)]

    def _place(self, i: int) -> int:
        place, length = index(i), len(self)
        if not -length <= place < length:
            raise IndexError(f"index: got {place}; accepted: {-length} to {length - 1}")
        return place % length

    def _with_id(self, item: Any, place: int) -> Any:
        if isinstance(item, Mapping):
            return {**item, "id": place}
        if isinstance(item, (tuple, list)) and len(item) == 2:
            return (*item, place)
        raise TypeError(f"dataset[{place}]: got {form_of(item)}; accepted: (image, label), or a dict")

    def __getattr__(self, name: str) -> Any:
        # Names with underscores are asked for by copying and pickling, before there is a data set to ask.
        if name == "dataset" or name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        return getattr(self.dataset, name)
