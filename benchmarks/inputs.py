"""What every library is fed: the same JPEG files (W1) or the same pixels in memory (W2)."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

SIZE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
NUM_OPS, MAGNITUDE = 2, 9


class Crop(NamedTuple):
    """Of ``RandomResizedCrop``: the side of what comes out, and the share of the picture's area."""

    side: int = SIZE
    scale: tuple[float, float] = (0.08, 1.0)


# The works that begin with a crop; all but w3r from JPEG files.
CROPPING = {"w1": Crop(), "w1i": Crop(), "w1i_local": Crop(96, (0.05, 0.4)), "w1i_large": Crop(), "w3r": Crop()}


def is_from_files(work: str) -> bool:
    return work in CROPPING and work != "w3r"


def side_of(work: str) -> int:
    """Of the outputs, in pixels."""
    return CROPPING[work].side if work in CROPPING else SIZE


# Sizes (height, width) that most ImageNet files have, for the stand-in where no sample of it is at hand.
IMAGENET_SIZES = ((375, 500), (333, 500), (500, 375), (500, 500), (334, 500), (500, 333), (400, 500), (600, 800))
DEFAULT_TAR = Path("../shared/data/imagenet-sample.tar")


@dataclass
class Inputs:
    """``jpegs`` for a work that starts at files, ``images`` uint8[N, 224, 224, 3] for one that starts in memory.
    ``index``: the entropy index of the files, for a process of ours that is to use one."""

    jpegs: list[bytes] = field(default_factory=list)
    images: npt.NDArray[np.uint8] | None = None
    index: Any = None

    def __len__(self) -> int:
        return len(self.jpegs) if self.images is None else len(self.images)

    def batches(self, batch: int) -> Iterator[range | npt.NDArray[np.intp]]:
        """Indices of one batch after another, for ever; consecutive batches share no image while any is left."""
        count, start = len(self), 0
        while True:
            stop = start + batch
            yield range(start, stop) if stop <= count else np.arange(start, stop) % count
            start = stop % count

    def jpeg_batches(self, batch: int) -> Iterator[list[bytes]]:
        for indices in self.batches(batch):
            yield [self.jpegs[i] for i in indices]

    def image_batches(self, batch: int) -> Iterator[npt.NDArray[np.uint8]]:
        """uint8[batch, 224, 224, 3], a view: W2's inputs are in memory already and are not copied again."""
        assert self.images is not None
        if batch > len(self.images):
            raise ValueError(f"batch {batch}: there are {len(self.images)} images; take a smaller batch")
        whole = len(self.images) // batch
        while True:
            for i in range(whole):
                yield self.images[i * batch : (i + 1) * batch]


def read_jpegs(tar: Path | None) -> tuple[list[bytes], str]:
    """Every JPEG of ``tar`` (or the stand-in where it is None or missing) and a word on where they are from."""
    if tar is None or not tar.exists():
        return make_jpegs(), "made from scikit-image photos at typical ImageNet sizes"
    with tarfile.open(tar) as archive:
        members = [m for m in archive if m.isfile() and m.name.lower().endswith((".jpg", ".jpeg"))]
        found = [archive.extractfile(m).read() for m in members]  # type: ignore[union-attr]
    rgb = [data for data in found if _is_rgb(data)]
    if not rgb:
        raise ValueError(f"{tar}: no RGB JPEG in it; give a tar file of .jpg files, or leave --images out")
    return rgb, f"{len(rgb)} files of {tar.name}"


def make_jpegs(count: int = 128, seed: int = 0) -> list[bytes]:
    """Random crops of scikit-image's photos, as JPEG files of ImageNet's usual sizes and quality."""
    from PIL import Image
    from skimage import data

    photos = [Image.fromarray(getattr(data, name)()) for name in ("astronaut", "chelsea", "coffee", "rocket")]
    rng = np.random.default_rng(seed)
    made = []
    for i in range(count):
        photo = photos[i % len(photos)]
        height, width = IMAGENET_SIZES[rng.integers(len(IMAGENET_SIZES))]
        scale = rng.uniform(0.6, 1.0) * min(photo.width / width, photo.height / height)
        left = rng.uniform(0, photo.width - width * scale)
        top = rng.uniform(0, photo.height - height * scale)
        box = (left, top, left + width * scale, top + height * scale)
        buffer = io.BytesIO()
        photo.resize((width, height), Image.Resampling.BICUBIC, box=box).save(buffer, "JPEG", quality=95)
        made.append(buffer.getvalue())
    return made


def make_images(jpegs: list[bytes], count: int = 1024, seed: int = 0) -> npt.NDArray[np.uint8]:
    """uint8[count, 224, 224, 3]: random crops, far more of them together than a cache holds."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    images = np.empty((count, SIZE, SIZE, 3), np.uint8)
    for i in range(count):
        photo = Image.open(io.BytesIO(jpegs[i % len(jpegs)]), formats=("JPEG",)).convert("RGB")
        side = min(photo.size) * rng.uniform(0.7, 1.0)
        left, top = rng.uniform(0, photo.width - side), rng.uniform(0, photo.height - side)
        images[i] = np.asarray(
            photo.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=(left, top, left + side, top + side))
        )
    return images


def save(inputs: Inputs, folder: Path) -> None:
    """Lay the inputs down for the worker processes."""
    if inputs.images is not None:
        np.save(folder / "images.npy", inputs.images)
    if inputs.jpegs:
        np.save(folder / "jpegs.npy", np.frombuffer(b"".join(inputs.jpegs), np.uint8))
        np.save(folder / "jpeg_sizes.npy", np.array([len(j) for j in inputs.jpegs]))


def load(folder: Path) -> Inputs:
    """The inverse of ``save``."""
    inputs = Inputs()
    if (folder / "images.npy").exists():
        inputs.images = np.load(folder / "images.npy")
    if (folder / "jpegs.npy").exists():
        ends = np.cumsum(np.load(folder / "jpeg_sizes.npy"))
        inputs.jpegs = [part.tobytes() for part in np.split(np.load(folder / "jpegs.npy"), ends[:-1])]
    return inputs


def _is_rgb(data: bytes) -> bool:
    from PIL import Image

    return bool(Image.open(io.BytesIO(data), formats=("JPEG",)).mode == "RGB")
