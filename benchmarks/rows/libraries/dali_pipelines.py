"""DALI's pipelines of W2o. What happens with a probability is a condition, which DALI runs on those samples alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nvidia.dali import fn, types
from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment

from benchmarks.rows import catalogue as C
from benchmarks.rows.libraries import dali_operations as D

Result = tuple[Any, dict[str, Any]]
CUBIC = types.INTERP_CUBIC


def flip() -> dict[str, Any]:
    return {"mirror": fn.random.coin_flip(probability=0.5)}


def coin(p: float) -> Any:
    return fn.random.coin_flip(probability=p, dtype=types.BOOL)


def views(images: Any, jitter: tuple[float, ...], kernel: int, blur: float, solarize: float) -> Result:
    """What all of SimCLR, BYOL and DINO do behind the crop."""
    if coin(0.8):
        images = D.jitter(images, jitter)
    if coin(0.2):
        images = D.grayscale(images)
    if coin(blur):
        images = D.blurred(images, kernel)
    if coin(solarize):
        images = D.solarized(images)
    return images, flip()


def simclr(images: Any) -> Result:
    return views(D.resized_crop(images), C.SIMCLR_JITTER, C.SIMCLR_KERNEL, 0.5, 0.0)


def byol(images: Any) -> Result:
    return views(D.resized_crop(images, CUBIC), C.BYOL_JITTER, C.SIMCLR_KERNEL, 1.0, 0.0)


def dino_global(images: Any) -> Result:
    crop = D.resized_crop(images, CUBIC, 224, C.GLOBAL_SCALE)
    return views(crop, C.BYOL_JITTER, C.DINO_KERNEL, 0.1, 0.2)


def dino_local(images: Any) -> Result:
    crop = D.resized_crop(images, CUBIC, 96, C.LOCAL_SCALE)
    return views(crop, C.BYOL_JITTER, C.DINO_KERNEL, 0.5, 0.0)


def imagenet(images: Any) -> Result:
    return D.resized_crop(images), flip()


def cifar(images: Any) -> Result:
    images, _ = D.erased(D.random_crop(images, 32, 4), [8.0, 8.0])
    return images, flip()


def jitter_affine(images: Any) -> Result:
    return D.affine(D.jitter(images, C.JITTER), D.LINEAR)


def three_augment(images: Any) -> Result:
    choice = fn.random.uniform(range=[0.0, 3.0])
    if choice < 1.0:
        images = D.grayscale(images)
    elif choice < 2.0:
        images = D.solarized(images)
    else:
        images = D.blurred(images, C.THREE_KERNEL)
    return D.jitter(images, (0.3, 0.3, 0.3, 0.0)), flip()


def auto(images: Any) -> Result:
    return auto_augment.auto_augment(images, "image_net", fill_value=0, interp_type=D.NEAREST), flip()


def trivial(images: Any) -> Result:
    return trivial_augment.trivial_augment_wide(images, fill_value=0, interp_type=D.NEAREST), flip()


def rand(size: int) -> Callable[[Any], Result]:
    translate = int(150 / 331 * size)

    def row(images: Any) -> Result:
        images = rand_augment.rand_augment(
            images, n=C.NUM_OPS, m=C.MAGNITUDE, fill_value=0, interp_type=D.NEAREST, max_translate_abs=translate
        )
        return images, flip()

    return row


ROWS: dict[str, Callable[[Any], Result]] = {
    "imagenet": imagenet,
    "cifar": cifar,
    "simclr": simclr,
    "byol": byol,
    "dino_global": dino_global,
    "dino_local": dino_local,
    "jitter_affine": jitter_affine,
    "autoaugment": auto,
    "trivialaugment": trivial,
    "three_augment": three_augment,
    "randaugment_32": rand(32),
    "randaugment": rand(224),
    "randaugment_1024": rand(1024),
    "randaugment_uint8": rand(224),
}
