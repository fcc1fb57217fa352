"""Checks of Variegate's pixels, at the level that is measured. No speed counts unless the check of its case passed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

import variegate as vg
from benchmarks import cases as C
from benchmarks.cases import Case
from benchmarks.inputs import decode, list_photos
from benchmarks.libraries import LoaderInputs, ours, pillow
from benchmarks.replay import replay
from tests import oracle
from tests.oracle.device import install as install_oracle
from tests.oracle.instruction import deep_pixels
from variegate.program.ops import SPECS

# The device "oracle", which defines what operations mean.
install_oracle()

Pixels = npt.NDArray[Any]
# Images of a check, by size of the inputs: the reference is slow.
SAMPLES = {0: 16, 32: 64, C.SIZE: 16, 1024: 2}
# Works of their own, which are also compared with torchvision, and the images of their checks.
REPLAYED = ("w1", "w1_local", "w2")
REPLAYED_SAMPLES = 64
SINGLE_SAMPLES = 8
# The resample may round by one value the other way; equalize and autocontrast, if they follow, stretch that value.
AFTER_RESAMPLE: dict[str, Any] = {"mostly": 1, "share": 0.999, "anywhere": 16}
TO_THE_BIT: dict[str, Any] = {"mostly": 0, "share": 1.0, "anywhere": 0}
# White of the reference, which computes with integers: about as many levels as float32 has between 0.5 and 1.
DEEP_WHITE = {"uint16": 65535, "float32": 255 << 16}
# Tolerance as a share of white. Values on a threshold may fall to either side.
DEEP_UNIT = {"uint16": 1.01 / 65535, "float32": 1.01e-5}
DEEP_SHARE = 0.999


@dataclass(frozen=True)
class Check:
    """A property of our pixels, and its measured value."""

    name: str
    passed: bool
    found: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def within(name: str, a: Pixels, b: Pixels, mostly: float, share: float, anywhere: float) -> Check:
    """At most ``mostly`` values off on a ``share`` of the pixels, and at most ``anywhere`` on any pixel."""
    if a.shape != b.shape:
        return Check(name, False, f"shapes differ: {a.shape} and {b.shape}")
    off = np.abs(np.subtract(a, b, dtype=np.float64))
    passed = bool((off <= mostly).mean() >= share and off.max(initial=0) <= anywhere)
    same = int((off.reshape(len(off), -1).max(axis=1) == 0).sum())
    return Check(
        name,
        passed,
        f"{same} of {len(off)} images bit-identical, largest difference {off.max(initial=0):g}",
    )


def _count_equal(name: str, same: int, count: int) -> Check:
    return Check(name, same == count, f"{same} of {count} images bit-identical")


def outputs(case: Case, inputs: Any, device: str, is_float: bool = False) -> Pixels:
    """NHWC outputs with ids 0, 1, 2, ..., so that every call draws the same; all pixels [P, 3] of views."""
    augmenter = vg.Augmenter(
        ours.transform(case, is_float),
        device=device,
        seed=0,
        layout="NHWC",
        num_threads=1,
    )
    ids = list(range(len(inputs)))
    if case.views:
        groups = augmenter.decode_and_run(inputs, ids=ids)
        return np.concatenate([np.asarray(group).reshape(-1, 3) for group in groups])
    images = [decode(data) for data in inputs] if case.reads_files else inputs
    made: Any = augmenter(images, ids=ids, partners=ours.partners_of(case))
    return np.asarray(made[0] if isinstance(made, tuple) else made)


def check(case: Case, inputs: Any, device: str = "cpu", kind: str = "") -> Iterator[Check]:
    """Every check of a case. ``kind``: of a loader's workers."""
    if case.kind == "loader":
        yield from check_loader(inputs, kind)
    elif case.kind == "targets":
        yield from _check_targets(case, inputs)
    elif case.kind == "function":
        yield from _check_function(case, inputs[:SINGLE_SAMPLES])
    elif case.is_single:
        yield _check_single(case, inputs[:SINGLE_SAMPLES])
    elif case.kind == "deep operation":
        yield _check_deep(case, inputs[: SAMPLES[case.size]])
    elif case.kind == "gpu":
        yield from _check_gpu(case, inputs[0], device)
    else:
        yield from _check_pixels(case, few(case, inputs))


def few(case: Case, inputs: Any) -> Any:
    count = REPLAYED_SAMPLES if case.name in REPLAYED else SAMPLES[case.size]
    return inputs[:count]


def _check_pixels(case: Case, inputs: Any) -> Iterator[Check]:
    tolerance = TO_THE_BIT if case.size or case.views else AFTER_RESAMPLE
    fused = outputs(case, inputs, "cpu")
    yield within(
        "cpu equals the reference",
        fused,
        outputs(case, inputs, "oracle"),
        **tolerance,
    )
    if case.dtype != "uint8":
        yield normalized(fused, outputs(case, inputs, "cpu", is_float=True))
    if case.name in REPLAYED:
        yield within("equals torchvision on Pillow, operation by operation", fused, replayed(case, inputs), **tolerance)
    if case.reads_files and not case.views:
        yield from _check_decoding(case, inputs, fused)


def replayed(case: Case, inputs: Any) -> Pixels:
    """The same images and operations by torchvision."""
    images = [decode(data) for data in inputs] if case.reads_files else list(inputs)
    augmenter = vg.Augmenter(ours.transform(case, is_float=False), seed=0)
    program = augmenter.program([image.shape for image in images], ids=list(range(len(images))))
    rows = [program.operations(row) for row in range(len(images))]
    named = [[(SPECS[op].name, arguments.tolist()) for op, arguments in row] for row in rows]
    return replay(images, named)


def normalized(pixels: Pixels, floats: Pixels) -> Check:
    """Float outputs are ``(x / 255 - mean) / std`` of the uint8 ones, up to float32's rounding (values reach 2.7)."""
    expected = (pixels.astype(np.float64) / 255 - np.array(C.MEAN)) / np.array(C.STD)
    off = float(np.abs(floats - expected).max())
    return Check(
        "normalized as (x / 255 - mean) / std",
        off < 2e-6,
        f"largest difference {off:.1e}",
    )


def _check_decoding(case: Case, files: list[bytes], whole: Pixels) -> Iterator[Check]:
    """Decoding only the crop, without and with an index, yields the pixels of full images."""
    augmenter = vg.Augmenter(ours.transform(case, is_float=False), seed=0, layout="NHWC", num_threads=1)
    ids = list(range(len(files)))
    for word, index in (("", None), (" with an index", ours.make_index(files))):
        made = np.asarray(augmenter.decode_and_run(files, ids=ids, index=index))
        yield within(
            f"decode_and_run{word} equals cropping decoded images",
            made,
            whole,
            **TO_THE_BIT,
        )


def _check_deep(case: Case, images: Any) -> Check:
    """Compare with the reference. It clips values beyond black and white, which float32 images keep."""
    white = DEEP_WHITE[case.depth]
    ids = list(range(len(images)))
    levels = images.astype(np.int64)
    if case.depth == "float32":
        # Far from black and white: the reference clips between the two axes of a resize.
        levels = white // 3 + np.rint(images * (white / 3)).astype(np.int64)
        images = (levels / white).astype(np.float32)
    augmenter = vg.Augmenter(ours.transform(case), seed=0, layout="NHWC", num_threads=1)
    made = augmenter(images, ids=ids, partners=ours.partners_of(case))
    pixels = np.asarray(made[0] if isinstance(made, tuple) else made)
    if pixels.dtype != np.dtype(case.dtype):
        return Check("outputs have the expected dtype", False, str(pixels.dtype))
    program = augmenter.program(images, ids=ids, partners=ours.partners_of(case))
    with deep_pixels(white):
        expected = np.stack(oracle.run(program, list(levels)))
    unit = DEEP_UNIT[case.depth]
    if program.output.is_float:
        found, expected = pixels / (unit / min(C.STD)), expected / (unit / min(C.STD))
    else:
        own_white = 65535.0 if case.depth == "uint16" else 1.0
        found, expected = np.clip(pixels / own_white, 0, 1) / unit, expected / white / unit
    return within("cpu equals the reference", found, expected, mostly=1.0, share=DEEP_SHARE, anywhere=np.inf)


# -- one image ---------------------------------------------------------------------------------------------------------


def _check_single(case: Case, images: list[Any]) -> Check:
    t = ours.transform(C.BY_NAME[case.key])
    ids = list(range(len(images)))
    by_id = vg.as_transform(t)
    ones = [by_id(Image.fromarray(images[i]), id=i) for i in ids]
    batch = list(vg.Augmenter(t, seed=0, num_threads=1)(images, ids=ids))
    same = sum(bool((one == row).all()) for one, row in zip(ones, batch, strict=True))
    return _count_equal("one at a time equals the batch", same, len(ids))


def _check_function(case: Case, images: list[Any]) -> Iterator[Check]:
    name = case.key
    made = [np.asarray(ours.function(name)(image)) for image in images]
    plain = [np.asarray(ours.function(name, "oracle")(image)) for image in images]
    yield _close("cpu equals the reference", made, plain, 2e-6 if name == "normalize" else 0.0)
    if name in pillow.OPERATIONS and name not in pillow.OTHERWISE:
        theirs = [np.asarray(pillow.OPERATIONS[name](Image.fromarray(image))) for image in images]
        # Interpolation rounds in its own way.
        interpolates = name in ("rotate", "resize")
        yield _close("as Pillow", made, theirs, 2.0 if interpolates else 0.0)


def _close(name: str, made: Sequence[Pixels], other: Sequence[Pixels], allowed: float) -> Check:
    off = 0.0
    for a, b in zip(made, other, strict=True):
        if a.shape != b.shape:
            return Check(name, False, f"shapes differ: {a.shape} and {b.shape}")
        off = max(off, float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()))
    return Check(name, off <= allowed, f"largest difference {off:g}; accepted: {allowed:g}")


# -- targets -----------------------------------------------------------------------------------------------------------


def _check_targets(case: Case, samples: list[dict[str, Any]]) -> Iterator[Check]:
    made, plain = (_with_targets(case, samples, device) for device in ("cpu", "oracle"))
    equal = [
        all(bool((a == b).all()) for a, b in zip(_arrays(one), _arrays(other), strict=True))
        for one, other in zip(made, plain, strict=True)
    ]
    yield _count_equal("images and targets equal the reference's", sum(equal), len(equal))
    count = sum(len(one["boxes"]) for one in made)
    yield Check("boxes remain", count > 0, f"{count} of {case.batch * case.objects.boxes}")


def _with_targets(case: Case, samples: list[dict[str, Any]], device: str) -> list[dict[str, Any]]:
    augmenter = vg.Augmenter(ours.transform(case), device=device, seed=0, num_threads=1, layout="NHWC")
    return augmenter(samples, ids=list(range(len(samples))), partners=ours.partners_of(case))


def _arrays(sample: dict[str, Any]) -> Iterator[Pixels]:
    for value in sample.values():
        for array in value.values() if isinstance(value, dict) else [value]:
            yield np.asarray(array)


# -- GPU ---------------------------------------------------------------------------------------------------------------


def _check_gpu(case: Case, batch: list[Any], device: str) -> Iterator[Check]:
    """A whole batch on the device against the CPU, in uint8 and bfloat16; then the CPU against the reference."""
    tolerance = TO_THE_BIT if case.size else AFTER_RESAMPLE
    on_device = _augmented(case, batch, device, is_float=False)
    on_cpu = _augmented(case, batch, "cpu", is_float=False)
    yield within(f"{device} as cpu, uint8", on_device.numpy(), on_cpu.numpy(), **tolerance)
    floats = _augmented(case, batch, device, is_float=True)
    # bfloat16 rounds by up to 0.3 values here, so the nearest value is the pixel.
    mean, std = (torch.tensor(numbers).view(1, 3, 1, 1) for numbers in (C.MEAN, C.STD))
    pixels = ((floats.float() * std + mean) * 255).round().clamp(0, 255).to(torch.uint8)
    yield within(
        f"{device}: bfloat16 shows the pixels of uint8",
        pixels.numpy(),
        on_device.numpy(),
        **TO_THE_BIT,
    )
    yield from _check_pixels(case, few(case, batch))


def _augmented(case: Case, batch: list[Any], device: str, is_float: bool) -> torch.Tensor:
    augmenter = vg.Augmenter(ours.transform(case, is_float), device, seed=0, dtype="bfloat16", layout="NCHW")
    made = augmenter(ours.place(batch, device), ids=np.arange(len(batch)))
    return torch.as_tensor(made).cpu()


# -- loaders -----------------------------------------------------------------------------------------------------------


def check_loader(given: LoaderInputs, kind: str) -> Iterator[Check]:
    """Two epochs of the loader hold exactly the pixels that ``decode_and_run`` makes of each file and its id."""
    files, labels = list_photos(given.folder)
    augmenter = vg.Augmenter(ours.transform(C.W1), device="cpu", seed=0, num_threads=given.cores)
    loader = ours.make_loader(given, kind, drop_last=False)
    for epoch in (0, 1):
        loader.set_epoch(epoch)
        found: Counter[tuple[bytes, int]] = Counter()
        for images, numbers in loader:
            found.update(_digests(images, numbers))
        expected: Counter[tuple[bytes, int]] = Counter()
        for start in range(0, len(files), given.batch):
            ids = range(start, min(start + given.batch, len(files)))
            images = augmenter.decode_and_run([files[i].read_bytes() for i in ids], ids=list(ids), epoch=epoch)
            expected.update(_digests(images, [labels[i] for i in ids]))
        name = f"epoch {epoch} of the loader equals decode_and_run of the same files and ids"
        yield _count_equal(name, (found & expected).total(), max(found.total(), expected.total()))


def _digests(images: Any, labels: Any) -> Iterator[tuple[bytes, int]]:
    for image, label in zip(np.asarray(images), np.asarray(labels).tolist(), strict=True):
        yield hashlib.blake2b(image.tobytes(), digest_size=16).digest(), label
