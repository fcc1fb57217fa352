"""A search's settings and its folder, the same for every back end, with digests of its images."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

from variegate.checks import PIXEL_VERSION, check_pixel_version
from variegate.data.base import SourceError, truncate
from variegate.io.addresses import redact_url
from variegate.io.durable import write_atomically
from variegate.learn.events import Started
from variegate.learn.fit import FitData, check_batch
from variegate.learn.history import History, Settings, schedule_of
from variegate.learn.images import BaselineAugmentation, LabelledImages
from variegate.learn.members import ImageMember, PopulationMember, member_seed
from variegate.learn.trainings import check_folder, locked_folder
from variegate.options.fit import FitOptions
from variegate.options.search import SearchOptions
from variegate.policies.schedule import Schedule
from variegate.threads import computed_once

ORIGINALS_NAME = "images.jsonl"
_TOGETHER = 1024


def digests(*parts: LabelledImages) -> dict[str, str]:
    """name -> 16 hexadecimal digits of pixels and label, for every image of these parts, by its id."""
    found: list[tuple[int, str, str]] = []
    for part in parts:
        names = part.names or [f"image {number}" for number in part.ids.tolist()]
        found += zip(part.ids.tolist(), names, digests_by_row(part), strict=True)
    # No two samples share an id; a name they may.
    images: dict[str, str] = {}
    for number, name, text in sorted(found):
        images[name if name not in images else f"{name} ({number})"] = text
    return images


def digests_by_row(images: LabelledImages) -> list[str]:
    """The digests of images in their order."""
    labels = images.labels.tolist()
    found = list[str]()
    for first in range(0, len(images), _TOGETHER):
        pixels = images.pixels[first : first + _TOGETHER].cpu().numpy()
        for row, image in enumerate(pixels, start=first):
            digest = hashlib.blake2b(image.tobytes(), digest_size=8)
            digest.update(f"{image.shape} {labels[row]}".encode())
            found.append(digest.hexdigest())
    return found


def searched_on(policy: str) -> set[str]:
    """Digests of the images that a policy's file was searched on, as its folder says; empty where it says nothing."""
    path = Path(policy).parent / ORIGINALS_NAME
    if not path.is_file():
        return set()
    try:
        return {str(json.loads(line)[1]) for line in path.read_text(encoding="utf-8").splitlines()}
    except (ValueError, TypeError, LookupError) as error:
        raise SourceError(f"{path}: is damaged; restore it, or delete it") from error


def digest_of(images: Mapping[str, str]) -> str:
    """A single digest of all parts."""
    return hashlib.blake2b(json.dumps(list(images.items())).encode(), digest_size=8).hexdigest()


def write_digests(folder: Path, images: Mapping[str, str]) -> None:
    """A line ``[name, digest]`` for every image. Raises WriteError."""
    lines = "".join(json.dumps([name, digest]) + "\n" for name, digest in images.items())
    write_atomically(folder / ORIGINALS_NAME, lines.encode(), durable=True)


SETTINGS_NAME = "search.json"
LOG_NAME = "population.jsonl"
SCHEDULE_NAME = "schedule.json"
LOCK_NAME = ".search.lock"
# State of an unfinished search, by back end.
CHECKPOINT_NAMES = {"local": "checkpoint", "ray": "ray"}
_OPTIONS = {"population.size": "population"}
_DAMAGED = "restore the settings of the search, or choose another folder"


class PopulationRun(ABC):
    """A search and its folder; kinds of it differ in what trains the members.

    ``one_thread``: on a CPU each member trains in one thread.
    """

    settings: Settings
    one_thread: ClassVar[bool]

    @abstractmethod
    def on(self, device: str, num_threads: int | None = None) -> Callable[[int], PopulationMember]:
        """Prepare a device -> a function that makes a member, by its number. ``num_threads``: as of ``FitData``."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Everything that determines the result, as JSON."""

    @abstractmethod
    def check_sent(self) -> None:
        """Raises ValueError for members that other machines could not make."""

    @abstractmethod
    def source(self, score: float) -> str:
        """The origin of the schedule, in words."""

    @contextmanager
    def claimed(self, folder: Path, backend: str = "local") -> Iterator[None]:
        """``claim`` the folder, and lock it until the end. Raises SourceError where another run is writing there."""
        with locked_folder(folder, LOCK_NAME, lambda: self._is_begun(folder, backend)):
            self.claim(folder, backend)
            yield

    def claim(self, folder: Path, backend: str = "local") -> None:
        """Make the folder this run's. Raises SourceError where it is another's or another back end's, WriteError."""
        if not self._is_begun(folder, backend):
            described = {**self.describe(), "pixels": PIXEL_VERSION}
            write_atomically(folder / SETTINGS_NAME, (json.dumps(described, indent=2) + "\n").encode(), True)

    def _is_begun(self, folder: Path, backend: str) -> bool:
        """Raises SourceError where the folder is another's."""
        if not check_folder(folder, SETTINGS_NAME):
            return False
        mine = self.describe()
        theirs = _read_settings(folder / SETTINGS_NAME, mine)
        check_pixel_version(str(folder), theirs.get("pixels"), SourceError)
        for name in mine:
            path, one, other = _difference(name, theirs[name], mine[name])
            if one != other:
                raise SourceError(
                    f"{folder}: holds a search with {self.option(path)} {_short(one)}, this one has {_short(other)}; "
                    "choose another folder"
                )
        for other, name in CHECKPOINT_NAMES.items():
            if other != backend and (folder / name).exists():
                raise SourceError(
                    f"{folder}: holds a search with the back end {other!r} that is not finished; resume it, or "
                    "choose another folder"
                )
        return True

    def option(self, path: str) -> str:
        """The option that decides a setting, where one does: "--batch-size" for "recipe.batch_size"."""
        name = _OPTIONS.get(path, path.rpartition(".")[2])
        is_option = any(one.name == name for one in fields(SearchOptions))
        return f"--{name.replace('_', '-')}" if is_option else path

    def finish(self, folder: Path, history: History) -> Schedule:
        """Write the schedule that the best member lived through. Raises WriteError."""
        schedule = schedule_of(history, source=self.source(history.steps[-1][history.best].score))
        write_atomically(folder / SCHEDULE_NAME, (json.dumps(schedule.to_dict(), indent=1) + "\n").encode(), True)
        return schedule


@dataclass(frozen=True)
class SearchRun(PopulationRun):
    """A population of ``model``s, trained by ``recipe`` on ``train``, scored by accuracy on ``validation``.

    ``place`` and ``fingerprint``: of the images; ``total``: their number; ``reading``: settings of how they were read.
    ``test``: others, which compare the result. Without a ``fill``, policies fill with the mean of ``train``.
    """

    settings: Settings
    recipe: FitOptions
    model: str
    baseline: BaselineAugmentation
    train: LabelledImages
    validation: LabelledImages
    place: str = ""
    fingerprint: str = ""
    test: LabelledImages | None = None
    total: int = 0
    reading: Mapping[str, Any] = field(default_factory=dict)
    one_thread = True

    def __post_init__(self) -> None:
        if self.recipe.epochs != self.settings.epochs:
            raise ValueError(f"epochs: got {self.recipe.epochs} and {self.settings.epochs}; accepted: the same")
        # Known before a folder is claimed for settings that cannot work.
        check_batch(self.recipe.batch_size or 1, len(self.train))
        if self.settings.space.fill is None:
            space = replace(self.settings.space, fill=self.baseline.fill)
            object.__setattr__(self, "settings", replace(self.settings, space=space))

    @computed_once
    def images(self) -> dict[str, str]:
        """Digests of the images, by their names."""
        return digests(self.train, self.validation)

    @computed_once
    def _described(self) -> str:
        return json.dumps(
            {
                "source": redact_url(self.place),
                "fingerprint": self.fingerprint,
                **self.reading,
                # Settings that determine later ones come first, because the first difference is reported.
                "size": list(self.baseline.size),
                "seed": self.settings.seed,
                "train": len(self.train),
                "validation": len(self.validation),
                "images": digest_of(self.images),
                "model": self.model,
                "recipe": asdict(self.recipe),
                "population": self.settings.to_dict(),
                "around": self.baseline.to_dict(),
                "test": None if self.test is None else digest_of(digests(self.test)),
            }
        )

    def describe(self) -> dict[str, Any]:
        return dict(json.loads(self._described))

    def started(self, devices: Sequence[str]) -> Started:
        """The event of its sizes."""
        test = 0 if self.test is None else len(self.test)
        recipe = self.recipe
        return Started(
            self.total,
            len(self.train),
            len(self.validation),
            recipe.batch_size or 0,
            recipe.num_epochs,
            self.model,
            test,
            size=self.baseline.size,
            devices=tuple(devices),
            members=self.settings.size,
        )

    def source(self, score: float) -> str:
        return (
            f"variegate search, {Path(self.place).name or 'images'}: {self.settings.size} members, {self.model}, "
            f"{len(self.train):,} images, validation accuracy {score:.4f}"
        )

    def on(self, device: str, num_threads: int | None = None) -> Callable[[int], PopulationMember]:
        train = FitData(self.train.samples, self.baseline.plain, device, num_threads)
        scored = train.others(self.validation.samples)

        def member(number: int) -> PopulationMember:
            seed = member_seed(self.settings.seed, number)
            return ImageMember(self.settings, self.baseline, train.begin(self.model, self.recipe, seed), train, scored)

        return member

    def check_sent(self) -> None:
        self.on("cpu")(0)

    def claim(self, folder: Path, backend: str = "local") -> None:
        super().claim(folder, backend)
        if not (folder / ORIGINALS_NAME).exists():  # nor where a run was killed between the two
            write_digests(folder, self.images)


def _read_settings(path: Path, names: Iterable[str]) -> dict[str, Any]:
    try:
        read: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SourceError(f"{path}: is no JSON ({error}); {_DAMAGED}") from error
    missing = [name for name in names if not isinstance(read, dict) or name not in read]
    if missing:
        raise SourceError(f"{path}: has no {missing[0]!r}; {_DAMAGED}")
    return read


def _difference(path: str, one: Any, other: Any) -> tuple[str, Any, Any]:
    """The first path at which these two differ, and both values; None for a missing value."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in {**one, **other}:
            if one.get(name) != other.get(name):
                return _difference(f"{path}.{name}", one.get(name), other.get(name))
    return path, one, other


def _short(value: Any) -> str:
    return truncate(json.dumps(value), 100)
