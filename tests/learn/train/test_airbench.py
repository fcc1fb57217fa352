"""The network after airbench94: its first layer whitens, what begins as what, and how it is scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.learn.train.digits import logged, losses, options
from variegate.learn.models import Airbench, ModelError, build_model, whitening_filters
from variegate.learn.trainer import train


def correlated(number: int = 200) -> torch.Tensor:
    """Images whose neighbouring pixels and channels are alike."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(number, 1, 14, 14, generator=generator)
    smooth = torch.nn.functional.avg_pool2d(noise, 3, 1) * 3
    return smooth * torch.tensor([1.0, 0.7, 0.2])[:, None, None] + 0.3 * torch.randn(
        number, 3, 12, 12, generator=generator
    )


def covariance_of(responses: torch.Tensor) -> torch.Tensor:
    return torch.cov(responses.transpose(0, 1).flatten(1))


def test_whitened_patches_are_uncorrelated_with_a_variance_of_one() -> None:
    images = correlated()
    before = covariance_of(torch.nn.functional.unfold(images, 2))
    assert (before - torch.diag(before.diag())).abs().max() > 0.3
    after = covariance_of(torch.nn.functional.conv2d(images, whitening_filters(images, 2)))
    # What is added to variances, of which the least is 0.09, takes up to 0.6 % of one.
    assert torch.allclose(after, torch.eye(12), atol=0.01)


def test_the_first_layer_has_both_signs_and_is_not_learnt() -> None:
    images, model = correlated(), Airbench(0.1, 5)
    model.initialize(images)
    responses = model.whiten(images)
    assert torch.allclose(responses[:, :12], -responses[:, 12:])
    assert torch.allclose(covariance_of(responses[:, :12]), torch.eye(12), atol=0.01)
    assert not model.whiten.weight.requires_grad
    assert model.whiten.bias is not None
    assert model.whiten.bias.requires_grad


def test_patches_of_one_colour_divide_by_nothing() -> None:
    filters = whitening_filters(torch.ones(4, 3, 9, 9), 2)
    assert filters.isfinite().all()


def test_convolutions_begin_by_handing_on() -> None:
    block = Airbench(1.0, 10).blocks[1]  # type: ignore[index]
    images = torch.randn(2, 64, 6, 6)
    assert torch.equal(block.conv1(images)[:, :64], images)  # type: ignore[operator]


def test_shifts_move_64_times_as_far_as_their_gradient() -> None:
    """As by a learning rate of their own."""
    torch.manual_seed(0)
    norm: Any = Airbench(0.1, 5).blocks[0].norm1  # type: ignore[index]
    images = torch.randn(4, 6, 3, 3)
    before = norm(images).mean((0, 2, 3)).detach()
    norm(images).sum().backward()
    with torch.no_grad():
        norm.shift -= 0.01 * norm.shift.grad
    moved = before - norm(images).mean((0, 2, 3))
    # The gradient of a shift is the number of values that it is added to.
    assert torch.allclose(moved, torch.full((6,), 64 * 0.01 * 4 * 9), rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "millions"), [("airbench-94", 1.97), ("airbench-94x0.5", 0.5), ("airbench-94x1.0", 1.97)]
)
def test_widths_by_name(name: str, millions: float) -> None:
    model = build_model(name, 10)
    assert sum(weight.numel() for weight in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.02)
    assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
    assert build_model(name, 4, 1)(torch.zeros(1, 1, 9, 20)).shape == (1, 4)


def test_widths_that_leave_nothing() -> None:
    with pytest.raises(ModelError, match=r"model airbench-94x0.001: width: got 0.001; accepted: more, such as 0.25"):
        build_model("airbench-94x0.001", 10)


def striped(number: int) -> Any:
    rng = np.random.default_rng(number)
    pixels = rng.integers(60, 120, (number, 12, 12, 3)).astype(np.uint8)
    pixels[::2, ::2] += 90
    return pixels, np.arange(number) % 2


def test_it_is_initialised_once_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []
    initialize = Airbench.initialize
    monkeypatch.setattr(Airbench, "initialize", lambda model, images: (seen.append(images), initialize(model, images)))
    chosen: dict[str, Any] = {
        "model": "airbench-94x0.05",
        "batch_size": 16,
        "ema": 0.9,
        "lr": 0.2,
        "policy": "flip+crop",
    }
    train(striped(64), options(tmp_path / "whole", **chosen), validation=striped(32))
    (images,) = seen
    assert images.shape == (64, 3, 12, 12)
    assert images.mean().abs() < 2
    kept = torch.load(tmp_path / "whole" / "model.pt")["weights"]
    assert torch.equal(kept["whiten.weight"][:12], whitening_filters(images, 2))

    class StopError(Exception):
        pass

    def stop(event: Any) -> None:
        if logged(event).get("step") == 8:
            raise StopError

    monkeypatch.setattr("variegate.learn.progress._TELL_SECONDS", 0.0)
    with pytest.raises(StopError):
        train(striped(64), options(tmp_path / "parts", checkpoint_every=3, **chosen), on_event=stop)
    assert len(seen) == 2
    train(striped(64), options(tmp_path / "parts", **chosen), validation=striped(32))
    assert len(seen) == 2
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    again = torch.load(tmp_path / "parts" / "model.pt")["weights"]
    assert all(torch.equal(kept[name], again[name]) for name in kept)
