"""``Loader``: batches of augmented images from a source, made ahead of their use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from variegate.augmenter.pickling import CopiedByState, check_copied
from variegate.checks import integer
from variegate.data.sharded import AnySource
from variegate.errors import short_repr
from variegate.loader.batch import Failure
from variegate.loader.epochs import BatchIterator, Epochs
from variegate.loader.options import LoaderArguments, with_fields_of
from variegate.loader.pipeline import Pipeline
from variegate.loader.stats import LoaderStats, StageTimes
from variegate.removed import RemovedMethods
from variegate.threads import at_fork, check_running

if TYPE_CHECKING:
    from variegate.loader.mixture import Mixture
    from variegate.loader.targets import AnyBatch


class Loader(CopiedByState, RemovedMethods):
    """Load, decode and augment a data set, and iterate over its batches: ``for images, labels in loader``.

    Args:
        source: a folder, WebDataset shards, Parquet files, arrays with labels, a torch Dataset, a ``vg.Mixture``, or
            anything else that ``vg.open_source`` accepts or returns.
        transform: a transform, or the name or file of a policy (see ``vg.load_policy``); None for no augmentation.
        batch_size: samples per batch and rank.
        device, seed, dtype, layout, geometry: as for ``Augmenter``.
        shuffle: True shuffles every epoch, by (seed, epoch) only; False keeps the order of the source or of a list of
            indices. None means True, except for a ``sampler`` that defines the order itself.
        drop_last: drop the samples that do not fill a batch on every rank.
        num_threads: threads that decode and augment; None shares this machine's cores among the processes that
            ``torchrun`` started on it. Does not change pixels.
        rank, world_size: the part of each step's samples to load. None takes torch.distributed's rank, else the
            environment's, else loads everything. All ranks yield the same number of batches. Together they yield every
            sample once, plus rows marked in ``Batch.padding``.
        on_error: for an image that cannot be read: "raise" a DecodeError, "skip" it (its batch is one shorter), or
            "replace" it by another sample drawn for its id and marked as padding. ``errors`` lists these images.
        cache: keep decoded pixels for later epochs: "host", "device" (GPU memory), or a folder, which later runs use as
            well. Images are then decoded completely.
        prefetch: batches to prepare ahead, at the end of an epoch from the next one; 0 prepares each on request.
        max_errors: with "skip" or "replace", the failures that this rank tolerates: a number, or a float share of its
            samples of an epoch. One more raises TooManyErrors.
        decode: decoder of JPEGs: "cpu", "gpu" (nvImageCodec, ``pip install 'variegate[gpu]'``), or "auto" (the GPU if
            ``device`` is a GPU and nvImageCodec is installed). Pixels of both differ by about a level; each depends
            only on the file and the crop. Images for a cache are decoded by the CPU.
        fast_decode: let the CPU decode a JPEG at 1/2, 1/4 or 1/8 scale where the crop is still at least as large as the
            output. Faster for large images; pixels differ by a level or two on average.
        cache_bytes: limit of this process's cache; None for half of the free memory, divided among the processes that
            ``torchrun`` started on this machine. Samples beyond it are decoded every time.
        cache_side: reduce cached images so that their shorter side has this many pixels.
        max_pixels: refuse larger images before decoding; None for ``MAX_PIXELS`` (179 million).
        channels: channels that every image must have, 1 to 32; 4 reads alpha, 255 for files without. Needed for data
            sets whose pixels have more than three. None: red, green and blue, and what NumPy files and packs have.
        depth: dtype in which images are read: "uint8", "uint16" or "float32" (docs/deep.md). None: that of arrays in
            memory; files in 8 bits, with a note where they have more.
        dicom: ``vg.Dicom(...)``: the window and frame of DICOM files (docs/deep.md).
        sampler: the samples of an epoch. A sequence of indices (a subset, or with repeats) is shuffled by ``shuffle``.
            A torch ``Sampler``, or another object with ``__iter__`` and ``__len__``, is iterated in its order when an
            epoch begins; its ``set_epoch(epoch)``, if any, is called before. A function maps epoch -> indices.
        weights: relative probability of each sample: one number per sample; one per class, or a mapping {class name or
            label: number}, for the samples of that class; or "balanced", every class equally likely.
        num_samples: with ``weights``, the draws per epoch; None for the number of samples.
        copies: repeated augmentation (Hoffer et al. 2020, arXiv:1901.09335): the times that each sample appears in an
            epoch, in succession and augmented differently (``Batch.copies``). A batch decodes it once. ``batch_size``
            counts copies, and epochs are as many times longer. Ranks share the copies of a sample.
        block_shards: for shards that are opened in epochs (``open_source(..., stream=True)``, the default for remote
            ones), the number that is fetched, shuffled and mixed together, 1 to 32.
        partners: samples that a mixing transform (``T.MixUp``) mixes with: "epoch" for any others of the epoch, by
            (seed, epoch, id) only, in blocks of shards for any others of the block; "batch" for the preceding ones of
            the batch. A sample whose partner cannot be read is mixed with itself.
        index: entropy index of JPEGs, with which a crop decodes little more than itself, to the same pixels: "auto" for
            the one written by ``variegate pack``, or by ``variegate index`` into the user's cache folder; or a path.
            Unknown files are indexed in the background and added. Files are recognized by their content.
        views: views of each image by ``transform``, as a tuple of one tensor [N, views, C, H, W]: short for
            ``T.MultiView([transform], counts=[views])``.
        conditions: values per sample for ``T.Cond`` and ``T.AdaptiveRandAugment``, in addition to the label: a function
            epoch -> (a function of ids, uint64 [N] -> {name: N values}). The outer function runs in the iterating
            thread when an epoch begins or resumes, before any of its batches is prepared. The inner one runs in worker
            threads and must not change its answers during the epoch.
        annotations: boxes, masks or key points of a folder of images, as for ``vg.open_source``.
        targets: ``vg.Targets(...)`` for batches that are dicts (``TargetBatch``) with boxes, masks and key points. None
            means ``vg.Targets()`` for an annotated source (COCO, VOC, YOLO, folders of masks), and no targets for
            others; False gives ``images, labels`` for any.
        workers: makers of batches: "thread", "process", "ray", ``vg.ProcessWorkers(...)`` or ``vg.RayWorkers(...)``.
            All make the same batches. Processes and actors that end are replaced, and their work is done again. They
            open ``source`` themselves; ``sampler``, ``weights`` and ``conditions`` are asked in this process.
        devices: devices of the workers, as for ``vg.Engine``, instead of ``device``; batches arrive on the host. Each
            makes whole batches, and ``num_threads`` is that of each.

        buckets: ``vg.AspectBuckets(...)`` for batches of one image size each, by aspect ratio. A rank's batch is of one
            bucket. Sizes of all images must be known (see there). States need the same ``batch_size``.
        batch_sampler: batches of your own, of any sizes: lists of indices, a torch ``BatchSampler`` or another object
            with ``__iter__`` and ``__len__``, iterated over when an epoch begins; or a function epoch -> lists of
            indices. The same on every rank; each rank takes every ``world_size``-th. Instead of ``batch_size``,
            ``shuffle``, ``sampler``, ``weights`` and ``copies``. ``drop_last`` drops batches that not every rank has.

    A pickled copy resumes where this loader is: its next iteration is the one that this loader would begin next. So
    does a loader in a forked child. An iteration stays with its process.

    Raises:
        ValueError, TypeError, SourceError: naming the argument, its value and accepted values.
    """

    @with_fields_of(LoaderArguments)
    def __init__(self, arguments: LoaderArguments) -> None:
        self._start(arguments)

    def _start(self, arguments: LoaderArguments) -> None:
        pipeline = self._pipeline = Pipeline(arguments)
        options = pipeline.options
        self.batch_size = options.batch_size
        self.drop_last = options.drop_last
        self.prefetch = options.prefetch
        self.rank = options.rank
        self.world_size = options.world_size
        self.num_threads = options.num_threads
        self.source = pipeline.source
        self.augmenter = pipeline.augmenter
        self.cache = pipeline.cache
        self.shuffle = pipeline.shuffle
        self.targets = None if pipeline.targets is None else pipeline.targets.options
        self._epochs = Epochs(pipeline.depth, pipeline.is_early, pipeline.run)
        at_fork(self)
        # Attributes that a copy creates again; a derived class may have more.
        self._own = frozenset((*self.__dict__, "_own"))

    def after_fork(self) -> None:
        self._pipeline.ranks_compared = True  # the other ranks talk to the parent

    def __getstate__(self) -> dict[str, Any]:
        for name in ("source", "transform", "sampler", "batch_sampler", "weights", "conditions"):
            value = getattr(self._pipeline.portable, name)
            check_copied(name, value, "accepted: what can be, or make the Loader in the other process")
        return self._portable()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._start(state["arguments"])
        self._epochs.at, self._epochs.next = state["epochs"]
        self._pipeline.log = state["log"]
        self.__dict__.update(state["more"])

    def _portable(self) -> dict[str, Any]:
        more = {name: value for name, value in self.__dict__.items() if name not in self._own}
        epochs = self._epochs.at, self._epochs.next
        pipeline = self._pipeline
        return {"arguments": pipeline.portable, "epochs": epochs, "log": deepcopy(pipeline.log), "more": more}

    @property
    def device(self) -> str:
        return self.augmenter.device

    @property
    def seed(self) -> int:
        return self.augmenter.seed

    @property
    def dataset(self) -> AnySource | Mixture:
        """The opened source, by the name that torch's DataLoader has for it: ``len(loader.dataset)``."""
        return self.source

    @property
    def sampler(self) -> Any:
        """The ``sampler`` argument; None if the loader orders samples itself.

        For scripts written for torch's DataLoader, which call ``loader.sampler.set_epoch``. Call ``loader.set_epoch``.
        """
        return self._pipeline.options.sampler

    @property
    def epoch(self) -> int:
        """Epoch of the current iteration, or the one that the next iteration begins."""
        return self._epochs.at[0]

    @property
    def errors(self) -> list[Failure]:
        """Samples that could not be read, each listed once, with file, member and reason."""
        return self._pipeline.log.list()

    def __repr__(self) -> str:
        """The call that makes it, with the device that was found; without arguments at their default."""
        given = {**vars(self._pipeline.portable), "device": self.device}
        if self.world_size == 1:
            given |= {"rank": None, "world_size": None}
        _, _, *options = fields(LoaderArguments)
        named = [
            f"{each.name}={short_repr(given[each.name])}" for each in options if given[each.name] is not each.default
        ]
        return f"Loader({', '.join([short_repr(self.source), repr(self.augmenter.transform), *named])})"

    def __len__(self) -> int:
        """Number of batches of an epoch on this rank; raises TypeError if a shard has no index yet."""
        return len(self._pipeline.share(self.epoch))

    def __iter__(self) -> Iterator[AnyBatch]:
        """Begin an epoch: the one set by ``set_epoch`` or ``load_state_dict``, else the one after the last begun.

        Yields a ``Batch``, or with targets a ``TargetBatch``. Threads may share the iterator: each batch goes to one
        thread.
        """
        check_running("Loader")
        self.augmenter.check_process()
        run = self._epochs.begin()
        try:
            self._pipeline.compare_ranks(run.start[0])
        except BaseException:
            run.close()
            raise
        batches: Any = BatchIterator(run, self._epochs, self._pipeline.hand_out)
        return batches

    def batch(self, step: int, epoch: int | None = None) -> AnyBatch:
        """Make batch ``step`` of ``epoch`` (None: the current one), independently of any iteration.

        Any thread may call it. Raises IndexError for a step that the epoch does not have, TypeError if a shard has no
        index yet.
        """
        made: Any = self._pipeline.batch(step, self.epoch if epoch is None else epoch)
        return made

    def partners(self, index: int, epoch: int | None = None) -> list[int]:
        """Return the ids that sample ``index`` is mixed with in ``epoch`` (None: the current one).

        ``Augmenter.explain`` accepts them. Raises ValueError with a sampler, weights or copies, and for
        ``partners="batch"``.
        """
        return self._pipeline.partners(index, self.epoch if epoch is None else epoch)

    def stats(self) -> LoaderStats:
        """Return the seconds, samples and bytes of each stage (read, decode, augment, hand_over, wait) in this epoch.

        They include work done ahead for the epoch that began last, and are zero before the first. Any thread may call
        it. On a GPU, seconds are host time, in which the work is queued.
        """
        latest = self._epochs.latest
        return (StageTimes() if latest is None else latest.times).stats(
            self.epoch if latest is None else latest.start[0]
        )

    def set_epoch(self, epoch: int) -> None:
        """Set the ``epoch`` of the next iteration, which resumes in its middle if ``load_state_dict`` set that."""
        epoch = integer("epoch", epoch, 0)
        resumed = self._epochs.next
        self._epochs.seek(resumed if resumed[0] == epoch else (epoch, 0))

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch handed out: a few numbers and strings that JSON can hold.

        The state is the same on every rank. Batch size, threads and number of ranks may change before it is loaded.
        """
        return self._pipeline.order.state(self._epochs.at)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Resume where ``state_dict`` was taken, with the remaining samples and the same pixels.

        Raises:
            ValueError: if the data set, seed, shuffling, weights or sampler differ from the state's.
        """
        self._epochs.seek(self._pipeline.order.position(state_dict))
