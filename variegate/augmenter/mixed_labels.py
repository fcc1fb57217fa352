"""Who is mixed with whom in a batch, and the labels that follow from it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from variegate.errors import shown
from variegate.program.program import Mixture

NO_LABEL = -1


class MixedLabels(NamedTuple):
    """Labels of images that were mixed with others, where ``num_classes`` is not given.

    The loss is ``(1 - weight) * loss(label) + weight * loss(partner)``; of a transform that mixes more than two
    (``Mosaic``), ``partner`` and ``weight`` are [N, K].
    """

    label: torch.Tensor  # int64[N]: of the image itself
    partner: torch.Tensor  # int64[N]: of the one it is mixed with
    weight: torch.Tensor  # float32[N]: the partner's share; 0 where nothing is mixed


def num_partners(transform: Any) -> int:
    """How many others a transform mixes an image with."""
    return max((mixer.num_partners for mixer in transform._mixers), default=0)


def check_partners(partners: Any, images: int, needed: int) -> npt.NDArray[np.int32] | None:
    """What a call says of partners -> int32[outputs, needed], places in the batch; None where there is nothing to mix.

    ``"batch"``: the images before each one, from the first on those at the end; or one place (or ``needed`` of them)
    for each of the first images of the batch, which are then the outputs. Raises ValueError.
    """
    is_batch = isinstance(partners, str) and partners == "batch"
    if not needed and not is_batch:
        raise ValueError(f"partners: got {shown(partners)} with a transform that mixes nothing; accepted: 'batch'")
    if not needed or not images:
        return None
    if is_batch:
        places = np.arange(images)[:, None] - np.arange(1, needed + 1)
        return (places % images).astype(np.int32)
    accepted = f"'batch', or places in the batch, integers from 0 to {images - 1}: {needed} for each output"
    try:
        array = np.asarray(partners)
    except (ValueError, TypeError) as error:
        raise ValueError(f"partners: got {shown(partners)}; accepted: {accepted}") from error
    if array.ndim == 1 and needed == 1:
        array = array[:, None]
    is_fit = array.ndim == 2 and array.shape[1] == needed and 0 < len(array) <= images and array.dtype.kind in "iu"
    if not is_fit or array.min() < 0 or array.max() >= images:
        raise ValueError(f"partners: got {shown(partners)}; accepted: {accepted}")
    return array.astype(np.int32)


def mix_labels(labels: Any, mixture: Mixture, num_classes: int | None) -> torch.Tensor | MixedLabels:
    """The labels of the outputs: float32[N, num_classes], or ``MixedLabels`` without ``num_classes``.

    ``labels``: of every image of the batch. Classes are integers, -1 for none (a row of zeros); labels that are floats
    already, of any shape, are mixed as they are: float32[N, ...]. Raises ValueError for a class that is none.
    """
    array = _as_array(labels)
    shares, places = mixture.shares, np.concatenate([np.arange(len(mixture.partners))[:, None], mixture.partners], 1)
    if array.dtype.kind == "f":
        flat = array.reshape(len(array), math.prod(array.shape[1:])).astype(np.float32)
        mixed = np.einsum("nk,nkc->nc", shares, flat[places])
        return torch.from_numpy(mixed.reshape(len(places), *array.shape[1:]))
    if array.dtype.kind not in "iub" or array.ndim != 1:
        got = f"{array.dtype}{list(array.shape)}"
        raise ValueError(f"labels: got {got}; accepted where images are mixed: one class for each, or floats")
    classes = array.astype(np.int64)[places]
    if num_classes is None:
        one = (slice(None), 1) if shares.shape[1] == 2 else (slice(None), slice(1, None))
        parts = (classes[:, 0], classes[one], shares[one])
        return MixedLabels(*(torch.from_numpy(np.ascontiguousarray(part)) for part in parts))
    wrong = (classes < NO_LABEL) | (classes >= num_classes)
    if wrong.any():
        accepted = f"0 to {num_classes - 1} (num_classes={num_classes}), or -1 for none"
        raise ValueError(f"labels: got class {int(classes[wrong][0])}; accepted: {accepted}")
    soft = np.zeros((len(places), num_classes + 1), np.float32)
    np.add.at(soft, (np.arange(len(places))[:, None], classes), shares)  # class -1 goes to the last column
    return torch.from_numpy(np.ascontiguousarray(soft[:, :num_classes]))


def label_of(mixed: torch.Tensor | MixedLabels, n: int) -> torch.Tensor | MixedLabels:
    """Of ``mix_labels``' result that of one output."""
    return MixedLabels(*(part[n] for part in mixed)) if isinstance(mixed, MixedLabels) else mixed[n]


def as_tensor_of_labels(labels: Any) -> torch.Tensor:
    """Of images that are not mixed. Raises ValueError for what is no number."""
    if isinstance(labels, torch.Tensor):
        return labels
    array = _as_array(labels)
    if array.dtype.kind not in "iubf":
        raise ValueError(f"labels: got {shown(labels)}; accepted: numbers, one or as many for each image")
    return torch.as_tensor(array)


def _as_array(labels: Any) -> npt.NDArray[Any]:
    if isinstance(labels, (list, tuple)) and labels and isinstance(labels[0], torch.Tensor):
        labels = torch.stack(list(labels))
    if isinstance(labels, torch.Tensor):
        labels = labels.detach().cpu()
        return (labels.float() if labels.is_floating_point() else labels).numpy()  # NumPy has no bfloat16
    return np.asarray(labels)
