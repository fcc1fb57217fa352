"""Train a small network on CIFAR-10 from Parquet files with ``variegate train``, in a quarter of an hour on two cores.

    python examples/train_cifar10.py cifar10-train.parquet cifar10-test.parquet

The files are those of Hugging Face's ``uoft-cs/cifar10``: a column of images, and one of labels. The recipe
"cifar10-fast" trains a network after airbench94 (Jordan 2024, arXiv 2404.00498), here of half the width. Further
options are those of ``variegate train``: ``--precision bfloat16`` halves the time on a processor that has it.
``--quick`` makes images of its own, and takes seconds. Needs pyarrow.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from variegate.cli import main as variegate


def write_stripes(path: Path, number: int) -> None:
    """Images of two classes, in the layout of Hugging Face: stripes across, stripes down."""
    rng, rows = np.random.default_rng(number), []
    for index in range(number):
        pixels = rng.integers(60, 120, (32, 32, 3)).astype(np.uint8)
        pixels[(slice(None, None, 4),) if index % 2 else (slice(None), slice(None, None, 4))] += 90
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        rows.append({"image": {"bytes": file.getvalue(), "path": None}, "label": index % 2})
    pq.write_table(pa.Table.from_pylist(rows), path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train", nargs="?", default="cifar10-train.parquet", help="images to train on")
    parser.add_argument("test", nargs="?", default="cifar10-test.parquet", help="images to score with")
    parser.add_argument("--out", default="cifar10", help="the folder for the log, the checkpoints and the model")
    parser.add_argument("--quick", action="store_true", help="as short as it goes")
    given, more = parser.parse_known_args()
    chosen = ["--recipe", "cifar10-fast", "--devices", "cpu", "--out", given.out]
    if not given.quick:
        chosen += ["--model", "airbench-94x0.5", "--epochs", "16"]
        return variegate(["train", given.train, "--validation", given.test, *chosen, *more])
    chosen += ["--model", "airbench-94x0.05", "--epochs", "2", "--warmup", "0.5", "--batch-size", "32"]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.parquet" for name in ("train", "test")]
        for file, number in zip(files, (256, 64), strict=True):
            write_stripes(file, number)
        return variegate(["train", str(files[0]), "--validation", str(files[1]), *chosen])


if __name__ == "__main__":
    sys.exit(main())
