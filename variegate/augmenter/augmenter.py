"""``Augmenter``: a transform bound to a device and a seed. Sample, lower, run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from copy import copy
from os import PathLike
from typing import TYPE_CHECKING, Any, get_args, overload

import numpy as np
import torch

from variegate.arrays import ImageArray
from variegate.augmenter.pickling import CopiedByState, check_copied
from variegate.augmenter.planner import (
    Conditions,
    Copies,
    Ids,
    Planner,
    Request,
    RunningCount,
    labels_of,
    num_partners,
    single_conditions,
    with_labels,
)
from variegate.augmenter.samples import augment_samples
from variegate.checks import integer, one_of
from variegate.decode.entropy.index import EntropyIndex
from variegate.errors import short_repr
from variegate.executors.batches import check_fits, depth_of_batch
from variegate.executors.runners import runner as runners
from variegate.executors.runners.decode_plan import SCALES
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.runners.grouping import frames_of
from variegate.executors.runners.host import CpuRunner, widened
from variegate.executors.runners.images import (
    NAMES,
    Tensors,
    check_image,
    check_sizes,
    looks_like_sizes,
    with_wanted_channels,
)
from variegate.ops.arguments import MAX_SLOTS
from variegate.ops.base import Transform, refuse_views
from variegate.pipelines.pipeline import Pipeline
from variegate.policies import load_policy
from variegate.program.depth import Depth
from variegate.program.describe import explain_row
from variegate.program.program import Output, Program
from variegate.removed import RemovedMethods
from variegate.threads import at_fork, check_running

if TYPE_CHECKING:
    from variegate.targets.settings import Targets


class Augmenter(CopiedByState, RemovedMethods):
    """Augment batches of images, each sample by its own random program.

    Pixels are a pure function of the image and (seed, epoch, id, copy). Batch size and thread count do not change them.

    Args:
        transform: a transform (``variegate.transforms``), or the name or file of a policy (see ``vg.load_policy``).
        device: "cpu" (also "cpu:0"), "cuda" or "cuda:N" (outputs stay on the GPU), "auto" (a GPU if available, else
            the CPU).
        seed: 0 to 2**64 - 1. With the epoch, the sample's id and the copy, it determines every random number.
        dtype: dtype of a normalized output: "float32", "float16", "bfloat16" or the torch dtype. Without a
            ``Normalize`` in the transform, the output has the dtype of the images.
        layout: "NCHW" or "NHWC".
        num_threads: CPU threads; None uses all cores available to the process.
        geometry: "composed" fuses consecutive interpolating maps into one, which blurs less and is faster. "exact" runs
            them one after another, as torchvision does. Three maps in a row differ by one or two levels on average
            (figures in docs/operations.md); a single map, or nearest interpolation, does not differ.
        decode: decoder of JPEGs in ``decode_and_run``: "cpu", "gpu" (nvImageCodec, ``pip install 'variegate[gpu]'``),
            or "auto" (the GPU if ``device`` is a GPU and nvImageCodec is installed).
        fast_decode: let the CPU decode a JPEG at 1/2, 1/4 or 1/8 scale where the crop is still at least as large as the
            output. Faster for large images, with different pixels: see ``decode_and_run``.
        consistent: True for clips, or other stacks of frames of one size, [T, H, W, C]. All frames of a clip share one
            program and the same noise. Operations that depend on content (equalize, contrast) look at each frame.

    Pickling copies the arguments; the copy's running count of ids resumes from the current one. An Augmenter works in a
    forked child, unless its device is a GPU.

    Raises:
        ValueError: if a device, dtype, layout, geometry or decoder is not accepted or not available.
    """

    def __init__(
        self,
        transform: Transform | str | PathLike[str],
        device: str = "cpu",
        seed: int = 0,
        dtype: runners.Dtype | torch.dtype = "float32",
        layout: runners.Layout = "NCHW",
        num_threads: int | None = None,
        geometry: runners.Geometry = "composed",
        *,
        decode: runners.Decode = "auto",
        fast_decode: bool = False,
        consistent: bool = False,
    ) -> None:
        if isinstance(transform, (str, PathLike)):
            transform = load_policy(transform)
        if not isinstance(transform, Transform):
            raise TypeError(
                f"transform: got {short_repr(transform)}; accepted: a variegate transform, such as T.Compose([...]), "
                "or what vg.load_policy takes"
            )
        if transform.num_slots > MAX_SLOTS:
            got = f"one that draws {transform.num_slots:,} blocks of random numbers for an image"
            raise ValueError(f"transform: got {got}; accepted: at most {MAX_SLOTS:,}")
        cores = "a positive integer, or None for all cores"
        self.transform = transform
        self.seed = integer("seed", seed, 0, 2**64 - 1)
        kind = one_of("dtype", str(dtype).removeprefix("torch."), get_args(runners.Dtype))
        self.dtype: torch.dtype = getattr(torch, kind)
        self.layout = one_of("layout", layout, get_args(runners.Layout))
        self.num_threads = None if num_threads is None else integer("num_threads", num_threads, 1, accepted=cores)
        self.geometry = one_of("geometry", geometry, get_args(runners.Geometry))
        self.decode = decode
        self.fast_decode = one_of("fast_decode", fast_decode, (True, False))
        self.consistent = one_of("consistent", consistent, (True, False))
        if self.consistent and transform._mixers:
            mixer = type(transform._mixers[0]).__name__
            raise ValueError(
                f"consistent: got True with a transform that has {mixer}, which mixes images; accepted: transforms of "
                "one clip alone"
            )
        self._output = Output(dtype=kind, layout=self.layout)
        self._wanted_device = device
        self._count = RunningCount()
        self._start()

    def _start(self) -> None:
        """Start the parts that belong to this process alone."""
        settings = self.dtype, self.num_threads, self.geometry, self.decode
        self.device, self._runner = runners.make_runner(self._wanted_device, *settings)
        self._planner = Planner(self.transform, self.seed, self._output, self._count)
        # Single images have a shorter path, except transforms that mix images.
        is_single = not (self.transform._must_be_root or self.transform._mixers or self.consistent)
        self._single_runner = self._runner if is_single and isinstance(self._runner, CpuRunner) else None
        at_fork(self)

    def after_fork(self) -> None:
        if self.device.startswith("cuda"):
            self._runner = runners.ForkedRunner(self.device, self._runner.lower)
            self._single_runner = None

    def check_process(self) -> None:
        """Raise RuntimeError in a forked child if the device is a GPU."""
        if isinstance(self._runner, runners.ForkedRunner):
            self._runner.take(None)

    def __getstate__(self) -> dict[str, Any]:
        check_copied("transform", self.transform, "accepted: functions and classes that a module declares")
        return self._portable()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _portable(self) -> dict[str, Any]:
        own = ("_runner", "_single_runner", "_planner", "device")
        state = {name: value for name, value in self.__dict__.items() if name not in own}
        return {**state, "_count": copy(self._count)}

    def __repr__(self) -> str:
        """The call that makes it, on the device that was found."""
        values = {**vars(self), "dtype": str(self.dtype).removeprefix("torch.")}
        _, _, *options = inspect.signature(Augmenter).parameters.values()
        others = "".join(f", {p.name}={values[p.name]!r}" for p in options if values[p.name] != p.default)
        return f"{type(self).__name__}({self.transform!r}, device={self.device!r}{others})"

    @overload
    def __call__(
        self,
        images: Mapping[str, Any],
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
        *,
        partners: Any = None,
        targets: Targets | None = None,
    ) -> dict[str, Any]: ...
    @overload
    def __call__(
        self,
        images: Sequence[Mapping[str, Any]],
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
        *,
        partners: Any = None,
        targets: Targets | None = None,
    ) -> list[dict[str, Any]]: ...
    # Lists of tensors, and tuples of views, are used as a tensor is: they have a length, places and members.
    @overload
    def __call__(
        self,
        images: Any,
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
        *,
        partners: Any = None,
        labels: None = None,
    ) -> torch.Tensor: ...
    @overload
    def __call__(
        self,
        images: Any,
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
        *,
        partners: Any = None,
        labels: Any,
    ) -> tuple[torch.Tensor, Any]: ...
    def __call__(
        self,
        images: Any,
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
        *,
        partners: Any = None,
        labels: Any = None,
        targets: Targets | None = None,
    ) -> Any:
        """Augment a batch.

        Args:
            images: one of the following.

                - A list of images of any sizes: arrays [H, W, 3], [H, W, 1] or [H, W]; tensors of these
                  shapes or [C, H, W]; PIL images of any mode (gray ones keep one channel). Images of 2 to 32 channels,
                  the same number in all, are arrays and tensors as well. Also the bytes of image files, which are
                  decoded as by ``decode_and_run``. All have one dtype: uint8, uint16 or float32 (docs/deep.md).
                - One array [N, H, W, C], one tensor [N, H, W, C] or [N, C, H, W], or a ``RaggedBatch``.
                - With ``consistent``, clips: an array [N, T, H, W, C], or a tensor of that shape or [N, T, C, H, W].
                  Clips of various sizes and lengths are a list of [T, H, W, C] or of lists of frames.
                - A dict, or a list of dicts, with "image" and its targets: "mask", "masks", "boxes", "keypoints",
                  "labels", "label" (docs/targets.md). With ``consistent``, dicts of clips, with targets per frame.

                Arrays have channels last; so do tensors whose shape is ambiguous, as [3, H, 3]. A CUDA device takes
                tensors in its own memory without a copy, and arrays of other libraries (CuPy, JAX) that support DLPack.
            ids: one integer per image; None takes a running count. The id, not the position in the batch, determines
                how an image is augmented.
            epoch: further input of the random numbers, and of schedules.
            copy: distinguishes several augmentations of one sample: one integer for the batch, or one per image.
            conditions: values per sample for ``Cond``, such as ``{"label": labels}``.
            partners: images that a mixing transform (``MixUp``) mixes with: "batch" for the image before each one, as
                in torchvision; or, for each output, the position in the batch of its partner (three for ``Mosaic``).
                The outputs are then the first images, as many as there are entries.
            labels: one per image, mixed as the images are; also available as ``conditions["label"]``.
            targets: how to read and filter dicts; None for ``vg.Targets()``.

        Returns:
            A tensor [N, C, H, W] or [N, H, W, C], or a list of tensors [C, H, W] or [H, W, C] if shapes differ.
            ``T.MultiView`` returns a tuple with one such batch per group of views: [N, views, C, H, W]. Clips have an
            axis for frames before the image's axes: [N, T, C, H, W].

            With ``labels``: a pair of that and the labels. Mixed labels are float32 [N, num_classes], or
            ``MixedLabels`` if the transform has no ``num_classes``; labels that are not mixed are a tensor.

            For a list of dicts: a list of dicts with the same keys. For one dict: one dict. CUDA outputs stay on the
            device and are queued on the current stream, as for any torch operation.

        Raises:
            TypeError, ValueError: naming the image and accepted values.
            DeviceMemoryError: if the batch does not fit into the device's memory.
        """
        is_list = type(images) is list or type(images) is tuple
        call = Request(ids, epoch, copy, conditions, partners)
        if targets is not None or isinstance(images[0] if is_list and images else images, Mapping):
            if labels is not None:
                raise ValueError(f"labels: got {short_repr(labels)} with dicts; accepted: the key 'label' of each")
            return augment_samples(self, images, targets, call)
        if is_list and bytes in map(type, images):
            files = EncodedBatch(images, NAMES.format)
            return self.decode_and_run(files, ids, epoch, copy, conditions, partners=partners, labels=labels)
        if type(images) is list and len(images) == 1 and labels is None and (single := self._single_runner):
            images = [check_image(images[0], 0)]
            if images[0].shape[2] in (1, 3):
                one = self._run_single(single, images[0], call)
                return one[None] if isinstance(one, torch.Tensor) else [one]
        check_running("Augmenter")
        images, frames = self._frames(images)
        batch = self._runner.take(images)
        call = call._replace(conditions=with_labels(conditions, labels), depth=batch.depth)
        program = self._planner.lowered(batch.shapes, call, frames, self._runner.rewriting)
        outputs = with_wanted_channels(self._runner.run(program, batch), program.output)
        return outputs if labels is None else (outputs, labels_of(program, labels, self.transform))

    def of_one(
        self,
        pixels: ImageArray,
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
    ) -> Any:
        """Augment one image (or clip) without a batch axis.

        ``pixels`` is a contiguous array [H, W, C] of uint8, uint16 or float32; for the other arguments see
        ``__call__``. Returns a tensor, or a tuple of tensors for several views.
        """
        if (single := self._single_runner) and pixels.shape[2] in (1, 3):
            return self._run_single(single, pixels, Request(ids, epoch, copy, conditions))
        made: Any = self([pixels], ids, epoch, copy, conditions)
        return tuple(group[0] for group in made) if isinstance(made, tuple) else made[0]

    def _run_single(self, runner: CpuRunner, pixels: ImageArray, call: Request) -> Any:
        depth = depth_of_batch(pixels)
        call = call._replace(depth=depth) if depth.is_deep else call
        if isinstance(self.transform, Pipeline):
            drawn = self._planner.pipeline_of_one(self.transform, pixels.shape, call)
            if not isinstance(drawn, Program):
                return with_wanted_channels(runner.run_one(drawn, pixels), drawn.output, is_batch=False)
            return self._run_as_batch(runner, drawn, pixels)
        record, sample_id, key = self._planner.draw_of_one(call)
        if not runner.fits_one(record):
            shapes, call = np.array([pixels.shape], np.int32), call._replace(ids=[sample_id])
            program = self._planner.lowered(shapes, call, None, runner.rewriting)
            return self._run_as_batch(runner, program, pixels)
        return with_wanted_channels(runner.draw_one(record, pixels, sample_id, key), record.output, is_batch=False)

    @staticmethod
    def _run_as_batch(runner: CpuRunner, program: Program, pixels: ImageArray) -> Any:
        return with_wanted_channels(runner.run(program, runner.take([pixels])), program.output)[0]

    def _frames(self, images: Any) -> tuple[Any, list[int] | None]:
        """Split clips into frames -> frames, and frames per clip; None for images."""
        return frames_of(images) if self.consistent else (images, None)

    def _scaled(self, batch: EncodedBatch) -> EncodedBatch:
        batch.scales = SCALES if self.fast_decode else ()
        return batch

    def run(self, program: Program, images: Any) -> Tensors:
        """Execute a ``program`` of ``self.program`` on its ``images``, given as for a call.

        Raises ValueError naming the row, if an image's size is not the one that the program was sampled for.
        """
        batch = self._runner.take(self._frames(images)[0])
        batch = widened(batch, program)
        check_fits(program, batch.shapes, batch.depth)
        return with_wanted_channels(self._runner.run(program, batch), program.output)

    def decode_and_run(
        self,
        files: Sequence[bytes] | EncodedBatch,
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
        *,
        partners: Any = None,
        labels: Any = None,
        index: EntropyIndex | None = None,
    ) -> Any:
        """Augment encoded images (JPEG, PNG, ...), given as bytes.

        If the transform begins with ``RandomResizedCrop``, the crop is drawn from the JPEG's header, and rows below it
        are not decoded. The pixels equal a call with the decoded images.

        Args:
            files: bytes of each image file.
            index: entry points of known files: what surrounds the crop is not decoded either. Pixels do not change.

        For the other arguments see ``__call__``.

        With ``fast_decode``, an image is decoded at 1/2, 1/4 or 1/8 scale where the crop is still at least as large as
        the output. The pixels then differ from a full decode as two good reductions differ: by one or two values on
        average, by tens at sharp edges. They depend only on the file and the crop.

        With ``decode="gpu"``, the GPU decodes the box that the crop needs, at full scale, for upright JPEGs in gray or
        YCbCr. The CPU decodes the rest of the batch. Pixels depend only on the file and the crop, and differ from the
        CPU's by about a level.

        Raises:
            DecodeError: naming ``files[i]`` and the reason.
        """
        if self.consistent:
            raise ValueError(
                "decode_and_run: got files with consistent=True; accepted: clips that are decoded, in a call"
            )
        if not isinstance(index, (EntropyIndex, type(None))):
            raise TypeError(f"index: got {type(index).__name__}; accepted: a vg.EntropyIndex, or None")
        batch = self._scaled(files if isinstance(files, EncodedBatch) else EncodedBatch(files))
        batch.index = batch.index if index is None else index
        call = Request(ids, epoch, copy, with_labels(conditions, labels), partners, depth=batch.depth)
        program = self._planner.lowered(batch.shapes, call, None, self._runner.rewriting)
        outputs = with_wanted_channels(self._runner.decode_and_run(program, batch), program.output)
        return outputs if labels is None else (outputs, labels_of(program, labels, self.transform))

    def program(
        self,
        images_or_sizes: Any,
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
        *,
        partners: Any = None,
        boxes: Sequence[Any] | None = None,
    ) -> Program:
        """Sample the Program of a batch for inspection, without touching a pixel.

        Args:
            images_or_sizes: images as for a call, or (height, width) or (height, width, channels) per image. For a
                clip, the program applies to each frame.
            partners: as for a call; ``Program.mixture`` holds the mixed rows.
            boxes: per image, [M, 4] (left, top, right, bottom in pixels), for transforms that depend on boxes.

        For the other arguments see ``__call__``.
        """
        if looks_like_sizes(images_or_sizes):
            shapes, frames, depth = check_sizes(images_or_sizes), None, Depth.UINT8
        else:
            images, frames = self._frames(images_or_sizes)
            batch = self._runner.take(images)
            shapes, depth = batch.shapes, batch.depth
        known = None
        if boxes is not None:
            from variegate.targets.following import boxes_alone

            refuse_views(self.transform, "boxes")
            if self.consistent:
                accepted = "clips alone, or boxes of single images"
                raise ValueError(f"boxes: got some with consistent=True; accepted: {accepted}")
            known = boxes_alone(boxes, shapes)
        request = Request(ids, epoch, copy, conditions, partners, known, depth)
        return self._planner.program(shapes, request, frames)

    def explain(
        self,
        id: int,
        epoch: int = 0,
        copy: int = 0,
        size: tuple[int, ...] = (224, 224),
        conditions: Conditions = None,
        *,
        partners: Sequence[int] | None = None,
        boxes: Any = None,
    ) -> str:
        """Explain one sample: its operations with their arguments, and the fused passes that run them.

        Args:
            id, epoch, copy: of the sample.
            size: (height, width[, channels]) of the image. Boxes and some arguments depend on it.
            conditions: values of this sample, as ``{"label": 9}``.
            partners: ids of the samples that it is mixed with, as returned by ``Loader.partners``; assumed to have the
                same size.
            boxes: of the image, [M, 4] (left, top, right, bottom in pixels), for transforms that depend on boxes.
        """
        if not looks_like_sizes([size]):
            raise ValueError(f"size: got {size!r}; accepted: (height, width) or (height, width, channels)")
        needed = num_partners(self.transform)
        if partners is not None and len(partners) != needed:
            raise ValueError(f"partners: got {short_repr(partners)}; accepted: {needed} ids")
        ids = [id, *(() if partners is None else partners)]
        values = single_conditions(conditions, len(ids))
        places = None if partners is None else [range(1, len(ids))]
        known = None if boxes is None else [boxes] * len(ids)
        sampled = self.program([size] * len(ids), ids, epoch, copy, values, partners=places, boxes=known)
        operations = explain_row(sampled, self._runner.lower(sampled))
        return f"sample {id}, epoch {epoch}, copy {copy}, seed {self.seed}, {size[0]}x{size[1]}\n{operations}"

    def plan_one(
        self,
        shape: tuple[int, int, int],
        id: int,
        epoch: int = 0,
        copy: int = 0,
        conditions: Conditions = None,
        depth: Depth = Depth.UINT8,
    ) -> tuple[Program, Program]:
        """Plan one image of any size that is augmented in tiles -> (program as sampled, program as fused).

        ``shape`` is (height, width, channels), ``depth`` the image's dtype; for the other arguments see ``__call__``.

        Raises:
            ValueError: for a transform of several images or views, and for one with steps after the finished tensor.
        """
        sampled = self._planner.program_in_tiles(shape, Request([id], epoch, copy, conditions, depth=depth))
        return sampled, self._runner.lower(sampled)
