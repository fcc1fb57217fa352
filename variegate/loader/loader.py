"""``Loader``: batches of augmented images from a source, made ahead of their use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from variegate.augmenter.pickling import CopiedByState, check_copied
from variegate.checks import integer, spelt, takes
from variegate.loader.batch import Failure
from variegate.loader.epochs import BatchIterator, Epochs
from variegate.loader.observer import LoaderStats, Observer, StageTimes
from variegate.loader.options import LoaderArguments
from variegate.loader.pipeline import Pipeline
from variegate.threads import at_fork, check_running

if TYPE_CHECKING:
    from variegate.loader.targets import AnyBatch


class Loader(CopiedByState):
    """Iterates over an epoch's batches: ``for images, labels in loader``.

    Args:
        source: what ``vg.open_source`` takes or gives: a folder, WebDataset shards, Parquet files, arrays with labels,
            any map-style torch Dataset.
        transform: what is done to each image, or what ``vg.load_policy`` takes; None for nothing.
        batch_size: samples per batch and rank.
        device, seed, dtype, layout, geometry: as for ``Augmenter``.
        shuffle: a new order in every epoch, a function of (seed, epoch) alone; False keeps the source's, or that of a
            list of indices. None is True, but for a ``sampler`` that gives the order itself.
        drop_last: leave out the samples that do not fill a batch on every rank.
        num_threads: threads that decode and augment. None for the cores of this process, shared among the processes
            that ``torchrun`` started here. Pixels do not depend on it.
        rank, world_size: which part of each step's samples is loaded here. None takes torch.distributed's, else the
            environment's, else everything. All ranks yield the same number of batches; together they yield every
            sample once, but for rows marked in ``Batch.padding``.
        on_error: what an image that cannot be read does: "raise" a DecodeError naming it, "skip" (its batch is one
            shorter), or "replace" (another sample in its place, drawn for its id; marked as padding). ``errors``
            lists them.
        max_errors: with "skip" or "replace", the bad samples that this rank puts up with: a number, or a share (a
            float) of those that it is to read in an epoch. One more raises TooManyErrors.
        decode: who decodes JPEGs: "cpu", "gpu" (nvImageCodec, ``pip install 'variegate[gpu]'``) or "auto": the GPU
            where the device is one and nvImageCodec is installed. Pixels of "gpu" are a level or so beside those of
            "cpu"; each depends on nothing but the file and the crop. What goes into a cache is decoded by the CPU.
        fast_decode: let the CPU decode a JPEG at half (a quarter, an eighth) of its size where the crop is still at
            least as large as the output: faster with large pictures, and other pixels, by a level or two on average.
        cache: keep decoded pixels for later epochs: "host", "device" (a GPU's memory) or a folder, which serves later
            runs as well. Pictures are then decoded whole.
        cache_bytes: how many bytes of pixels this process keeps; None for half of what is free, divided among the
            processes that ``torchrun`` started here. Samples beyond are decoded every time.
        cache_side: reduce the pictures in the cache so that their shorter side has this many pixels.
        prefetch: batches made ahead of the one in use, at the end of an epoch those of the next; 0 makes each when it
            is asked for.
        max_pixels: larger pictures are refused before they are decoded; None for ``MAX_PIXELS`` (179 million).
        max_decode_bytes: so are those that take more memory to decode; None for ``MAX_DECODE_BYTES`` (1 GB).
        sampler: which samples an epoch has: a sequence of indices (a subset, or with repeats), shuffled as ``shuffle``
            says; a torch ``Sampler`` or anything else with ``__iter__`` and ``__len__``, asked for its indices when an
            epoch begins (after ``set_epoch(epoch)``, where it has that), in its order; or a function epoch -> indices.
        weights: how likely each sample is to be drawn: a number for each sample; a number for each class, or a mapping
            {class name or label: number}, for each sample of that class; or "balanced", every class equally likely.
            Only proportions count. See ``weights.py`` for how it is drawn.
        num_samples: with weights, the draws of an epoch; None for as many as there are samples.
        copies: repeated augmentation (Hoffer et al. 2020, arXiv:1901.09335): each sample of an epoch comes this many
            times, one after another, and is augmented by random numbers of its own each time (``Batch.copies``). A
            batch reads and decodes it once. ``batch_size`` counts copies, and an epoch is as many times longer. On
            several ranks the copies of a sample go to different ones.
        shuffle_buffer, shuffle_bytes: samples, and bytes of files, among which a stream is shuffled.
        partners: whom a transform that mixes samples (``T.MixUp``) mixes them with: "epoch" for any others of the
            epoch, a function of (seed, epoch, id), whatever the batch; "batch" for the ones before them in their batch,
            which is all that a stream can. In the place of one that cannot be read stands the sample itself.
        index: entry points of the JPEGs' Huffman code, so that a crop decodes little more than itself, with the same
            pixels: "auto" for the one that ``variegate pack`` put beside these files, or that ``variegate index`` made
            of them, in the user's cache folder; or a path. Files that it does not know are looked into beside the
            epochs, by a thread that takes only what others leave idle, and kept. It knows files by their content,
            whatever their names, order or labels.
        views: so many views of each image by ``transform``, a tuple of one tensor [N, views, C, H, W]: short for
            ``T.MultiView([transform], counts=[views])``, which may have several transforms.
        conditions: what ``T.Cond`` and ``T.AdaptiveRandAugment`` are told of each sample beside its label: a function
            of an epoch that gives a function of ids, uint64[N] -> {name: N values}. The former is asked when an epoch
            begins, or goes on, in the thread that iterates; what it gives is called by the threads that make batches,
            and must say the same until the epoch is over. No batch of an epoch is made before it begins.
        annotations: as for ``vg.open_source``: boxes, masks or key points of a folder of images.
        targets: ``vg.Targets(...)`` for batches that are dicts (``TargetBatch``) with the boxes, masks and key points
            of the source: "image" as one tensor, of the others a list with an entry for each sample, or tensors that
            are padded (``padded=True``). None is ``vg.Targets()`` for a source with annotations (COCO, VOC, YOLO,
            folders of masks), and no targets for others; False gives ``images, labels`` for any.

    A copy by pickling is made of the arguments and stands where this loader stands: its next iteration is the one that
    this loader would begin next. So does a loader in a forked child. An iteration stays with its process.

    Raises ValueError, TypeError or SourceError naming the argument, its value and what is accepted.
    """

    @spelt(num_workers="num_threads")
    @takes(LoaderArguments)
    def __init__(self, arguments: LoaderArguments) -> None:
        self._start(arguments)

    def _start(self, arguments: LoaderArguments) -> None:
        pipeline = self._pipeline = Pipeline(arguments)
        options = pipeline.options
        self.batch_size, self.drop_last, self.prefetch = options.batch_size, options.drop_last, options.prefetch
        self.rank, self.world_size, self.num_threads = options.rank, options.world_size, options.num_threads
        self.source, self.augmenter, self.cache = pipeline.source, pipeline.augmenter, pipeline.cache
        self.shuffle = pipeline.shuffle
        self.targets = None if pipeline.targets is None else pipeline.targets.options
        self._epochs = Epochs(self.prefetch, pipeline.is_early, pipeline.run)
        at_fork(self)
        # What is made anew in a copy; a class derived from this one may have more.
        self._own = frozenset((*self.__dict__, "_own"))

    def after_fork(self) -> None:
        self._pipeline.ranks_compared = True  # the other ranks talk to the parent

    def __getstate__(self) -> dict[str, Any]:
        for name in ("source", "transform", "sampler", "weights", "conditions"):
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
    def epoch(self) -> int:
        """The epoch that is being iterated over, or that the next iteration begins."""
        return self._epochs.at[0]

    @property
    def errors(self) -> list[Failure]:
        """The samples that could not be read, each once, with file, member and reason."""
        return self._pipeline.log.list()

    def __repr__(self) -> str:
        """The call that makes it, with the device, the rank and the threads that were found; the source as it says."""
        made = self.augmenter
        named = {
            "seed": (self.seed, 0),
            "shuffle": (self.shuffle, True),
            "drop_last": (self.drop_last, False),
            "num_threads": (self.num_threads, None),
            "rank": (self.rank, 0),
            "world_size": (self.world_size, 1),
            "prefetch": (self.prefetch, 2),
            "copies": (self._pipeline.options.copies, 1),
            "dtype": (str(made.dtype).removeprefix("torch."), "float32"),
            "layout": (made.layout, "NCHW"),
            "geometry": (made.geometry, "composed"),
        }
        given = "".join(f", {name}={value!r}" for name, (value, default) in named.items() if value != default)
        source = " ".join(repr(self.source).split())
        source = source if len(source) <= 200 else f"{source[:160]} ... {source[-20:]}"
        batches = f"batch_size={self.batch_size}, device={self.device!r}"
        return f"Loader({source}, {made.transform!r}, {batches}{given})"

    def __len__(self) -> int:
        """Batches of a whole epoch on this rank. Raises TypeError for a stream, whose length nobody knows."""
        return len(self._pipeline.share(self.epoch))

    def __iter__(self) -> Iterator[AnyBatch]:
        """Begin an epoch: the one set by ``set_epoch`` or ``load_state_dict``, else the one after the last begun.

        Of each ``next`` a ``Batch``; with targets a ``TargetBatch``.

        Threads may share the iterator: each batch goes to one of them.
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
        """Batch ``step`` of an epoch (None: the current one), made now, whatever is being iterated over.

        Any thread may call it. Raises IndexError for a step that the epoch does not have, TypeError for a stream.
        """
        made: Any = self._pipeline.batch(step, self.epoch if epoch is None else epoch)
        return made

    def partners(self, index: int, epoch: int | None = None) -> list[int]:
        """The ids of those that sample ``index`` is mixed with in an epoch (None: the current one), as
        ``augmenter.explain`` takes them. Raises ValueError for a sampler, weights, copies, and partners of the batch.
        """
        return self._pipeline.partners(index, self.epoch if epoch is None else epoch)

    def stats(self) -> LoaderStats:
        """Time spent: of each stage (read, decode, augment, hand_over, wait) the seconds, samples and bytes
        since the epoch began, what was done for it ahead of that included.

        Of the epoch that was begun last; all zero before the first. Any thread may call it. On a GPU a stage's seconds
        are those of the host, which queues the work.
        """
        latest = self._epochs.latest
        return (StageTimes() if latest is None else latest.times).stats(
            self.epoch if latest is None else latest.start[0]
        )

    def observe(self, *observers: Observer) -> None:
        """Tell these, and no others, of every piece of work done from now on, by ``stage_done(stage, seconds,
        samples, nbytes)`` in the threads that do it, and ``is_exact``. A copy of the loader has none."""
        self._pipeline.observers[:] = observers

    def set_epoch(self, epoch: int) -> None:
        """The next iteration begins this epoch; in the middle, if that is where ``load_state_dict`` left it."""
        epoch = integer("epoch", epoch, 0)
        resumed = self._epochs.next
        self._epochs.go_to(resumed if resumed[0] == epoch else (epoch, 0))

    def state_dict(self) -> dict[str, Any]:
        """State of the iteration after the batch handed out last: a few numbers and strings, fit for JSON.

        It is the same on every rank, and says nothing about batches, threads or ranks: all may be others afterwards.
        """
        return self._pipeline.order.state(self._epochs.at)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The next iteration goes on where the state was taken: the remaining samples, with the same pixels.

        Raises ValueError where the data set, the seed, the shuffling, the weights or the sampler's order are not those
        of the state.
        """
        self._epochs.go_to(self._pipeline.order.position(state_dict))
