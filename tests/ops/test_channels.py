"""Colour temperature and dropped channels: their tables, and whom they leave alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import oracle
from variegate import transforms as T
from variegate.ops.color import WHITE_KELVIN, chromaticity, light, temperature_curves

# x and y of the Planckian locus (CIE 1931), as tables of it have them; 2,856 K is illuminant A.
LOCUS = {2000: (0.5267, 0.4133), 2856: (0.4476, 0.4074), 5000: (0.3451, 0.3516), 10000: (0.2807, 0.2884)}


@pytest.mark.parametrize("kelvin", list(LOCUS))
def test_light_is_a_black_bodys(kelvin: int) -> None:
    # Of the cubic approximation a thousandth is missing.
    assert chromaticity(kelvin) == pytest.approx(LOCUS[kelvin], abs=0.001)


def test_light_grows_bluer_without_a_jump() -> None:
    lights = np.array([light(float(kelvin)) for kelvin in range(1667, 25001, 7)])
    steps = np.diff(lights, axis=0)
    assert steps[:, 0].max() < 0 <= steps[:, 2].min()
    # Pieces of the approximation meet at 2,222 K and 4,000 K.
    assert np.abs(steps).max() < 0.06


def test_daylight_changes_nothing() -> None:
    np.testing.assert_array_equal(temperature_curves(WHITE_KELVIN).round(), np.tile(np.arange(256), (3, 1)))


def test_warm_light_is_redder_and_gray_images_stay(draw: Any) -> None:
    img_HWC = np.full((3, 2, 3), 100, np.uint8)
    warm, cold = (oracle.run(draw(T.ColorTemperature(k), [(3, 2, 3)]), [img_HWC])[0][:, 0, 0] for k in (3000, 12000))
    assert warm[0] > 100 == warm[1] > warm[2]
    assert cold[0] < 100 == cold[1] < cold[2]
    assert draw(T.ColorTemperature(3000), [(3, 2, 1)]).length[0] == 0


def test_probability_of_dropping(draw: Any) -> None:
    hit = draw(T.ChannelDropout(p=0.25), 2000).length.mean()
    assert abs(hit - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 2000)
