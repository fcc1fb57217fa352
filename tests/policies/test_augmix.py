"""AugMix (rows, sources, weights) and 3-Augment."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from variegate import transforms as T
from variegate.policies import AugMix, RandAugment, ThreeAugment
from variegate.program.ops import Op
from variegate.transforms import ArgumentError

ENHANCE = [Op.BRIGHTNESS, Op.SATURATION, Op.CONTRAST, Op.SHARPNESS]


def test_rows_and_sources(draw) -> None:
    program = draw(AugMix(mixture_width=4), 10)
    assert program.num_rows == 50
    assert program.num_outputs == 10
    assert program.source.tolist() == list(range(10)) * 5
    assert program.blend.target.tolist() == program.source.tolist()
    assert (program.length[:10] == 0).all()
    assert ((program.length[10:] >= 1) & (program.length[10:] <= 3)).all()


@pytest.mark.parametrize("alpha", [0.2, 1.0, 5.0])
def test_weights_sum_to_one(draw, alpha) -> None:
    program = draw(AugMix(alpha=alpha), 3000)
    weight = program.blend.weight.reshape(4, 3000)
    assert (weight >= 0).all()
    assert weight.sum(axis=0) == pytest.approx(np.ones(3000), abs=1e-6)
    # Dirichlet(a, a): mean 1/2, variance 1 / (4 (2a + 1)).
    variance = 1 / (4 * (2 * alpha + 1))
    assert abs(weight[0].mean() - 0.5) < 4 * np.sqrt(variance / 3000)
    assert abs(weight[0].var() - variance) < 0.012
    # The chains share the rest evenly on average.
    chains = weight[1:][:, weight[1:].sum(axis=0) > 0]  # a weight below float32's range is no share
    shares = chains / chains.sum(axis=0)
    assert np.abs(shares.mean(axis=1) - 1 / 3).max() < 0.03
    assert abs(shares.var() - (2 / 9) / (3 * alpha + 1)) < 0.012


def test_depth(draw) -> None:
    lengths = draw(AugMix(), 3000).length[3000:]
    counts = np.bincount(lengths, minlength=4)
    assert counts[0] == 0
    assert (np.abs(counts[1:] - 3000) < 4 * 44.8).all()
    assert set(draw(AugMix(chain_depth=5), 20).length[20:]) == {5}


def test_chains_differ_from_one_another(draw) -> None:
    program = draw(AugMix(chain_depth=3, mixture_width=2), 200)
    first, second = program.opcode[200:400], program.opcode[400:]
    assert (first == second).mean() < 0.2


def test_operations_and_severity(draw) -> None:
    program = draw(AugMix(severity=10, chain_depth=1), 5000, size=(90, 27))
    opcode, value = program.opcode[5000:, 0], program.args[5000:, 0, 0]
    counts = Counter(opcode.tolist())
    assert len(counts) == 13
    assert all(abs(n - 15_000 / 13) < 4 * 33 for n in counts.values())
    assert set(value[opcode == Op.POSTERIZE]) == {1, 2, 3, 4}
    assert set(np.abs(value[opcode == Op.TRANSLATE_X])) == {int(27 / 3 * b / 9) for b in range(10)}
    assert set(np.abs(value[opcode == Op.TRANSLATE_Y])) == {int(round(30 * b / 9, 6)) for b in range(10)}
    assert np.abs(value[opcode == Op.ROTATE]).max() == 30
    mild = draw(AugMix(severity=1, chain_depth=1), 500)
    assert (mild.args[mild.opcode[:, 0] == Op.ROTATE, 0, 0] == 0).all()


def test_without_the_enhancements(draw) -> None:
    program = draw(AugMix(all_ops=False), 1000)
    assert not np.isin(program.opcode, ENHANCE).any()
    assert np.isin(draw(AugMix(), 1000).opcode, ENHANCE).any()


def test_no_rows(draw) -> None:
    assert draw(AugMix(), 0).num_rows == 0


def test_three_augment_applies_exactly_one(draw) -> None:
    program = draw(ThreeAugment(), 6000)
    assert set(program.length) == {1}
    counts = Counter(program.opcode[:, 0].tolist())
    assert set(counts) == {Op.GRAYSCALE, Op.SOLARIZE, Op.GAUSSIAN_BLUR}
    assert all(abs(n - 2000) < 4 * 36.5 for n in counts.values())
    assert set(program.args[program.opcode[:, 0] == Op.SOLARIZE, 0, 0]) == {128}
    blurs = program.args[program.opcode[:, 0] == Op.GAUSSIAN_BLUR, 0]
    sigma = blurs[:, 2]
    assert sigma.min() >= 0.1
    assert sigma.max() <= 2.0
    assert abs(sigma.mean() - 1.05) < 4 * 0.55 / np.sqrt(len(sigma))
    assert (blurs[:, 0] % 2 == 1).all()
    assert (blurs[:, 0] >= 6 * sigma).all()


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (AugMix, {"severity": 11}, "severity=11; accepted: an integer from 1 to 10"),
        (AugMix, {"chain_depth": 0}, "chain_depth=0; accepted: an integer from 1 to 64, or -1"),
        (AugMix, {"mixture_width": 0}, "mixture_width=0"),
        (AugMix, {"alpha": 0}, "alpha=0"),
        (ThreeAugment, {"sigma": (2, 1)}, "sigma=(2, 1)"),
        (ThreeAugment, {"threshold": "x"}, "threshold='x'"),
    ],
)
def test_bad_arguments(cls, arguments, message) -> None:
    with pytest.raises(ArgumentError) as caught:
        cls(**arguments)
    assert message in str(caught.value)


def test_one_of_the_choices(draw) -> None:
    """Images that are not mixed may still get any operation."""
    for children in ([AugMix(chain_depth=1), RandAugment(1, 9, operations=["Invert"])], [AugMix(), AugMix(2)]):
        program = draw(T.OneOf(children), 200)
        sums = np.bincount(program.blend.target, weights=program.blend.weight)
        assert sums == pytest.approx(np.ones(200), abs=1e-6)
    program = draw(T.OneOf([AugMix(chain_depth=1), RandAugment(1, 9, operations=["Invert"])]), 200)
    mixed = np.bincount(program.source) > 1
    assert 0.3 < mixed.mean() < 0.7
    assert (program.length[:200] == ~mixed).all()


def test_nothing_but_geometry_follows_a_mixture(draw) -> None:
    draw(T.Compose([AugMix(), T.RandomHorizontalFlip()]), 20)
    for policy in (RandAugment(), AugMix()):
        with pytest.raises(ValueError, match="after AugMix: images are already mixed"):
            draw(T.Compose([AugMix(), policy]), 20)
