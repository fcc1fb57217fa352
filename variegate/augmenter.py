"""``Augmenter``: a transform bound to a device and a seed. Sample, lower, run."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import numpy.typing as npt
import torch

from variegate.backends.encoded_batch import EncodedBatch
from variegate.backends.host import CpuRunner
from variegate.backends.images import check_image, check_sizes, looks_like_sizes, with_wanted_channels
from variegate.backends.runner import Decode, Dtype, ForkedRunner, Geometry, Layout, make_runner
from variegate.checks import integer, one_of, renamed
from variegate.errors import shown
from variegate.executors.images import check_fits
from variegate.mixed_labels import check_partners, mix_labels, num_partners
from variegate.per_image import (
    Conditions,
    Copies,
    Ids,
    RunningCount,
    check_conditions,
    check_copies,
    check_id,
    check_ids,
    with_labels,
)
from variegate.pickling import CopiedByState, check_copied
from variegate.program import rng
from variegate.program.describe import explain_row
from variegate.program.one_image import OneImage
from variegate.program.program import Output, Program
from variegate.program.sampling import Sampling
from variegate.threads import at_fork, check_running
from variegate.transforms.arguments import MAX_SLOTS
from variegate.transforms.base import Transform

if TYPE_CHECKING:
    from variegate.backends.cuda import CapturedAugmenter


class Augmenter(CopiedByState):
    """Augments batches, every sample by its own random program.

    Args:
        transform: what may be done (``variegate.transforms``, ``vg.load_policy``).
        device: "cuda" or "cuda:N" (a GPU; outputs stay there), "cpu" (compiled, all cores; also "cpu:0"), "auto" (a
            GPU if there is one, else the CPU) or "reference" (plain NumPy, slow, defines the meaning).
        seed: with the epoch, the sample's id and the copy it determines every random number.
        dtype: of a normalised output: "float32", "float16", "bfloat16" or the torch dtype. Without a
            ``Normalize`` in the transform the output is uint8.
        layout: "NCHW" or "NHWC".
        num_threads: None for all cores that the process may use. Results do not depend on it.
        geometry: "composed" runs consecutive interpolating maps as one, which blurs less and costs less;
            "exact" runs them one after another, as torchvision does.
        decode: who decodes the JPEGs of ``decode_and_run``: "cpu", "gpu" (nvImageCodec, ``pip install
            'variegate[gpu]'``) or "auto": the GPU where the device is one and nvImageCodec is installed.

    A copy by pickling is made of the arguments, in whatever process; its running count of ids goes on from here. In a
    forked child an Augmenter of the parent works on, unless its device is a GPU.

    Raises ValueError for a device, dtype, layout, geometry or decode that is not accepted, or that is not there.
    """

    def __init__(
        self,
        transform: Transform,
        device: str = "cpu",
        seed: int = 0,
        dtype: Dtype | torch.dtype = "float32",
        layout: Layout = "NCHW",
        num_threads: int | None = None,
        geometry: Geometry = "composed",
        *,
        decode: Decode = "auto",
    ) -> None:
        if not isinstance(transform, Transform):
            raise TypeError(
                f"transform: got {shown(transform)}; accepted: a variegate transform, such as T.Compose([...])"
            )
        if transform.num_slots > MAX_SLOTS:
            got = f"one that draws {transform.num_slots:,} blocks of random numbers for an image"
            raise ValueError(f"transform: got {got}; accepted: at most {MAX_SLOTS:,}")
        cores = "a positive integer, or None for all cores"
        self.transform = transform
        self.seed = integer("seed", seed, 0, 2**64 - 1)
        self.dtype: torch.dtype = getattr(torch, one_of("dtype", str(dtype).removeprefix("torch."), get_args(Dtype)))
        self.layout = one_of("layout", layout, get_args(Layout))
        self.num_threads = None if num_threads is None else integer("num_threads", num_threads, 1, accepted=cores)
        self.geometry = one_of("geometry", geometry, get_args(Geometry))
        self.decode = decode
        self._output = Output(dtype=str(self.dtype).removeprefix("torch."), layout=self.layout)
        self._wanted_device = device
        self._count = RunningCount()
        self._start()

    def _start(self) -> None:
        """What belongs to this process alone."""
        settings = self.dtype, self.num_threads, self.geometry, self.decode
        self.device, self._runner = make_runner(self._wanted_device, *settings)
        at_fork(self)

    def after_fork(self) -> None:
        if self.device.startswith("cuda"):
            self._runner = ForkedRunner(self.device, self._runner.lower)

    def check_process(self) -> None:
        """Raises RuntimeError in a forked child where the device is a GPU."""
        if isinstance(self._runner, ForkedRunner):
            self._runner.take(None)

    def __getstate__(self) -> dict[str, Any]:
        check_copied("transform", self.transform, "accepted: functions and classes that a module declares")
        return self._portable()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _portable(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_runner", "device")}
        return {**kept, "_count": copy(self._count)}

    def __repr__(self) -> str:
        """The call that makes it, on the device that was found."""
        values = {**vars(self), "dtype": str(self.dtype).removeprefix("torch.")}
        _, _, *options = inspect.signature(Augmenter).parameters.values()
        told = "".join(f", {p.name}={values[p.name]!r}" for p in options if values[p.name] != p.default)
        return f"Augmenter({self.transform!r}, device={self.device!r}{told})"

    @renamed(given="conditions")
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
    ) -> Any:
        """Augment a batch.

        Args:
            images: a list of images, whose sizes may differ: uint8 arrays [H, W, 3], [H, W, 1] or [H, W], uint8 tensors
                of these shapes or [C, H, W], PIL images of any mode (gray ones keep one channel). Or one uint8 array
                [N, H, W, C], one tensor [N, H, W, C] or [N, C, H, W], or a ``RaggedBatch``. The channels of an array
                always come last; those of a tensor do where both could be, as in [3, H, 3]. A CUDA device takes
                tensors of its own memory without a copy, and arrays of other libraries (CuPy, JAX) that offer DLPack.
            ids: one integer per image; None takes a running count. The id, not the place in the batch, decides what
                happens to an image.
            epoch, copy: further inputs of the random numbers. ``copy`` tells several augmentations of one sample apart:
                one integer for the batch, or one per image.
            conditions: per-sample values for ``Cond``, such as ``{"label": labels}``.
            partners: whom a transform that mixes images (``MixUp``) mixes them with: "batch" for the image before each
                one, as torchvision does; or the place in the batch of one (of three, for ``Mosaic``) for each output.
                Of N images then the first ones are outputs, as many as there are partners.
            labels: one for each image, to be mixed as the images are; also given as ``conditions["label"]``.

        Returns:
            One tensor [N, C, H, W] or [N, H, W, C]; a list of tensors [C, H, W] or [H, W, C] if shapes differ.
            With ``labels`` a pair of that and the labels: float32 [N, num_classes], or ``MixedLabels`` where the
            transform says no ``num_classes``; as a tensor where the transform mixes nothing.
            On a CUDA device they are queued on the current stream, as by any torch operation, and stay there.

        Raises TypeError or ValueError naming the image and what is accepted, DeviceMemoryError where the device has no
        room for the batch.
        """
        is_one = type(images) is list and len(images) == 1 and isinstance(self._runner, CpuRunner)
        if is_one and labels is None and not self.transform._mixers:
            return self.of_one(check_image(images[0], 0), ids, epoch, copy, conditions)[None]
        batch = self._runner.take(images)
        program = self._sample(batch.shapes, ids, epoch, copy, with_labels(conditions, labels), partners)
        outputs = with_wanted_channels(self._runner.run(program, batch), program.output)
        return outputs if labels is None else (outputs, self._labels(program, labels))

    def of_one(
        self,
        pixels: npt.NDArray[np.uint8],
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
    ) -> torch.Tensor:
        """The one output of a call with this image alone, contiguous uint8[H, W, C]; arguments otherwise as there."""
        if not isinstance(self._runner, CpuRunner):
            return self([pixels], ids, epoch, copy, conditions)[0]
        check_running("Augmenter")
        values = None if conditions is None else check_conditions(conditions, 1)
        is_plain = type(epoch) is int and type(copy) is int and 0 <= epoch < 1 << 64 and 0 <= copy < 1 << 32
        if not is_plain:
            epoch, copy = integer("epoch", epoch, 0, 2**64 - 1), int(check_copies(copy, 1)[0])
        key = rng.stream_of(self.seed, epoch, copy)  # type: ignore[arg-type]
        sample_id = int(self._count.take(1)[0]) if ids is None else check_id(ids)
        image = OneImage(pixels.shape, sample_id, key, self.transform.num_slots, epoch, values)
        image.output = self._output
        self.transform.sample_one(image, 0)
        output = image.output
        if output.layout != self.layout:
            output = replace(output, layout=self.layout)
        return with_wanted_channels(self._runner.run_one(image, pixels, output), output)  # type: ignore[return-value]

    def run(self, program: Program, images: Any) -> torch.Tensor | list[torch.Tensor]:
        """Execute a program of ``self.program`` on its images, which are given as for a call. Raises ValueError naming
        the row for images of other sizes than the program was sampled for.
        """
        batch = self._runner.take(images)
        check_fits(program, batch.shapes)
        return with_wanted_channels(self._runner.run(program, batch), program.output)

    @renamed(given="conditions")
    def capture(self, images: Any, conditions: Conditions = None) -> CapturedAugmenter:
        """Capture the augmentation of one batch as a CUDA graph, for batches so small that launching them shows.

        ``images``: a CUDA tensor or ``RaggedBatch`` on the Augmenter's device, which every call of the result reads
        anew; ``conditions`` as for a call, the same for every call.

        Raises ValueError on other devices, for images elsewhere, and where the outputs differ in shape.
        """
        if not self.device.startswith("cuda"):
            raise ValueError(f"capture: this Augmenter runs on {self.device!r}; accepted: one on a CUDA device")
        from variegate.backends.cuda import CapturedAugmenter, CudaRunner

        self.check_process()
        assert isinstance(self._runner, CudaRunner)
        return CapturedAugmenter(self._runner, images, partial(self._sample, conditions=conditions))

    @renamed(given="conditions")
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
    ) -> Any:
        """Augment encoded images (JPEG, PNG, ...), given as bytes; otherwise as a call.

        Where the transform begins with a crop that is resized (``RandomResizedCrop``), the crop is drawn from the
        JPEG's header and only what it needs is decoded: no rows below it, and a picture at half (quarter, eighth)
        scale where the crop is still at least as large as the output. The former changes no bit; the latter differs
        from a full decode as any two good reductions do, and depends on nothing but the file and the crop.

        A GPU that decodes (``decode``) decodes the box that the crop needs, always at full scale. Its pixels depend on
        nothing but the file and the crop either; they are not the CPU's to the bit, but a level or so beside them, and
        as two reductions differ where the CPU decodes at a scale. It decodes upright JPEGs of gray or YCbCr; the CPU
        decodes everything else, in the same batch.

        Raises DecodeError naming ``files[i]`` and the reason.
        """
        batch = files if isinstance(files, EncodedBatch) else EncodedBatch(files)
        program = self._sample(batch.shapes, ids, epoch, copy, with_labels(conditions, labels), partners)
        outputs = with_wanted_channels(self._runner.decode_and_run(program, batch), program.output)
        return outputs if labels is None else (outputs, self._labels(program, labels))

    @renamed(given="conditions")
    def program(
        self,
        images_or_sizes: Any,
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
        *,
        partners: Any = None,
    ) -> Program:
        """The sampled Program of a batch, for those who want to look, without touching a pixel.

        ``images_or_sizes``: images as for a call, or (height, width) or (height, width, channels) per image.
        ``partners`` as for a call; what they mix is in ``Program.mixture``.
        """
        are_sizes = looks_like_sizes(images_or_sizes)
        shapes = check_sizes(images_or_sizes) if are_sizes else self._runner.shapes(images_or_sizes)
        return self._sample(shapes, ids, epoch, copy, conditions, partners)

    @renamed(given="conditions")
    def explain(
        self,
        id: int,
        epoch: int = 0,
        copy: int = 0,
        size: tuple[int, ...] = (224, 224),
        conditions: Conditions = None,
        *,
        partners: Sequence[int] | None = None,
    ) -> str:
        """What happens to one sample: its operations with their arguments, and the fused passes they run in.

        ``size``: (height, width[, channels]) of the image; some arguments and all boxes depend on it. ``partners``: the
        ids of those that the sample is mixed with, as ``Loader.partners`` tells them; taken to be of the same size.
        """
        if not looks_like_sizes([size]):
            raise ValueError(f"size: got {size!r}; accepted: (height, width) or (height, width, channels)")
        ids = [id, *(() if partners is None else partners)]
        values = {name: [*value] * len(ids) for name, value in (conditions or {}).items()}  # type: ignore[misc]
        places = None if partners is None else [range(1, len(ids))]
        sampled = self.program([size] * len(ids), ids=ids, epoch=epoch, copy=copy, conditions=values, partners=places)
        operations = explain_row(sampled, self._runner.lower(sampled))
        return f"sample {id}, epoch {epoch}, copy {copy}, seed {self.seed}, {size[0]}x{size[1]}\n{operations}"

    def _labels(self, program: Program, labels: Any) -> Any:
        mixers = self.transform._mixers
        if program.mixture is None or not mixers:
            return labels if isinstance(labels, torch.Tensor) else torch.as_tensor(np.asarray(labels))
        return mix_labels(labels, program.mixture, mixers[0].num_classes)

    def _sample(
        self,
        shapes: npt.NDArray[np.int32],
        ids: Any,
        epoch: int,
        copy: Copies = 0,
        conditions: Conditions = None,
        partners: Any = None,
    ) -> Program:
        check_running("Augmenter")
        values = check_conditions(conditions, len(shapes))
        keys = rng.stream_keys(self.seed, integer("epoch", epoch, 0, 2**64 - 1), check_copies(copy, len(shapes)))
        # Last of all checks, so that a call that is refused takes no place of the running count.
        identities = self._count.take(len(shapes)) if ids is None else check_ids(ids, len(shapes))
        sampling = Sampling(shapes, identities, keys, self.transform.num_slots, int(epoch), values)
        sampling.output = self._output
        if partners is not None and self.transform._mixers:
            sampling.partners = check_partners(partners, len(shapes), num_partners(self.transform))
        self.transform.sample(sampling, np.arange(len(shapes)), 0)
        return sampling.finish(replace(sampling.output, layout=self.layout))
