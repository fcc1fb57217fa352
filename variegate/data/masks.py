"""Folders of images with masks of the same names, whose pixel values are classes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from variegate.data.annotated.folders import digest_names, images_by_stem, samples_with_targets
from variegate.data.annotated.frames import StoredImage, TargetStore
from variegate.data.annotated.objects import skip_missing
from variegate.data.annotated.options import check_options
from variegate.data.base import summarize_names
from variegate.data.labels import check_classes
from variegate.data.reading import read_file
from variegate.data.samples import Samples, name_column, names_in
from variegate.io.amounts import pluralize
from variegate.io.location import Location


@dataclass(eq=False)
class MaskStore(TargetStore):
    """Images of a folder, and their masks, which are files of their own."""

    def digest(self, samples: Samples) -> str:
        """Digest of the classes and the names; masks are not read."""
        pairs = zip(samples.paths(), names_in(samples.masks), strict=True)
        return digest_names(samples, [name for pair in pairs for name in pair], self.exif)

    def stored_image(self, samples: Samples, row: int) -> StoredImage:
        folder = samples.folder
        assert folder is not None
        image = folder.below(samples.text(samples.path, row))
        mask = folder.below(samples.text(samples.masks, row))
        return StoredImage(read_file(image), str(image), str(folder), mask=(read_file(mask), str(mask)))


def open_masks(
    folder: Location, annotations: Mapping[str, Any], on_error: str, classes: Sequence[str] | None
) -> Samples:
    """``images``, ``masks``: folders below ``folder``. Raises SourceError for images without a mask, unless they are
    skipped."""
    options = check_options("masks", annotations)
    images = options["images"]
    masks = options["masks"]
    pictures = images_by_stem(folder, images)
    found = images_by_stem(folder, masks)
    missing = [path for stem, path in pictures.items() if stem not in found]
    wanted = "".join(os.path.splitext(os.path.basename(path))[0] + ".png" for path in missing[:1])
    advice = f"; accepted: a file of the same name, such as {wanted}"
    what = f"have no mask in {masks}"
    notes = skip_missing(missing, len(pictures), what, on_error, str(folder), advice)
    if more := [path for stem, path in found.items() if stem not in pictures]:
        notes.append(f"{pluralize(len(more), 'mask')} without an image: {summarize_names(more)}")
    stems = [stem for stem in pictures if stem in found]
    metadata = {"format": "masks", "images": images}
    of_masks = name_column([found[stem] for stem in stems])
    paths = [pictures[stem] for stem in stems]
    store = MaskStore(options["exif"])
    return samples_with_targets(folder, store, check_classes(classes), paths, notes, metadata, masks=of_masks)
