"""``python -m benchmarks.run_shares [--images TAR] [--out FILE.json]``: what the time of W1 is made of, on one core.

W1 runs without and with an entropy index. What is decoded on the way is kept, and decoded again in parts: at an eighth
of the size in gray, which is the Huffman code and little else; in gray, which adds the inverse DCT of luma; in full,
which adds that of chroma (taken to cost as much a block as luma's), its upsampling and the conversion to RGB. All else
is measured as it is called, or as the difference that a step of the transform makes.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.inputs import DEFAULT_TAR
from benchmarks.worker import pin

BATCH, ROUNDS, SEED = 64, 9, 0
# 8x8 blocks of chroma for each of luma, by how a file is subsampled.
CHROMA_BLOCKS = {"444": 2.0, "422": 1.0, "440": 1.0, "420": 0.5, "411": 0.5, "Gray": 0.0}
Work = Callable[[], object]


class Decode(NamedTuple):
    """A call of simplejpeg: the file that it was given, or the part of one."""

    file: bytes
    options: dict[str, Any]
    chroma_blocks: float


def in_turn(works: dict[str, Work], images: int) -> dict[str, float]:
    """Microseconds of processor time for an image, the best of a few rounds in which all have their turn."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for number in range(ROUNDS + 1):
        for name, work in works.items():
            begin = time.process_time()
            work()
            if number:  # the first is for the caches
                found[name].append(time.process_time() - begin)
    return {name: 1e6 * min(seconds) / images for name, seconds in found.items()}


@contextmanager
def recorded(module: Any, name: str) -> Iterator[list[tuple[tuple[Any, ...], dict[str, Any]]]]:
    """The arguments of every call of a function, which goes on doing what it does; the file among them is copied."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    function = getattr(module, name)

    def record(*args: Any, **options: Any) -> Any:
        calls.append(((bytes(args[0]), *args[1:]), dict(options)))
        return function(*args, **options)

    setattr(module, name, record)
    try:
        yield calls
    finally:
        setattr(module, name, function)


def decodes(run: Work) -> list[Decode]:
    import simplejpeg

    with recorded(simplejpeg, "decode_jpeg") as calls:
        run()
    found = []
    for args, options in calls:
        options.pop("buffer", None)
        found.append(Decode(args[0], options, CHROMA_BLOCKS[simplejpeg.decode_jpeg_header(args[0])[3]]))
    return found


def decoding(files: list[Decode], room: Any) -> dict[str, Work]:
    """In memory that is used again, as the loader does."""
    import simplejpeg

    def every(colours: str, **options: Any) -> Work:
        return lambda: [simplejpeg.decode_jpeg(f.file, colours, buffer=room, **f.options, **options) for f in files]

    return {"eighth": every("GRAY", min_factor=8), "gray": every("GRAY"), "colours": every("RGB")}


def parts_of_decoding(found: dict[str, float], files: list[Decode]) -> dict[str, float]:
    entropy, gray, full = (found[name] for name in ("eighth", "gray", "colours"))
    # Weighed by the bytes of each file, as nearly as that says how many blocks it has.
    total = sum(len(one.file) for one in files)
    chroma = (gray - entropy) * sum(one.chroma_blocks * len(one.file) for one in files) / total
    transform = gray - entropy + chroma
    return {"Huffman code": entropy, "inverse DCT": transform, "upsampling and colors": full - entropy - transform}


def steps(images: list[Any]) -> dict[str, Work]:
    """What follows the decoding, on pictures in memory: each step with those before it."""
    import variegate as vg
    from benchmarks.inputs import MAGNITUDE, NUM_OPS
    from variegate import transforms as T

    crop: list[T.Transform] = [T.RandomResizedCrop(224), T.RandomHorizontalFlip()]
    policy = T.RandAugment(num_ops=NUM_OPS, magnitude=MAGNITUDE)
    last = T.Normalize(mean=vg.IMAGENET_MEAN, std=vg.IMAGENET_STD)
    batches = [list(range(i, i + BATCH)) for i in range(0, len(images), BATCH)]

    def work(*transforms: T.Transform) -> Work:
        augmenter = vg.Augmenter(T.Compose(list(transforms)), "cpu", SEED, num_threads=1)
        return lambda: [augmenter([images[i] for i in ids], ids=ids) for ids in batches]

    return {"crop": work(*crop), "store": work(*crop, last), "policy": work(*crop, policy, last)}


def shares(jpegs: list[bytes], index: Any, folder: Path) -> dict[str, float]:
    """Microseconds for an image: each part, and "all", which is W1 as it runs, with reading."""
    import numpy as np
    from PIL import Image

    import variegate as vg
    from benchmarks.peers.ours import transform
    from variegate.decode.entropy import cut
    from variegate.decode.entropy import index as index_module
    from variegate.decode.scan import scan_headers

    augmenter = vg.Augmenter(transform("w1"), "cpu", SEED, num_threads=1)
    batches = [list(range(i, i + BATCH)) for i in range(0, len(jpegs), BATCH)]
    paths = [folder / f"{i}.jpg" for i in range(len(jpegs))]

    def run() -> None:
        for ids in batches:
            augmenter.decode_and_run([jpegs[i] for i in ids], ids=ids, index=index)

    files = decodes(run)
    images = [np.asarray(Image.open(io.BytesIO(data), formats=("JPEG",)).convert("RGB")) for data in jpegs]
    works: dict[str, Work] = {
        "all": run,
        "read": lambda: [path.read_bytes() for path in paths],
        "heads": lambda: [scan_headers([jpegs[i] for i in ids], 1 << 40, 1 << 40) for ids in batches],
    }
    works |= decoding(files, np.empty(1 << 26, np.uint8)) | steps(images)
    if index is not None:
        with recorded(index_module, "cut_out") as calls:
            run()
        works["cut"] = lambda: [cut.cut_out(*args) for args, _ in calls]
    found = in_turn(works, len(jpegs))
    parts = {"read, from the page cache": found["read"], "heads": found["heads"]}
    if "cut" in found:
        parts["look up in the index, cut out"] = found["cut"]
    parts |= parts_of_decoding(found, files)
    parts["crop, resize, flip"] = found["crop"]
    parts["policy"] = found["policy"] - found["store"]
    parts["normalize, store as floats"] = found["store"] - found["crop"]
    every = found["all"] + found["read"]
    return parts | {"the rest: plans, calls": every - sum(parts.values()), "all": every}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run_shares", description=__doc__)
    parser.add_argument("--images", type=Path, default=DEFAULT_TAR, help="a tar of JPEG files")
    parser.add_argument("--core", type=int, default=None, help="the core to pin to (the last one)")
    parser.add_argument("--out", type=Path, default=None, help="a file for the figures as JSON")
    options = parser.parse_args(arguments)
    pin(max(os.sched_getaffinity(0)) if options.core is None else options.core)
    from benchmarks import machine
    from benchmarks.indexing import entropy_index
    from benchmarks.inputs import read_jpegs

    jpegs, origin = read_jpegs(options.images)
    jpegs = jpegs[: len(jpegs) // BATCH * BATCH]
    with tempfile.TemporaryDirectory() as folder:
        for i, data in enumerate(jpegs):
            (Path(folder) / f"{i}.jpg").write_bytes(data)
        without, with_index = (shares(jpegs, index, Path(folder)) for index in (None, entropy_index(jpegs)))
    where = machine.describe()
    print(f"{where['cpu']}, {where['level']}, one core; {origin}; {where['date']}", file=sys.stderr)
    print("| part | without an index | | with an index | |\n|---|--:|--:|--:|--:|")
    for name in with_index:
        cells = []
        for found in (without, with_index):
            value = found.get(name)
            cells += ["", ""] if value is None else [f"{value:,.0f} us", f"{value / found['all']:.0%}"]
        print("| " + " | ".join([name, *cells]) + " |")
    if options.out is not None:
        record = {"without": without, "with": with_index, "images": origin, "machine": where}
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
