"""Inputs common to all libraries: JPEG files, and pixels cut out of them."""

from __future__ import annotations

import io
import itertools
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.cases import SIZE, Case

DEFAULT_TAR = Path("../shared/data/imagenet-sample.tar")
# Sizes (width, height) that most ImageNet files have, for the stand-in if no sample of it is at hand.
IMAGENET_SIZES = ((500, 375), (500, 333), (375, 500), (500, 500), (333, 500), (800, 600))
# Number of square images by size: together they are larger than most caches.
COUNTS = {32: 2048, SIZE: 1024, 1024: 16}
SINGLE_COUNT = 64
DEEP_COUNT = 256
CLASSES = 100  # of the folders of photos
Images = npt.NDArray[np.uint8]
T = TypeVar("T")


def read_jpegs(tar: Path | None) -> tuple[list[bytes], str]:
    """Every RGB JPEG of ``tar`` (or a stand-in if it is missing), and a word on where they are from."""
    if tar is None or not tar.exists():
        return make_jpegs(), "made from scikit-image photos at typical ImageNet sizes"
    with tarfile.open(tar) as archive:
        members = [m for m in archive if m.isfile() and m.name.lower().endswith((".jpg", ".jpeg"))]
        files = [archive.extractfile(m).read() for m in members]  # type: ignore[union-attr]
    rgb = [data for data in files if _open(data).mode == "RGB"]
    if not rgb:
        raise ValueError(f"--images {tar}: got no RGB JPEG; accepted: a tar of .jpg files, or no --images")
    return rgb, f"{len(rgb)} files of {tar.name}"


def make_jpegs(count: int = 128, seed: int = 0) -> list[bytes]:
    """Random crops of scikit-image's photos, as JPEG files of ImageNet's usual sizes and quality."""
    from PIL import Image, ImageOps
    from skimage import data

    photos = [Image.fromarray(getattr(data, name)()) for name in ("astronaut", "chelsea", "coffee", "rocket")]
    rng = np.random.default_rng(seed)
    made = []
    for i in range(count):
        size = IMAGENET_SIZES[rng.integers(len(IMAGENET_SIZES))]
        centering = rng.uniform(size=2).tolist()
        crop = ImageOps.fit(photos[i % len(photos)], size, bleed=rng.uniform(0, 0.2), centering=centering)
        buffer = io.BytesIO()
        crop.save(buffer, "JPEG", quality=95)
        made.append(buffer.getvalue())
    return made


def make_squares(jpegs: Sequence[bytes], size: int, count: int) -> Images:
    """uint8 [count, size, size, 3]: random crops of the photos."""
    from PIL import Image, ImageOps

    rng = np.random.default_rng(0)
    images = np.empty((count, size, size, 3), np.uint8)
    for i in range(count):
        photo = _open(jpegs[i % len(jpegs)]).convert("RGB")
        bleed = rng.uniform(0, 0.15)
        centering = rng.uniform(size=2).tolist()
        images[i] = np.asarray(ImageOps.fit(photo, (size, size), Image.Resampling.BILINEAR, bleed, centering))
    return images


def make_samples(jpegs: Sequence[bytes], case: Case) -> list[dict[str, Any]]:
    """A batch of samples with targets.

    ``image`` uint8 [S, S, 3], ``boxes`` float32 [M, 4] as left, top, right, bottom, ``labels`` int64 [M]; ``mask`` with
    value k + 1 in box k, or a dict of several such masks; ``masks`` uint8 [M, S, S]. Masks are filled rectangles, so
    that a check knows where they must be.
    """
    from PIL import Image

    rng = np.random.default_rng(0)
    side = case.size
    objects = case.objects
    samples = []
    for n in range(case.batch):
        photo = _open(jpegs[n % len(jpegs)]).convert("RGB").resize((side, side), Image.Resampling.BICUBIC)
        sides = rng.integers(max(side // 16, 2), side // 3, (objects.boxes, 2))
        first = (rng.uniform(size=sides.shape) * (side - sides)).astype(np.int64)
        boxes = np.concatenate([first, first + sides], axis=1)
        sample: dict[str, Any] = {
            "image": np.asarray(photo),
            "boxes": boxes.astype(np.float32),
        }
        sample["labels"] = rng.integers(0, 80, objects.boxes)
        if objects.masks == 1:
            sample["mask"] = rectangles(boxes, side)
        elif objects.masks:
            # The first is called "mask", because AlbumentationsX requires this name.
            sample["mask"] = {f"mask{k or ''}": rectangles(boxes, side) for k in range(objects.masks)}
        if objects.has_instances:
            sample["masks"] = np.stack([rectangles(box[None], side) for box in boxes])
        samples.append(sample)
    return samples


def rectangles(boxes: npt.NDArray[np.int64], side: int) -> Images:
    mask = np.zeros((side, side), np.uint8)
    for k, (left, top, right, bottom) in enumerate(boxes.tolist()):
        mask[top:bottom, left:right] = k + 1
    return mask


def write_photos(jpegs: Sequence[bytes], folder: Path) -> None:
    """Class folders."""
    for number, data in enumerate(jpegs):
        home = folder / f"class-{number % CLASSES:03d}"
        home.mkdir(parents=True, exist_ok=True)
        (home / f"{number:05d}.jpg").write_bytes(data)


def list_photos(folder: Path) -> tuple[list[Path], list[int]]:
    """Files and labels in ImageFolder's order, which ids follow."""
    classes = sorted(path for path in folder.iterdir() if path.is_dir())
    labeled = [(file, label) for label, home in enumerate(classes) for file in sorted(home.iterdir())]
    return [file for file, _ in labeled], [label for _, label in labeled]


# -- from the harness to its workers -----------------------------------------------------------------------------------


def save(jpegs: Sequence[bytes], cases: Sequence[Case], folder: Path) -> str:
    """Write the inputs of these cases -> a description of the folder."""
    np.save(folder / "jpegs.npy", np.frombuffer(b"".join(jpegs), np.uint8))
    np.save(folder / "jpeg_sizes.npy", np.array([len(data) for data in jpegs]))
    if any(case.kind == "loader" for case in cases):
        write_photos(jpegs, folder / "photos")
    sizes = {case.size for case in cases if case.size and case.kind != "targets"}
    if any(case.is_single for case in cases):
        sizes.add(SIZE)
    for size in sizes:
        np.save(folder / f"{size}.npy", make_squares(jpegs, size, COUNTS[size]))
    words = [f"{COUNTS[size]} crops of {size} px" for size in sorted(sizes)]
    return ", ".join(words) or f"{len(jpegs)} files"


def load_jpegs(folder: Path) -> list[bytes]:
    ends = np.cumsum(np.load(folder / "jpeg_sizes.npy"))
    return [part.tobytes() for part in np.split(np.load(folder / "jpegs.npy"), ends[:-1])]


def load(folder: Path, case: Case) -> Any:
    """A library's input for a case: files, an array [N, S, S, 3], a list of images, or samples."""
    if case.kind == "targets":
        return make_samples(load_jpegs(folder), case)
    if case.is_single:
        images = np.load(folder / f"{SIZE}.npy")[:SINGLE_COUNT]
        return list(images) if case.size else _resized(images)
    if case.kind == "deep operation":
        return _deepened(np.load(folder / f"{case.size}.npy")[:DEEP_COUNT], case.depth)
    if case.size:
        return np.load(folder / f"{case.size}.npy")
    jpegs = load_jpegs(folder)
    return jpegs if case.reads_files else [decode(data) for data in jpegs]


def _deepened(images: Images, depth: str) -> npt.NDArray[Any]:
    """Photos in uint16 (0..65535) or float32 (0..1), with random low bits."""
    low = np.random.default_rng(0).integers(0, 256, images.shape, np.uint16)
    words = (images.astype(np.uint16) << 8) | low
    return words if depth == "uint16" else (words / np.float32(65535)).astype(np.float32)


def batches(items: Any, batch: int) -> Iterator[Any]:
    """Consecutive slices of ``items``, for ever. The last items of an incomplete batch are not used."""
    whole = len(items) // batch
    if not whole:
        raise ValueError(f"--batch {batch}: got {len(items)} images; accepted: up to as many")
    for i in itertools.cycle(range(whole)):
        yield items[i * batch : (i + 1) * batch]


def feed(items: Any, batch: int, make: Callable[[Any], T]) -> Callable[[], T]:
    """``make`` of one batch after another."""
    following = batches(items, batch)
    return lambda: make(next(following))


def decode(data: bytes) -> Images:
    return np.asarray(_open(data).convert("RGB"))


def _resized(images: Images) -> list[Images]:
    """Sides of 144 to 304 pixels."""
    from PIL import Image

    rng = np.random.default_rng(0)
    made = []
    for image in images:
        width, height = rng.integers(144, 305, 2).tolist()
        made.append(np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)))
    return made


def _open(data: bytes) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(data), formats=("JPEG",))
