"""Races of candidates, on labeled images or by training that users supply: ``vg.race``."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from variegate.checks import integer, number, one_of, refused
from variegate.events import OnEvent
from variegate.io.files import StrPath
from variegate.learn.candidates import candidates_of
from variegate.learn.events import notes_as_warnings
from variegate.learn.objective import check_sent, checked_score, is_training, name_of, step_of, takes_seed
from variegate.learn.population import repeat_seed
from variegate.learn.rounds import FORMAT, LOG_NAME, MARGIN, RaceFiles, RaceRules, run_race
from variegate.learn.standings import MAX_ROUNDS, RaceResult
from variegate.learn.trainings import Outcome, Train, TrainingRunner, check_folder
from variegate.options.search import RaceOptions, seconds_in

# Without images, crops have no size.
_DEFAULT_POLICIES = ("none", "flip", "randaugment-1-5", "randaugment-2-9", "trivialaugment")


def race(
    objective: Any,
    policies: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    out: StrPath | None = None,
    rounds: int = RaceOptions.rounds,
    budget: float | str | None = None,
    confidence: float = 0.95,
    margin: float | None = None,
    grain: float | None = None,
    seed: int = 0,
    epochs: int | None = None,
    workers: int | None = None,
    backend: str = "local",
    address: str | None = None,
    gpus_per_training: float = 0.0,
    on_event: OnEvent | None = None,
    stop: Event | None = None,
    **options: Any,
) -> RaceResult:
    """Find the best of several policies, or of anything else to train with, in as few training runs as needed.

    Each round trains every remaining candidate once, all from one seed, and then drops those worse than another. The
    best candidate stays with probability ``confidence`` over all rounds, if rounds are independent and differences
    within rounds are near normal. A training that diverged counts as the worst score of its round.

    On images, rounds differ in the images that train; the other images score. While ``budget`` lasts, variations of the
    winner (number and magnitude of operations, crop, flip, cutout) then race against it. ``out`` gets ``policy.json``,
    which ``load_policy`` reads.

    Args:
        objective: labeled images, as anything that ``open_source`` takes; or training of your own. That is
            ``objective(policy, seed)``, which trains from ``seed`` (data split, weights, order) and returns a score,
            higher is better, or NaN where training diverged; or ``step(policy, epochs, checkpoint, seed)``, a function
            or a method, which returns a score and a checkpoint and is called with ``epochs`` and no checkpoint.
        policies: at least two, the simplest first: of equal means the first wins. A list of names, files and
            transforms, or a mapping from names to these (for training of your own: to anything). None: flip, crop,
            RandAugment and others.
        out: folder for ``race.jsonl``, a line per training, and ``race.json``, the result. The same call resumes from
            it, after a kill too.
        rounds: most rounds of a stage, 2 to 1,000. A later call with more rounds resumes the race in ``out``.
        budget: seconds of wall-clock time, or a text such as "30m", those before a resume included; no training begins
            that would likely end later, and a race ends once two rounds are known not to fit. None: no limit.
        confidence: between 0.5 and 1; half of the error is spent in the first 6 rounds, the other half in later ones.
        margin: scores closer than this count as no difference, and end the race. By default 0.01 for images, else 0.
        grain: smallest possible difference of two scores, such as 1 / images for an accuracy; known for images.
        seed: decides the seeds of the rounds.
        epochs: of each training run; by default what fits the images. Required for a ``step``.
        workers: training runs at a time, in threads, or with Ray as many as its CPUs. On images, one on each of
            ``devices``.
        backend: "ray" runs your own training function on a cluster at ``address`` (None: the one of this machine, or a
            new one), each with ``gpus_per_training`` GPUs.
        on_event: called with events, one at a time: a ``Training`` after each training run, and a ``Round``.
            None: notes are warnings.
        stop: once set, no training begins.
        options: for images: fields of ``RaceOptions``, such as model, batch_size, lr, train and devices.

    Raises ValueError for arguments, SourceError where ``out`` holds something else, WriteError, ImportError without
    Ray, and what ``objective`` raises.
    """
    on_event = on_event or notes_as_warnings
    rounds = integer("rounds", rounds, 2, MAX_ROUNDS)
    seed = integer("seed", seed, 0, (1 << 64) - 1)
    if not 0.5 < confidence < 1:
        raise ValueError(f"confidence: got {confidence!r}; accepted: between 0.5 and 1")
    margin, grain = (
        None if value is None else number(name, value, 0.0) for name, value in (("margin", margin), ("grain", grain))
    )
    seconds = None if budget is None else seconds_in("budget", budget)
    folder = None if out is None else Path(out)
    if not is_training(objective):
        from variegate.learn.driver import search_devices
        from variegate.learn.prepare import open_race

        own = {"grain": grain, "workers": workers, "address": address, "gpus_per_training": gpus_per_training or None}
        for name, value in {**own, "backend": None if backend == "local" else backend}.items():
            if value is not None:
                raise refused(name, value, "with training of your own: images and devices decide")
        rules = RaceRules(rounds, seconds, confidence, MARGIN if margin is None else margin)
        chosen = RaceOptions(rounds=rounds, seed=seed, epochs=epochs, **options)
        if folder is not None:
            check_folder(folder, LOG_NAME)
        devices = search_devices(chosen.devices, 1000)
        on_images = open_race(objective, policies, chosen, rules, devices, on_event, folder)
        return on_images.run(folder, on_event, stop)
    for name, value in options.items():
        raise refused(name, value, "with a source of images as objective")
    one_of("backend", backend, ("local", "ray"))
    gpus = number("gpus_per_training", gpus_per_training, 0.0)
    for name, value in (("address", address), ("gpus_per_training", gpus)):
        if value and backend == "local":
            raise refused(name, value, "with backend='ray'")
    if not isinstance(policies, Mapping):
        rows = candidates_of(_DEFAULT_POLICIES if policies is None else policies)
        policies = {name: row.without_images() for name, row in rows.items()}
    if len(policies) < 2:
        raise refused("policies", len(policies), "two or more")
    rules = RaceRules(rounds, seconds, confidence, margin or 0.0, grain or 0.0)
    if step_of(objective) is not None and not takes_seed(objective):
        warnings.warn("objective: its step takes no seed, so rounds may differ in nothing but chance", stacklevel=3)
    train = _training(objective, policies, seed, epochs)
    described = {"format": FORMAT, "policies": list(policies), **rules.describe(), "seed": seed}
    described |= {} if epochs is None else {"epochs": epochs}
    with ExitStack() as stack:
        journal = None if folder is None else stack.enter_context(RaceFiles.in_folder(folder).open(described))
        most = 1
        if backend == "ray":
            train, most = stack.enter_context(_on_ray((objective, policies, seed, epochs), address, gpus))
        runner = TrainingRunner(
            train, journal, integer("workers", most if workers is None else workers, 1, 1024), on_event, stop
        )
        return run_race(list(policies), rules, runner, on_event)


def _training(objective: Any, candidates: Mapping[str, Any], seed: int, epochs: int | None) -> Train:
    """Training of a user's own. Raises ValueError for an invalid objective, and for ``epochs`` without a step."""
    step = step_of(objective)
    if (step is None) != (epochs is None):
        raise refused("epochs", epochs, "1 or more with a step, and none with objective(policy, seed)")

    def train(name: str, number: int) -> Outcome:
        started = time.perf_counter()
        drawn = repeat_seed(seed, number)
        policy = candidates[name]
        score = objective(policy, drawn) if step is None else step(policy, epochs or 1, None, drawn)[0]
        try:
            return checked_score(score), time.perf_counter() - started
        except ValueError as error:
            raise ValueError(f"{error}, from {name!r}") from error

    return train


@contextmanager
def _on_ray(training: tuple[Any, ...], address: str | None, needs: float) -> Iterator[tuple[Train, int]]:
    """The same training as tasks of a cluster, and the number that fits in it; Ray repeats tasks whose machine dies."""
    from variegate.learn.tune import connected

    with connected(address):
        import ray

        check_sent(training, name_of(training[0]))
        held = ray.put(training)

        def run(training: tuple[Any, ...], name: str, number: int) -> Outcome | None:
            return _training(*training)(name, number)

        task = ray.remote(num_cpus=1, num_gpus=needs)(run)

        def train(name: str, number: int) -> Outcome | None:
            try:
                return ray.get(task.remote(held, name, number))
            except ray.exceptions.RayTaskError as error:
                raise error.cause from error
            except ray.exceptions.RayError as error:
                raise RuntimeError(
                    f"{name!r} in round {number + 1}: its process died again and again: {error}"
                ) from error

        found = ray.cluster_resources()
        fitting = found.get("CPU", 1) if not needs else min(found.get("CPU", 1), found.get("GPU", 0) // needs)
        if fitting < 1:
            raise refused("gpus_per_training", needs, f"at most the {found.get('GPU', 0):.0f} GPUs of the cluster")
        yield train, int(min(fitting, 1024))
