"""``vg.search`` with users' own training: what members get, what is kept, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import variegate as vg
from tests.learn.search.objectives import NUMBERS, Demanding, Fresh, trained
from tests.learn.search.runs import contents
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.learn.events import SearchProgress
from variegate.learn.history import read_log
from variegate.learn.members import member_seed, packed, unpacked
from variegate.learn.population import LostPopulationError
from variegate.learn.run import LOG_NAME

FILES = ["population.jsonl", "schedule.json", "search.json"]


def search(objective: Any, out: Path, **changed: Any) -> Any:
    return vg.search(objective, **{**NUMBERS, "out": out, **changed})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a search that nothing disturbed."""
    folder = tmp_path_factory.mktemp("search") / "out"
    search(trained, folder)
    return contents(folder)


def same(found: dict[str, bytes], whole: dict[str, bytes]) -> bool:
    """But for the name of the objective."""
    return sorted(found) == FILES and found[LOG_NAME] == whole[LOG_NAME] and _segments(found) == _segments(whole)


def _segments(found: dict[str, bytes]) -> Any:
    return json.loads(found["schedule.json"])["segments"]


def test_finds_what_the_objective_rewards(tmp_path: Path) -> None:
    seen: list[SearchProgress] = []
    found = search(trained, tmp_path / "out", epochs=16, population=6, on_event=seen.append)
    assert sorted(contents(tmp_path / "out")) == FILES
    assert found.folder == tmp_path / "out"
    assert found.history.epochs == found.schedule.epochs == 16
    assert found.score == max(row.score for row in found.history.steps[-1])
    strengths = [sum(p * m for _, p, m in segment.policy) for segment in found.schedule.segments]
    assert strengths[0] == 0
    assert strengths[-1] > 8
    assert isinstance(found.policy, T.PBA)
    assert found.policy.schedule == vg.load_policy(tmp_path / "out" / "schedule.json").schedule  # type: ignore[attr-defined]
    assert len([one for one in seen if one.rows]) == 8
    assert len(seen) == 8 * 7


def test_a_member_gets_its_policy_epochs_checkpoint_and_seed(tmp_path: Path) -> None:
    calls: list[tuple[int, Any, int, str]] = []
    image = torch.full((1, 8, 8, 3), 100, dtype=torch.uint8)

    def objective(policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
        assert vg.Augmenter(policy, "cpu", seed=seed)(image, ids=[0], epoch=0).shape == (1, 3, 8, 8)
        calls.append((epochs, checkpoint, seed, policy.schedule.space))
        return float(len(calls) % 4), {"calls": len(calls)}

    found = search(objective, tmp_path / "out", seed=3, space="pba")
    assert [epochs for epochs, *_ in calls] == [2] * 12 + [1] * 4
    seeds = [member_seed(3, member) for member in range(4)]
    assert [seed for _, _, seed, _ in calls] == seeds * 4
    assert {space for *_, space in calls} == {"pba"}
    given = [None if checkpoint is None else checkpoint["calls"] for _, checkpoint, *_ in calls]
    expected: list[Any] = [None] * 4
    for step, rows in enumerate(found.history.steps[:-1]):
        origins = [row.member if row.copied_from is None else row.copied_from for row in rows]
        expected += [4 * step + member + 1 for member in origins]
    assert given == expected
    assert any(row.copied_from is not None for row in found.history.rows)


@pytest.mark.parametrize("workers", [3, 9])
def test_workers_change_nothing(whole: dict[str, bytes], tmp_path: Path, workers: int) -> None:
    search(trained, tmp_path / "out", workers=workers)
    assert contents(tmp_path / "out") == whole


def test_a_checkpoint_is_nobody_elses(whole: dict[str, bytes], tmp_path: Path) -> None:
    """A training may change what it got in place, and may go on with what it gave away."""
    kept: list[Any] = []

    def careless(policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
        got = trained(policy, epochs, checkpoint, seed)
        for old in [one for one in (checkpoint, *kept) if one]:
            old["weights"].fill_(7)
            old["trace"][:] = 7
            old["epochs"] = 99
        kept.append(got[1])
        return got

    search(careless, tmp_path / "out")
    assert same(contents(tmp_path / "out"), whole)


def test_a_class_is_made_once_and_an_object_as_it_is(tmp_path: Path) -> None:
    before = Fresh.made
    one = search(Fresh, tmp_path / "class", workers=2)
    assert Fresh.made == before + 1
    ten = search(Fresh(10.0), tmp_path / "object")
    assert Fresh.made == before + 2
    assert ten.score == pytest.approx(10 * one.score)
    search(Fresh, tmp_path / "class")  # all is done
    assert Fresh.made == before + 2


def interrupted_after(steps: int) -> Callable[..., tuple[float, Any]]:
    left = [steps]

    def step(policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        return trained(policy, epochs, checkpoint, seed)

    step.__qualname__ = trained.__qualname__
    return step


@pytest.mark.parametrize("workers", [1, 2])
def test_resumes_after_any_training(whole: dict[str, bytes], tmp_path: Path, workers: int) -> None:
    out = tmp_path / "out"
    for steps in (0, 1, 2, 3, 2, 1, 4, 1):  # of 16 in all
        with pytest.raises(KeyboardInterrupt):
            search(interrupted_after(steps), out, workers=workers)
    search(interrupted_after(2), out, workers=workers)
    assert contents(out) == whole


def test_an_error_names_the_member_and_the_step_and_what_is_done_stays(whole: dict[str, bytes], tmp_path: Path) -> None:
    calls: list[int] = []

    def failing(policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
        calls.append(seed)
        if len(calls) == 7:
            raise ZeroDivisionError("of the loss")
        return trained(policy, epochs, checkpoint, seed)

    failing.__qualname__ = trained.__qualname__
    with pytest.raises(RuntimeError, match=r"objective: member 2, step 2 \(after epoch 2\): ZeroDiv") as got:
        search(failing, tmp_path / "out")
    assert isinstance(got.value.__cause__, ZeroDivisionError)
    search(failing, tmp_path / "out")
    assert len(calls) == 17
    assert contents(tmp_path / "out") == whole


def test_one_that_fails_does_not_let_the_others_train_on(tmp_path: Path) -> None:
    begun: list[int] = []

    def failing(policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
        begun.append(seed)
        raise OSError("no data")

    with pytest.raises(RuntimeError, match=r"member [01], step 1 .*: OSError: no data"):
        search(failing, tmp_path / "out", workers=2, population=10)
    assert len(begun) <= 2


def test_members_that_diverge_are_replaced(tmp_path: Path) -> None:
    def fragile(policy: Any, epochs: int, checkpoint: Any, seed: int) -> tuple[float, Any]:
        score, after = trained(policy, epochs, checkpoint, seed)
        return (math.nan, None) if seed == member_seed(0, 2) and checkpoint is None else (score, after)

    search(fragile, tmp_path / "out")
    first, second = read_log(tmp_path / "out" / LOG_NAME).steps[:2]
    assert math.isnan(first[2].score)
    assert first[2].copied_from not in (None, 2)
    assert math.isfinite(second[2].score)
    for _ in range(2):
        with pytest.raises(LostPopulationError, match="epoch 2: none of 4 members has a score"):
            search(lambda policy, epochs, checkpoint: (math.nan, None), tmp_path / "lost")


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (0.5, r"ValueError: objective: step returned float; accepted: \(score, checkpoint\)"),
        ((math.inf, None), r"ValueError: objective: got the score inf; accepted: a finite number, or NaN"),
        (("good", None), r"got the score 'good'"),
        ((0.5, {"model": [torch.nn.Linear(1, 1)]}), r"checkpoint\['model'\]\[0\]: got torch.nn.modules.linear.Linear;"),
        ((0.5, {"names": {"a"}}), r"checkpoint\['names'\]: got set; accepted: tensors, arrays, numbers, text"),
        ((0.5, {(1, 2): 3}), r"checkpoint: got a key of type tuple; accepted: text and numbers"),
        ((0.5, np.array(["a", None])), r"checkpoint: got numpy.ndarray of object; accepted"),
    ],
)
def test_results_are_checked(tmp_path: Path, returned: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=rf"objective: member 0, step 1 \(after epoch 0\): .*{words}"):
        search(lambda policy, epochs, checkpoint: returned, tmp_path / "out")


def test_checkpoints_come_back_as_they_were() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    moments = {"step": torch.tensor(3.0), "exp_avg": torch.ones(2, 2)}
    generator = np.random.default_rng(5)
    checkpoint = {
        "model": model.state_dict(),
        "optimizer": {"state": {0: moments}, "param_groups": [{"lr": 0.1, "betas": (0.9, 0.999), "params": [0, 1]}]},
        "torch": torch.get_rng_state(),
        "numpy": generator.bit_generator.state,
        "old": np.random.RandomState(0).get_state(),
        "arrays": [np.arange(3, dtype=np.uint16), np.float32(0.1), np.zeros((0, 2), bool)],
        "rest": (None, True, 2**80, 1e-300, "ä", b"\xff\x00", {1: [2, (3,)]}),
    }
    before = repr(checkpoint)
    back = unpacked(packed(checkpoint))
    assert repr(back) == repr(checkpoint) == before
    assert type(back["arrays"][1]) is np.float32
    model.load_state_dict(back["model"])
    generator.bit_generator.state = back["numpy"]


def other_name(policy: Any, epochs: int, checkpoint: Any) -> tuple[float, Any]:
    return 0.0, None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epochs": 8}, "holds a search with epochs 7, this one has 8; choose another folder"),
        ({"seed": 1}, "holds a search with seed 0, this one has 1"),
        ({"operations": ["Rotate"]}, r'holds a search with operations \["Rotate", "Invert"\], this one has \["Rotate"'),
        ({"space": "pba"}, 'holds a search with space "pba-relative", this one has "pba"'),
        ({"objective": other_name}, 'holds a search with objective "trained", this one has "other_name"'),
    ],
)
def test_changed_settings_are_refused_by_name(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(interrupted_after(2), tmp_path / "out")
    with pytest.raises(SourceError, match=words):
        search(**{"objective": trained, "out": tmp_path / "out", **changed})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            {"objective": lambda policy, seed: 0.5},
            r"objective: got <function .*; accepted: step\(policy, epochs",
        ),
        ({"objective": dict}, "objective: got"),
        (
            {"objective": Demanding},
            r"objective: got <class .*Demanding'>, which takes arguments; accepted: a class without",
        ),
        ({"population": 1}, "population: got 1; accepted: an integer from 2 on"),
        ({"epochs": 0}, "epochs: got 0"),
        ({"workers": 0}, "workers: got 0; accepted: an integer from 1 on"),
        ({"operations": ["Rotat"]}, r"operations\[0\]: got 'Rotat'.*did you mean 'Rotate'"),
        ({"space": "pbar"}, "space: got 'pbar'"),
        ({"backend": "rays"}, "backend: got 'rays'; accepted: 'local', 'ray'"),
        ({"lr": 0.1}, "lr: got 0.1; accepted: for images only"),
        ({"address": "auto"}, "address: got 'auto'; accepted: with backend='ray'"),
        ({"backend": "ray", "workers": 2}, "workers: got 2; accepted: with backend='local'"),
    ],
)
def test_bad_arguments(tmp_path: Path, wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        search(**{"objective": trained, "out": tmp_path / "out", **wrong})
    assert not (tmp_path / "out").exists()


def test_arguments_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'intervall'"):
        search(trained, tmp_path / "out", intervall=3)
    with pytest.raises(ValueError, match="epochs: got nothing; accepted: the epochs that each member trains"):
        vg.search(trained, out=tmp_path / "out")
    with pytest.raises(ValueError, match="workers: got 2; accepted: for training of your own only"):
        vg.search("photos", out=tmp_path / "out", workers=2)
