"""What every source of samples by index must do, and the pictures that it is tried with.

A source joins the suite with an entry in SOURCES: a function that puts pictures somewhere under a folder that is not
there yet, and opens them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.data.tars import tar_bytes
from tests.images import gray, photo
from variegate.data.base import Item, Source
from variegate.data.filtered import sample_key
from variegate.data.folder import open_folder
from variegate.data.objects.arrays import open_arrays
from variegate.data.objects.dataset import open_dataset
from variegate.data.opening import open_source
from variegate.data.parquet import open_parquet
from variegate.data.raw import RawShard
from variegate.data.shards import Labels, Record
from variegate.data.storage import open_storage
from variegate.decode import read_image
from variegate.loader.mixture import Mixture

CLASSES = ("ant", "bee", "cat")


class Picture(NamedTuple):
    """An image file and its class."""

    extension: str
    data: bytes
    label: int


class Opened(NamedTuple):
    """A source, and (pixels, label) of each of its samples in order. ``reads_labels``: when it is opened, so that its
    fingerprint covers them."""

    source: Source
    expected: list[tuple[npt.NDArray[np.uint8], Any]]
    reads_labels: bool = True


Opener = Callable[[Path, list[Picture]], Opened]


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def turned_on_its_side() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(Image.fromarray(photo(20, 30, "coffee")), "JPEG", exif=exif.tobytes())


def pictures() -> list[Picture]:
    """Ordinary and odd ones, in the order of their classes."""
    colour, small = Image.fromarray(photo(48, 40)), Image.fromarray(photo(33, 21, "chelsea"))
    translucent = small.convert("RGBA")
    translucent.putalpha(Image.linear_gradient("L").resize(small.size))
    return [
        Picture("jpg", encoded(colour, "JPEG"), 0),
        Picture("png", encoded(Image.fromarray(gray(24, 31)[..., 0]), "PNG"), 0),
        Picture("png", encoded(Image.fromarray(photo(1, 1)), "PNG"), 1),
        Picture("png", encoded(small.quantize(16), "PNG"), 1),
        Picture("png", encoded(translucent, "PNG"), 1),
        Picture("jpg", turned_on_its_side(), 2),
        Picture("jpg", encoded(Image.fromarray(gray(17, 16)[..., 0]), "JPEG"), 2),
    ]


def pixels_of(item: Item) -> npt.NDArray[np.uint8]:
    return read_image(item.data) if isinstance(item.data, bytes) else item.data


def as_read(shown: list[Picture]) -> list[tuple[npt.NDArray[np.uint8], Any]]:
    return [(read_image(picture.data), picture.label) for picture in shown]


def folder(root: Path, shown: list[Picture]) -> Opened:
    for name in CLASSES:
        (root / name).mkdir(parents=True)
    for i, picture in enumerate(shown):
        (root / CLASSES[picture.label] / f"{i:03}.{picture.extension}").write_bytes(picture.data)
    return Opened(open_folder(root), as_read(sorted(shown, key=lambda picture: picture.label)))


def huggingface_table(shown: list[Picture]) -> pa.Table:
    """As the library ``datasets`` writes them."""
    features = '{"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": ["ant", "bee", "cat"]}}'
    rows = [{"bytes": picture.data, "path": f"{i}.{picture.extension}"} for i, picture in enumerate(shown)]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema([("image", kind), ("label", pa.int64())])
    schema = schema.with_metadata({"huggingface": f'{{"info": {{"features": {features}}}}}'})
    return pa.table([pa.array(rows, kind), pa.array([picture.label for picture in shown])], schema=schema)


def parquet(root: Path, shown: list[Picture], **options: Any) -> Opened:
    root.mkdir(parents=True)
    half = len(shown) // 2
    for name, part in (("a", shown[:half]), ("b", shown[half:])):
        pq.write_table(huggingface_table(part), root / f"{name}.parquet", row_group_size=2)
    return Opened(open_parquet([str(root / "a.parquet"), str(root / "b.parquet")], **options), as_read(shown))


def unpacked_parquet(root: Path, shown: list[Picture]) -> Opened:
    return parquet(root, shown, memory=1000, cache_dir=root / "cache")


def list_of_arrays(root: Path, shown: list[Picture]) -> Opened:
    expected = as_read(shown)
    expected[1] = (expected[1][0][..., :1], expected[1][1])
    images, labels = zip(*expected, strict=True)
    return Opened(open_arrays(list(images), list(labels), CLASSES), expected)


def memory_map(root: Path, shown: list[Picture]) -> Opened:
    root.mkdir(parents=True)
    sized = [np.asarray(Image.fromarray(pixels).resize((16, 12))) for pixels, _ in as_read(shown)]
    np.save(root / "images.npy", np.stack(sized))
    labels = np.array([picture.label for picture in shown], np.int32)
    source = open_arrays(np.load(root / "images.npy", mmap_mode="r"), labels, CLASSES)
    return Opened(source, list(zip(sized, labels.tolist(), strict=True)))


class FilesOfPictures:
    """As torchvision's ImageFolder: a list of files, opened when asked for."""

    def __init__(self, root: Path, samples: list[tuple[str, int]]) -> None:
        self.root, self.samples, self.classes = str(root), samples, list(CLASSES)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        path, label = self.samples[index]
        with Image.open(path) as image:
            return image.convert("RGB"), label


def dataset_of_files(root: Path, shown: list[Picture]) -> Opened:
    root.mkdir(parents=True)
    samples, expected = [], []
    for i, picture in enumerate(shown):
        (root / f"{i:03}").write_bytes(picture.data)
        samples.append((str(root / f"{i:03}"), picture.label))
        with Image.open(io.BytesIO(picture.data)) as image:
            expected.append((np.array(image.convert("RGB")), picture.label))
    return Opened(open_dataset(FilesOfPictures(root, samples)), expected)


def list_of_pairs(root: Path, shown: list[Picture]) -> Opened:
    return Opened(open_dataset([(picture.data, picture.label) for picture in shown]), as_read(shown))


def shards(root: Path, shown: list[Picture]) -> Opened:
    root.mkdir(parents=True)
    half = len(shown) // 2
    for name, part in (("a", shown[:half]), ("b", shown[half:])):
        members: list[tuple[str, bytes]] = []
        for i, picture in enumerate(part):
            members += [(f"{i:03}.{picture.extension}", picture.data), (f"{i:03}.cls", str(picture.label).encode())]
        (root / f"{name}.tar").write_bytes(tar_bytes(members))
    source = open_source(str(root / "*.tar"), classes=CLASSES)
    assert isinstance(source, Source)
    return Opened(source, as_read(shown))


def remote_shards(root: Path, shown: list[Picture]) -> Opened:
    """On fsspec's file system in memory, one with a local copy, one without."""
    opened = shards(root, shown)
    fsspec.filesystem("memory").put(str(root), str(root), recursive=True)
    sharded = open_source(f"memory:/{root}/*.tar", classes=CLASSES)
    assert len(sharded.shard(1)) == len(shown) - len(shown) // 2
    return Opened(sharded.by_index(), opened.expected)


def raw(root: Path, shown: list[Picture]) -> Opened:
    """Ids that are no places; gray with one channel in the file, as RGB where the source was files."""
    expected, half = as_read(shown), len(shown) // 2
    storage = open_storage(root)
    storage.prepare()
    labels = Labels("int", 0, CLASSES)
    for number, part in enumerate((range(half), range(half, len(shown)))):
        with RawShard(storage, f"shard-{number:06}.arrow", labels) as shard:
            for i in part:
                pixels, label = expected[i]
                is_gray = bool((pixels == pixels[..., :1]).all())
                data = np.ascontiguousarray(pixels[..., :1] if is_gray else pixels)
                shape = (*data.shape, 3)
                shard.add(Record(i, None, data.tobytes(), "raw", label, None, f"{i}.png", 7 * i + 3, shape))
            shard.commit()
    source = open_source(str(root / "*.arrow"))
    assert isinstance(source, Source)
    return Opened(source, expected)


def remote(open_it: Opener, pattern: str = "", **options: Any) -> Opener:
    """The same on fsspec's file system in memory, which any thread of the process sees. ``options``: of
    ``open_source``; an annotation file is that below the root."""

    def opener(root: Path, shown: list[Picture]) -> Opened:
        opened = open_it(root, shown)
        fsspec.filesystem("memory").put(str(root), str(root), recursive=True)
        given = {name: f"memory:/{root}/{value}" if "." in value else value for name, value in options.items()}
        source: Any = open_source(f"memory:/{root}{pattern}", **given)
        assert source.is_remote
        assert (source.classes, source.notes()) == (opened.source.classes, opened.source.notes())
        assert source.fingerprint == opened.source.fingerprint
        assert str(source.name(0)).startswith("memory://")
        return opened._replace(source=source)

    return opener


remote_folder = remote(folder)


def _images(root: Path, shown: list[Picture]) -> list[tuple[str, int, int]]:
    """Put into ``root/images`` -> name, height and width of each, upright."""
    (root / "images").mkdir(parents=True)
    names = [f"{i:03}.{picture.extension}" for i, picture in enumerate(shown)]
    for name, picture in zip(names, shown, strict=True):
        (root / "images" / name).write_bytes(picture.data)
    return [(name, *read_image(picture.data).shape[:2]) for name, picture in zip(names, shown, strict=True)]


def _with_targets(source: Any, shown: list[Picture]) -> Opened:
    """The class of a picture is that of its only object; the picture itself has none."""
    assert [source.read(i).targets["labels"].tolist() for i in range(len(source))] == [[one.label] for one in shown]
    return Opened(source, [(pixels, -1) for pixels, _ in as_read(shown)])


def coco(root: Path, shown: list[Picture]) -> Opened:
    images = [
        {"id": i, "file_name": name, "height": height, "width": width}
        for i, (name, height, width) in enumerate(_images(root, shown))
    ]
    objects = [
        {"id": i, "image_id": i, "category_id": picture.label, "bbox": [0, 0, 1, 1]} for i, picture in enumerate(shown)
    ]
    categories = [{"id": label, "name": name} for label, name in enumerate(CLASSES)]
    text = json.dumps({"images": images, "annotations": objects, "categories": categories})
    (root / "instances.json").write_text(text)
    return _with_targets(open_source(root / "images", annotations=root / "instances.json"), shown)


def yolo(root: Path, shown: list[Picture]) -> Opened:
    images = _images(root, shown)
    (root / "labels").mkdir()
    for (name, _, _), picture in zip(images, shown, strict=True):
        (root / "labels" / f"{name[:3]}.txt").write_text(f"{picture.label} 0.5 0.5 1 1\n")
    (root / "data.yaml").write_text(f"names: [{', '.join(CLASSES)}]")
    return _with_targets(open_source(root), shown)


def voc(root: Path, shown: list[Picture]) -> Opened:
    images = _images(root, shown)
    (root / "images").rename(root / "JPEGImages")
    (root / "Annotations").mkdir()
    for (name, height, width), picture in zip(images, shown, strict=True):
        box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>1</xmax><ymax>1</ymax></bndbox>"
        (root / "Annotations" / f"{name[:3]}.xml").write_text(
            f"<annotation><size><width>{width}</width><height>{height}</height></size>"
            f"<object><name>{CLASSES[picture.label]}</name>{box}</object></annotation>"
        )
    return _with_targets(open_source(root), shown)


def masks(root: Path, shown: list[Picture]) -> Opened:
    """The pixels of a picture's mask are its class."""
    images = _images(root, shown)
    (root / "masks").mkdir()
    for (name, height, width), picture in zip(images, shown, strict=True):
        mask = Image.new("L", (width, height), picture.label)
        mask.save(root / "masks" / f"{name[:3]}.png")
    source: Any = open_source(root, annotations="masks", classes=CLASSES)
    assert [source.read(i).targets["mask"][0, 0] for i in range(len(source))] == [one.label for one in shown]
    return Opened(source, [(pixels, -1) for pixels, _ in as_read(shown)], reads_labels=False)


def columns(root: Path, shown: list[Picture]) -> Opened:
    root.mkdir(parents=True)
    images = [{"bytes": picture.data, "path": None} for picture in shown]
    objects = [{"bbox": [[0.0, 0.0, 1.0, 1.0]], "category": [picture.label]} for picture in shown]
    pq.write_table(pa.table({"image": images, "objects": objects}), root / "a.parquet", row_group_size=2)
    source = open_source(root, annotations="columns", classes=CLASSES)
    return _with_targets(source, shown)._replace(reads_labels=False)


def members(root: Path, shown: list[Picture]) -> Opened:
    root.mkdir(parents=True)
    found: list[tuple[str, bytes]] = []
    for i, picture in enumerate(shown):
        record = {"boxes": [[0, 0, 1, 1]], "labels": [picture.label]}
        found += [(f"{i:03}.{picture.extension}", picture.data), (f"{i:03}.json", json.dumps(record).encode())]
    (root / "a.tar").write_bytes(tar_bytes(found))
    source = open_source(root, annotations="members", classes=CLASSES)
    return _with_targets(source, shown)._replace(reads_labels=False)


def mixture(root: Path, shown: list[Picture]) -> Opened:
    """Of a folder, and of arrays whose classes stand in another order."""
    half, last = folder(root, shown[: len(shown) // 2]), as_read(shown[len(shown) // 2 :])
    reordered = ("cat", "ant", "bee")
    images, labels = zip(*((image, reordered.index(CLASSES[label])) for image, label in last), strict=True)
    source = Mixture({"files": half.source, "memory": open_arrays(list(images), list(labels), reordered)})
    return Opened(source, half.expected + last)


SOURCES: dict[str, Opener] = {
    "mixture": mixture,
    "coco": coco,
    "voc": voc,
    "yolo": yolo,
    "masks": masks,
    "columns": columns,
    "members": members,
    "folder": folder,
    "remote-folder": remote_folder,
    "remote-raw": remote(raw),
    "remote-parquet": remote(parquet, "/*.parquet"),
    "remote-coco": remote(coco, "/images", annotations="instances.json"),
    "remote-voc": remote(voc),
    "remote-yolo": remote(yolo),
    "shards": shards,
    "remote-shards": remote_shards,
    "raw": raw,
    "parquet": parquet,
    "parquet-unpacked": unpacked_parquet,
    "arrays": list_of_arrays,
    "memory-map": memory_map,
    "dataset-files": dataset_of_files,
    "dataset-list": list_of_pairs,
}


def without_some(open_it: Opener) -> Opener:
    """The same samples, of a source that has two more, whose names are left out."""

    def opener(root: Path, shown: list[Picture]) -> Opened:
        more = Picture("png", encoded(Image.fromarray(photo(9, 8)), "PNG"), 0)
        whole, expected, reads_labels = open_it(root, [more, shown[0], more, *shown[1:]])
        source = open_source(whole, exclude=[sample_key(whole, 0), sample_key(whole, 2)])
        assert isinstance(source, Source)
        return Opened(source, [expected[1], *expected[3:]], reads_labels)

    return opener


SOURCES |= {f"{name}-without-some": without_some(open_it) for name, open_it in SOURCES.items()}
