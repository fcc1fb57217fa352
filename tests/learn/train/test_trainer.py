"""``train``: it learns, a stop anywhere changes nothing, and what cannot work is said in a line."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.learn.train.digits import PLAIN, Seen, digits, logged, losses, options, stopped_after, top1
from tests.learn.train.digits import lines as lines_of
from tests.needed import needs
from variegate import transforms as T
from variegate.data.base import SourceError
from variegate.io.durable import WriteError
from variegate.learn.checkpoints import ResumeError
from variegate.learn.events import Chosen, EpochEnded, Logged
from variegate.learn.fit import Fit
from variegate.learn.models import ModelError
from variegate.learn.progress import DivergedError
from variegate.learn.trainer import notes_on, train
from variegate.options.training import TrainOptions

pytestmark = needs("sklearn")


@pytest.fixture(autouse=True)
def _tell_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.learn.progress._TELL_SECONDS", 0.0)


def test_it_learns_and_its_model_can_be_used_elsewhere(tmp_path: Path) -> None:
    source, validation = digits()
    events: list[Any] = []
    last = train(source, options(tmp_path, epochs=6, lr=0.15), validation=validation, on_event=events.append)
    assert last["is_done"]
    assert last["top1"] > 0.8
    assert last["top1"] <= last["top5"] <= 1
    log = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert log == [event.line for event in events if isinstance(event, Logged)]
    ended = [event for event in events if isinstance(event, EpochEnded)]
    assert [event.epoch for event in ended] == [1, 2, 3, 4, 5, 6]
    assert ended[-1].scores == {"top1": last["top1"], "top5": last["top5"]}
    assert [line["step"] for line in log if "step" in line] == list(range(1, 97))
    assert {tuple(line) for line in log} == {
        ("epoch", "step", "loss", "lr", "images_per_second", "waiting"),
        ("epoch", "top1", "top5"),
    }
    saved = torch.load(tmp_path / "model.pt", weights_only=True)
    model = torch.nn.Module.eval(__import__("tests.learn.train.digits", fromlist=["x"]).without_statistics(10))
    model.load_state_dict(saved["weights"])
    images = (torch.from_numpy(validation[0]).permute(0, 3, 1, 2) / 255 - 0.449) / 0.226
    right = (model(images).argmax(1) == torch.from_numpy(validation[1])).float().mean().item()
    assert right == pytest.approx(last["top1"], abs=0.005)


def test_small_batches_equal_a_large_one(tmp_path: Path) -> None:
    source, _ = digits(300)  # the last step has 12 images
    train(source, options(tmp_path / "one"))
    train(source, options(tmp_path / "four", batch_size=8, accumulate=4))
    assert losses(tmp_path / "four") == pytest.approx(losses(tmp_path / "one"), abs=1e-4)


def test_a_stop_anywhere_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, validation = digits(200)
    chosen: dict[str, Any] = {"policy": "randaugment", "ema": 0.9, "warmup": 1.0, "label_smoothing": 0.1}
    chosen |= {"model": "tests.learn.train.test_trainer:with_dropout", "precision": "bfloat16", "momentum": 0.9}
    seen = Seen().watch(monkeypatch)
    train(source, options(tmp_path / "whole", **chosen), validation=validation)
    whole = list(seen)
    seen.clear()
    for step in (3, 7, 14):  # in the middle, at the end of an epoch, and once more
        assert not train(source, options(tmp_path / "parts", **chosen), validation=validation, **stopped_after(step))[
            "is_done"
        ]
    assert train(source, options(tmp_path / "parts", **chosen), validation=validation)["is_done"]
    assert lines_of(tmp_path / "parts") == lines_of(tmp_path / "whole")
    assert sorted(whole[:200]) == list(range(200))
    one, other = (torch.load(tmp_path / name / "model.pt") for name in ("whole", "parts"))
    assert all(torch.equal(one["weights"][name], other["weights"][name]) for name in one["weights"])
    # Interrupted runs read ahead, but train on what the whole one trains on.
    assert seen == whole
    assert train(source, options(tmp_path / "parts", **chosen), validation=validation)["is_done"], "nothing is left"


def with_dropout(num_classes: int) -> torch.nn.Module:
    layers = (torch.nn.Conv2d(1, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten())
    return torch.nn.Sequential(*layers, torch.nn.Dropout(0.2), torch.nn.Linear(288, num_classes))


def test_what_was_logged_after_the_last_checkpoint_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = digits(200)
    train(source, options(tmp_path / "whole"))

    update = Fit._update

    def die(fit: Fit, lr: float) -> None:
        if fit.steps == 13:
            raise ZeroDivisionError
        update(fit, lr)

    with monkeypatch.context() as patched:
        patched.setattr(Fit, "_update", die)
        with pytest.raises(ZeroDivisionError):
            train(source, options(tmp_path / "parts", checkpoint_every=5))
    kept = sorted(path.name for path in (tmp_path / "parts" / "checkpoints").iterdir())
    assert len(kept) == 2
    assert kept[-1] == "step-00000010"
    assert len(losses(tmp_path / "parts")) == 12
    with open(tmp_path / "parts" / "log.jsonl", "a") as file:
        file.write('{"epoch"')
    (tmp_path / "parts" / "checkpoints" / ".step-00000012").mkdir()
    train(source, options(tmp_path / "parts"))
    assert lines_of(tmp_path / "parts") == lines_of(tmp_path / "whole")
    assert not list((tmp_path / "parts" / "checkpoints").glob(".*"))


def test_mixed_images_train_with_soft_labels(tmp_path: Path) -> None:
    source, validation = digits()
    for name, more in (("soft", {"num_classes": 10}), ("triples", {})):
        policy = tmp_path / f"{name}.json"
        policy.write_text(json.dumps(T.RandomChoice([T.MixUp(alpha=0.2, **more), T.CutMix(**more)]).to_dict()))
        train(source, options(tmp_path / name, policy=str(policy), epochs=4), validation=validation)
        assert top1(tmp_path / name) > 0.5
    # Both ways of labelling mean the same.
    assert losses(tmp_path / "soft") == pytest.approx(losses(tmp_path / "triples"), rel=1e-4)


def test_large_images_are_cropped(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 255, (70 + number, 90, 3)).astype(np.uint8) for number in range(24)]
    labels = [number % 2 for number in range(24)]
    chosen = {"model": "wrn-10-1", "size": "16x24", "epochs": 1, "batch_size": 8, "policy": "flip+crop"}
    last = train((images, labels), options(tmp_path, **chosen), validation=(images[:7], labels[:7]))
    assert last["step"] == 3
    assert round(last["top1"] * 7, 6) in range(8)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_learns_and_goes_on(tmp_path: Path, precision: str) -> None:
    source, validation = digits(256)
    chosen: dict[str, Any] = {"precision": precision, "epochs": 6}
    train(source, options(tmp_path / "whole", **chosen), validation=validation)
    train(source, options(tmp_path / "parts", **chosen), validation=validation, **stopped_after(20))
    train(source, options(tmp_path / "parts", **chosen), validation=validation)
    assert top1(tmp_path / "whole") > 0.6
    assert lines_of(tmp_path / "parts") == lines_of(tmp_path / "whole")


def test_a_processor_without_such_numbers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("variegate.learn.trainer._has_half", lambda precision: False)
    said = "this processor has no bfloat16 arithmetic; --precision float32 is faster here"
    assert notes_on(TrainOptions(policy="none", precision="bfloat16", devices="cpu")) == [said]
    assert notes_on(TrainOptions(policy="none", devices="cpu")) == []
    monkeypatch.undo()
    assert notes_on(TrainOptions(policy="none", precision="bfloat16", devices="cpu")) in ([said], [])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lr": 0.1}, "holds a training run with --lr 0.05, this one has 0.1; resume that, or choose another folder"),
        ({"model": "wrn-10-1"}, f"holds a training run with --model '{PLAIN}', this one has 'wrn-10-1'"),
        ({"batch_size": 16}, "holds a training run with --batch-size 32, this one has 16"),
        ({"policy": "trivialaugment"}, "holds a training run with --policy 'crop', this one has 'trivialaugment'"),
    ],
)
def test_a_run_goes_on_with_its_own_options(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    source, _ = digits(64)
    train(source, options(tmp_path, epochs=1))
    with pytest.raises(ResumeError, match=said):
        train(source, options(tmp_path, **{"epochs": 1, **changes}))
    with pytest.raises(ResumeError, match="holds a training run with source "):
        train(digits(96)[0], options(tmp_path, epochs=1))


def test_without_a_policy_images_are_moved_and_not_mirrored(tmp_path: Path) -> None:
    plain = replace(options(tmp_path, epochs=1), policy=None)
    (said,) = notes_on(plain)
    assert said.startswith(
        "--policy is not given: crop alone, which moves images and never mirrors them. If a mirrored"
    )
    assert "--policy flip+crop" in said
    assert said.endswith("variegate search SRC")
    train(digits(64)[0], plain)
    train(digits(64)[0], options(tmp_path / "named", epochs=1, policy="Crop"))
    settings = [json.loads((out / "train.json").read_text()) for out in (tmp_path, tmp_path / "named")]
    assert [one["policy"] for one in settings] == ["crop"] * 2
    assert losses(tmp_path) == losses(tmp_path / "named")
    assert notes_on(replace(plain, policy="none")) == notes_on(TrainOptions.from_recipe("finetune")) == []
    assert train(digits(64)[0], options(tmp_path, epochs=1))["is_done"], "a run that was given it is the same run"


def test_magnitudes_that_adapt_have_randaugment_without_a_policy(tmp_path: Path) -> None:
    chosen = replace(options(tmp_path, epochs=1), policy=None, adapt="entropy")
    assert notes_on(chosen) == ["--policy is not given: randaugment+crop, whose magnitudes adapt"]
    assert "magnitude" in train(digits(64)[0], chosen)
    with pytest.raises(ValueError, match="adapt: got 'entropy' with policy 'none', which has no magnitude to give"):
        train(digits(64)[0], replace(chosen, policy="none"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "total batch size 32; learning rate 0.05"),
        ({"batch_size": 8, "accumulate": 4}, "total batch size 32 = 8 per rank x 4 accumulated; learning rate 0.05"),
    ],
)
def test_the_total_batch_size_is_told(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    events: list[Any] = []
    train(digits(64)[0], options(tmp_path, epochs=1, **changes), on_event=events.append)
    assert [event.text for event in events if isinstance(event, Chosen)][-1] == said


def test_a_run_of_another_version_is_refused(tmp_path: Path) -> None:
    source, _ = digits(64)
    train(source, options(tmp_path, epochs=1))
    settings = json.loads((tmp_path / "train.json").read_text())
    (tmp_path / "train.json").write_text(json.dumps({**settings, "format": 2}))
    with pytest.raises(ResumeError, match="holds a training run of another version of Variegate; resume it with that"):
        train(source, options(tmp_path, epochs=1))


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ResumeError, match=r"holds files of something else \(notes.txt\)"):
        train(digits(64)[0], options(tmp_path))


def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResumeError, match=r"out: got .*/file/run, where .*/file is a file; accepted: a folder"):
        train(digits(64)[0], options(tmp_path / "file" / "run"))


@pytest.mark.parametrize("step", [1, 2])
def test_a_folder_that_is_deleted_ends_the_run(tmp_path: Path, step: int) -> None:
    """In its middle, or after the last step, when all that is left is to save it."""

    def delete(event: Any) -> None:
        if logged(event).get("step") == step:
            shutil.rmtree(tmp_path / "run")

    with pytest.raises(WriteError, match=r"/run.* cannot be written \((it was deleted, or moved|No such file)"):
        train(digits(64)[0], options(tmp_path / "run", epochs=1), on_event=delete)
    assert not (tmp_path / "run").exists()


def test_options_without_effect_are_told() -> None:
    unused = TrainOptions(policy="none", averaging="async", devices="cpu")
    assert notes_on(unused) == ["--averaging has no effect on one process; start several with torchrun"]


class Loud:
    def __reduce__(self) -> Any:
        return print, ("called",)


def test_a_damaged_checkpoint_is_named_and_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, _ = digits(64)
    train(source, options(tmp_path, epochs=2))
    latest = tmp_path / "checkpoints" / "step-00000004"
    os.truncate(latest / "rank-0.pt", 100)
    with pytest.raises(ResumeError, match=r"step-00000004: is damaged(?!.*Traceback).*from the one before"):
        train(source, options(tmp_path, epochs=2))
    torch.save({"model/weight": Loud()}, latest / "rank-0.pt")
    with pytest.raises(ResumeError, match=r"step-00000004: is damaged.*from the one before"):
        train(source, options(tmp_path, epochs=2))
    assert "called" not in capsys.readouterr().out
    (latest / "rank-0.pt").unlink()
    with pytest.raises(ResumeError, match="is damaged"):
        train(source, options(tmp_path, epochs=2))
    shutil.rmtree(latest)
    assert train(source, options(tmp_path, epochs=2))["is_done"], "the one before is there"


def test_what_a_checkpoint_says_may_be_anything(tmp_path: Path) -> None:
    source, _ = digits(64)
    train(source, options(tmp_path, epochs=2))
    facts = tmp_path / "checkpoints" / "step-00000004" / "facts.json"
    said = json.loads(facts.read_bytes())
    for change in ({"step": "4"}, {"run": [1]}, {"log": -1}, {"loader": {**said["loader"], "seed": 7}}):
        facts.write_text(json.dumps(said | change))
        with pytest.raises(
            ResumeError, match=r"step-00000004: is damaged, or no checkpoint of a training run .*before it$"
        ):
            train(source, options(tmp_path, epochs=2))
    facts.write_text(json.dumps(said))
    (tmp_path / "log.jsonl").write_text("{}\n[1]\n" + 400 * " ")
    with pytest.raises(SourceError, match=r"log\.jsonl: line 2 is damaged"):
        train(source, options(tmp_path, epochs=2))


def test_a_checkpoint_that_is_cut_off_is_told_as_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut_off(*given: Any, **more: Any) -> None:
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598")

    monkeypatch.setattr("variegate.learn.checkpoints.torch.save", cut_off)
    with pytest.raises(
        WriteError, match=r"checkpoints: cannot be written \(a file came to an end too soon; is the disk"
    ):
        train(digits(64)[0], options(tmp_path, epochs=1))


def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    source, _ = digits(256)
    with pytest.raises(
        DivergedError, match=r"the loss is (nan|inf) in step \d+ \(epoch 0\).*a lower --lr \(it is 1e\+20"
    ):
        train(source, options(tmp_path, lr=1e20, clip=0.0))
    assert all(np.isfinite(losses(tmp_path)))
    assert not list((tmp_path / "checkpoints").glob("step-*"))


def test_a_class_without_images_keeps_its_index_with_a_note(tmp_path: Path) -> None:
    images = np.zeros((16, 8, 8, 1), np.uint8)
    with pytest.warns(UserWarning, match="source: classes without images, which keep their index: 1"):
        train((images, np.array([0, 2] * 8)), options(tmp_path, batch_size=8))
    assert len(losses(tmp_path)) > 0


@pytest.mark.parametrize(
    ("labels", "changes", "error", "said"),
    [
        ([2] * 16, {}, SourceError, r"source: has images of one class \(2\), of 3; accepted: two or more"),
        ([0] * 16, {}, SourceError, r"source: has one class \(0\); accepted: two or more"),
        ([0, -1] * 8, {}, SourceError, "every image needs the number of its class"),
        ([0.5] * 16, {}, SourceError, "every image needs the number of its class"),
        ([0, 1] * 8, {"batch_size": 17}, ValueError, "batch_size: got 17, with 16 images to train; accepted: no more"),
        ([0, 1] * 8, {"model": "resnet"}, ModelError, "model: got 'resnet'; accepted: wrn-DEPTH-WIDTH"),
    ],
)
def test_what_cannot_be_trained_on(
    tmp_path: Path, labels: list[Any], changes: dict[str, Any], error: type[Exception], said: str
) -> None:
    images = np.zeros((16, 8, 8, 3), np.uint8)
    with pytest.raises(error, match=said):
        train((images, np.array(labels)), options(tmp_path, **{"batch_size": 8, **changes}))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"averaging": "periodic"}, "averaging: got 'periodic'; accepted: 'sync', 'async', or 'periodic:K'"),
        ({"averaging": "periodic:0"}, "averaging: got 'periodic:0'"),
        ({"precision": "half"}, "precision: got 'half'; accepted: 'float32', 'bfloat16', 'float16'"),
        ({"epochs": 5, "warmup": 5.0}, "warmup: got 5.0; accepted: fewer than the 5 epochs"),
        ({"ema": 1.0}, "ema: got 1.0; accepted: from 0 to below 1"),
        ({"lr": 0.0}, "lr: got 0.0; accepted: more than 0"),
        ({"optimizer": "adam"}, "optimizer: got 'adam'; accepted: 'sgd', 'adamw'"),
        ({"optimizer": "adamw", "momentum": 1.0}, "momentum: got 1.0 with adamw; accepted: from 0 to below 1"),
        ({"random_erasing": 1.5}, "random_erasing: got 1.5; accepted: a finite number from 0 to 1"),
        ({"lr_schedule": "triangle"}, "lr_schedule: got 'triangle'; accepted: 'cosine', 'step', 'linear'"),
        ({"adapt": "gap"}, "adapt: got 'gap'; accepted: 'none', 'entropy'"),
    ],
)
def test_bad_options(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TrainOptions(**given)


def test_learning_rates() -> None:
    chosen = TrainOptions(epochs=10, warmup=2, lr=1.0)
    assert [round(chosen.lr_at(epoch), 4) for epoch in (0, 1, 2, 6, 10)] == [0.01, 0.505, 1.0, 0.5, 0.0]
    linear = TrainOptions(epochs=10, warmup=2, lr=1.0, lr_schedule="linear")
    assert [round(linear.lr_at(epoch), 4) for epoch in (0, 1, 2, 6, 10)] == [0.01, 0.505, 1.0, 0.5, 0.0]
    assert [TrainOptions(averaging=one).period for one in ("sync", "periodic:8", "async")] == [0, 8, -1]


def test_a_step_has_the_rate_of_where_it_begins(tmp_path: Path) -> None:
    """By the images that were trained on before it, whatever parts it has."""
    source, _ = digits(64)
    chosen = options(tmp_path, epochs=2, batch_size=8, accumulate=2, warmup=0.5, lr_schedule="linear")
    train(source, chosen)
    rates = [line["lr"] for line in lines_of(tmp_path) if "lr" in line]
    assert rates == pytest.approx([chosen.lr_at(step / 4) for step in range(8)])


def test_any_source_and_any_schedule(tmp_path: Path) -> None:
    (images, labels), _ = digits(64)

    class Items(torch.utils.data.Dataset[Any]):
        targets = [int(label) for label in labels]  # noqa: RUF012

        def __len__(self) -> int:
            return len(images)

        def __getitem__(self, index: int) -> Any:
            return images[index], self.targets[index]

    for name, source in (("pairs", (images, labels.astype(np.uint8))), ("dataset", Items())):
        last = train(source, options(tmp_path / name, policy="pba-svhn", epochs=2, batch_size=16))
        assert (last["step"], last["unread"]) == (8, [])
    assert losses(tmp_path / "pairs") == losses(tmp_path / "dataset")


def test_a_policy_that_was_edited_is_another(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(T.RandomErasing(p=0.5).to_dict()))
    train(digits(64)[0], options(tmp_path / "out", policy=str(policy), epochs=1))
    policy.write_text(json.dumps(T.RandomErasing(p=0.6).to_dict()))
    with pytest.raises(ResumeError, match=r"with --policy '.*policy\.json \(\w{12}\)', this one has '.*policy\.json"):
        train(digits(64)[0], options(tmp_path / "out", policy=str(policy), epochs=1))


def test_a_compiled_model_learns_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the machine code, which torch's own tests have."""
    source, validation = digits(208)
    graphs = []

    def noted(graph: Any, inputs: Any) -> Any:
        graphs.append(inputs)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=noted))
    torch._dynamo.reset()
    for name in ("plain", "compiled"):
        chosen = {"epochs": 1, "ema": 0.5, "compile": name == "compiled"}
        train(source, options(tmp_path / name, **chosen), validation=validation)
    # One for six batches of 32 images, and one for the last of 16.
    assert len(graphs) == 2
    assert losses(tmp_path / "compiled") == losses(tmp_path / "plain")
    assert top1(tmp_path / "compiled") == top1(tmp_path / "plain")
