"""``Augmenter``: a transform bound to a device and a seed. Sample, lower, run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import torch

from variegate.augmenter.per_image import Conditions, Copies, Ids, with_labels
from variegate.augmenter.samples import SamplesAugmenter
from variegate.checks import renamed
from variegate.decode.entropy.index import EntropyIndex
from variegate.errors import shown
from variegate.executors.images import check_fits
from variegate.executors.runners.decode_plan import SCALES
from variegate.executors.runners.encoded_batch import EncodedBatch
from variegate.executors.runners.host import CpuRunner, widened
from variegate.executors.runners.images import Tensors, check_image, with_wanted_channels
from variegate.ops.base import refuse_views
from variegate.policies.views import MultiView
from variegate.program.one_image import OneImage
from variegate.program.program import Program

if TYPE_CHECKING:
    from variegate.executors.runners.cuda import CapturedAugmenter
    from variegate.targets.settings import Targets


class Augmenter(SamplesAugmenter):
    """Augments batches, every sample by its own random program.

    Args:
        transform: what may be done (``variegate.transforms``), or what ``vg.load_policy`` takes: a name, a file.
        device: "cuda" or "cuda:N" (a GPU; outputs stay there), "cpu" (compiled, all cores; also "cpu:0"), "auto" (a
            GPU if there is one, else the CPU) or "reference" (plain NumPy, slow, defines the meaning).
        seed: with the epoch, the sample's id and the copy it determines every random number.
        dtype: of a normalised output: "float32", "float16", "bfloat16" or the torch dtype. Without a
            ``Normalize`` in the transform the output is uint8.
        layout: "NCHW" or "NHWC".
        num_threads: None for all cores that the process may use. Results do not depend on it.
        geometry: "composed" runs consecutive interpolating maps as one, which blurs less and costs less;
            "exact" runs them one after another, as torchvision does. Three in a row differ by one or two levels on
            average (docs/operations.md has the figures); a single map and nearest ones do not differ.
        decode: who decodes the JPEGs of ``decode_and_run``: "cpu", "gpu" (nvImageCodec, ``pip install
            'variegate[gpu]'``) or "auto": the GPU where the device is one and nvImageCodec is installed.
        fast_decode: let the CPU decode a JPEG at half (a quarter, an eighth) of its size where the crop is still at
            least as large as the output. That is faster with large pictures, and other pixels: see ``decode_and_run``.
        consistent: True for clips and other stacks of frames of one size, [T, H, W, C]: one program, drawn once, for
            all frames of a clip. Its noise is the same in each of them; what looks at the image (equalize, contrast)
            looks at each frame. False for images.

    A copy by pickling is made of the arguments, in whatever process; its running count of ids goes on from here. In a
    forked child an Augmenter of the parent works on, unless its device is a GPU.

    Raises ValueError for a device, dtype, layout, geometry or decode that is not accepted, or that is not there.
    """

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
        targets: Targets | None = None,
    ) -> Any:
        """Augment a batch.

        Args:
            images: a list of images, whose sizes may differ: uint8 arrays [H, W, 3], [H, W, 1] or [H, W], uint8 tensors
                of these shapes or [C, H, W], PIL images of any mode (gray ones keep one channel). Or one uint8 array
                [N, H, W, C], one tensor [N, H, W, C] or [N, C, H, W], or a ``RaggedBatch``. The channels of an array
                always come last; those of a tensor do where both could be, as in [3, H, 3]. A CUDA device takes
                tensors of its own memory without a copy, and arrays of other libraries (CuPy, JAX) that offer DLPack.
                With ``consistent`` clips: one array [N, T, H, W, C], a tensor of that or [N, T, C, H, W], or a list of
                [T, H, W, C], whose sizes and lengths may differ, or of lists of frames.
                Or a list of dicts, of "image" and what belongs to it: "mask", "masks", "boxes", "keypoints", "labels",
                "label" (docs/targets.md); or one such dict.
            ids: one integer per image; None takes a running count. The id, not the place in the batch, decides what
                happens to an image.
            epoch, copy: further inputs of the random numbers. ``copy`` tells several augmentations of one sample apart:
                one integer for the batch, or one per image.
            conditions: per-sample values for ``Cond``, such as ``{"label": labels}``.
            partners: whom a transform that mixes images (``MixUp``) mixes them with: "batch" for the image before each
                one, as torchvision does; or the place in the batch of one (of three, for ``Mosaic``) for each output.
                Of N images then the first ones are outputs, as many as there are partners.
            labels: one for each image, to be mixed as the images are; also given as ``conditions["label"]``.
            targets: of dicts, how they are to be read and what is kept; None for ``vg.Targets()``.

        Returns:
            One tensor [N, C, H, W] or [N, H, W, C]; a list of tensors [C, H, W] or [H, W, C] if shapes differ. Of a
            ``T.MultiView`` a tuple with one such for each group of views: [N, views, C, H, W], see there. Frames have
            an axis before those of the image: [N, T, C, H, W].
            With ``labels`` a pair of that and the labels: float32 [N, num_classes], or ``MixedLabels`` where the
            transform says no ``num_classes``; as a tensor where the transform mixes nothing.
            Of dicts a list of dicts with the same keys, of one dict one.
            On a CUDA device they are queued on the current stream, as by any torch operation, and stay there.

        Raises TypeError or ValueError naming the image and what is accepted, DeviceMemoryError where the device has no
        room for the batch.
        """
        is_list = type(images) is list or type(images) is tuple
        if targets is not None or isinstance(images[0] if is_list and images else images, Mapping):
            if labels is not None:
                raise ValueError(f"labels: got {shown(labels)} beside dicts; accepted: the key 'label' of each")
            return self._of_samples(images, targets, ids, epoch, copy, conditions, partners)
        if type(images) is list and len(images) == 1 and labels is None and self._takes_one:
            one = self.of_one(check_image(images[0], 0), ids, epoch, copy, conditions)
            return one[None] if isinstance(one, torch.Tensor) else [one]
        images, frames = self._frames(images)
        batch = self._runner.take(images)
        program = self._sample(batch.shapes, ids, epoch, copy, with_labels(conditions, labels), frames, partners)
        outputs = with_wanted_channels(self._runner.run(program, batch), program.output)
        return outputs if labels is None else (outputs, self._labels(program, labels))

    def of_one(
        self,
        pixels: npt.NDArray[np.uint8],
        ids: Ids = None,
        epoch: int = 0,
        copy: Copies = 0,
        conditions: Conditions = None,
    ) -> Any:
        """What a call gives of this image alone, contiguous uint8[H, W, C] (or this clip), without the axis of the
        batch: a tensor, or of several views a tuple of them."""
        if self.consistent or not isinstance(self._runner, CpuRunner):
            made: Any = self([pixels], ids, epoch, copy, conditions)
            return tuple(group[0] for group in made) if isinstance(made, tuple) else made[0]
        image = self._one_image(pixels.shape, ids, epoch, copy, conditions)
        if isinstance(self.transform, MultiView):
            return self._make_views(self._runner, self.transform, image, pixels)
        self.transform.draw(image, 0)
        output = self._laid_out(image.sampling.output)
        return with_wanted_channels(self._runner.run_one(image, pixels, output), output, is_batch=False)

    def _make_views(
        self, runner: CpuRunner, transform: MultiView, image: OneImage, pixels: npt.NDArray[np.uint8]
    ) -> tuple[Any, ...]:
        groups = transform.sample_views(image)
        output = self._laid_out(groups[0][0].output)
        made = (with_wanted_channels(runner.run_views(group, pixels, output), output) for group in groups)
        return tuple(group[0] if transform.counts is None else group for group in made)

    def run(self, program: Program, images: Any) -> Tensors:
        """Execute a program of ``self.program`` on its images, which are given as for a call. Raises ValueError naming
        the row for images of other sizes than the program was sampled for.
        """
        batch = widened(self._runner.take(self._frames(images)[0]), program)
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
        from variegate.executors.runners.cuda import CapturedAugmenter, CudaRunner

        refuse_views(self.transform, "capture")
        if self.consistent:
            raise ValueError("capture: this Augmenter has consistent=True; accepted: one for images")
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
        index: EntropyIndex | None = None,
    ) -> Any:
        """Augment encoded images (JPEG, PNG, ...), given as bytes; otherwise as a call.

        Where the transform begins with a crop that is resized (``RandomResizedCrop``), the crop is drawn from the
        JPEG's header and no rows below it are decoded. The pixels are those of a call with the decoded pictures.
        ``index``: of files whose entry points it knows, what surrounds the crop is not decoded either; same pixels.

        With ``fast_decode`` a picture is decoded at half (a quarter, an eighth) scale where the crop is still at least
        as large as the output. Its pixels differ from those of a full decode as two good reductions do, by a level or
        two on average and by tens at sharp edges, and depend on nothing but the file and the crop.

        A GPU that decodes (``decode``) decodes the box that the crop needs, always at full scale. Its pixels depend on
        nothing but the file and the crop either; they are not the CPU's to the bit, but a level or so beside them. It
        decodes upright JPEGs of gray or YCbCr; the CPU decodes everything else, in the same batch.

        Raises DecodeError naming ``files[i]`` and the reason.
        """
        if self.consistent:
            raise ValueError(
                "decode_and_run: got files with consistent=True; accepted: clips that are decoded, in a call"
            )
        if not isinstance(index, (EntropyIndex, type(None))):
            raise TypeError(f"index: got {type(index).__name__}; accepted: a vg.EntropyIndex, or None")
        batch = files if isinstance(files, EncodedBatch) else EncodedBatch(files)
        batch.scales = SCALES if self.fast_decode else ()
        batch.index = batch.index if index is None else index
        program = self._sample(batch.shapes, ids, epoch, copy, with_labels(conditions, labels), partners=partners)
        outputs = with_wanted_channels(self._runner.decode_and_run(program, batch), program.output)
        return outputs if labels is None else (outputs, self._labels(program, labels))
