"""W1i of photos of 12 megapixels."""

from __future__ import annotations

import io
from pathlib import Path

from benchmarks.inputs import Inputs, read_jpegs
from benchmarks.works.indexed import indexed_work

COUNT, HEIGHT, WIDTH, QUALITY = 64, 3000, 4000, 90
# Photos beside and below each other in one picture: one alone, enlarged so far, would have no detail to be coded.
ACROSS = 4


def make_inputs(tar: Path | None) -> tuple[Inputs, str]:
    from PIL import Image

    small, origin = read_jpegs(tar)
    side = WIDTH // ACROSS, HEIGHT // ACROSS
    made = []
    for i in range(COUNT):
        large = Image.new("RGB", (WIDTH, HEIGHT))
        for place in range(ACROSS**2):
            data = small[(i * ACROSS**2 + place) % len(small)]
            photo = (
                Image.open(io.BytesIO(data), formats=("JPEG",)).convert("RGB").resize(side, Image.Resampling.BICUBIC)
            )
            large.paste(photo, (place % ACROSS * side[0], place // ACROSS * side[1]))
        file = io.BytesIO()
        large.save(file, "JPEG", quality=QUALITY)
        made.append(file.getvalue())
    megabytes = sum(map(len, made)) / len(made) / 1e6
    return Inputs(jpegs=made), f"of {WIDTH}x{HEIGHT} and {megabytes:.1f} MB, {ACROSS**2} photos in each, of {origin}"


WORK = indexed_work("w1i_large", "JPEG bytes of 12 megapixels -> as W1", 3.0, make_inputs)
