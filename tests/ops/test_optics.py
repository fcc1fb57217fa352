"""Lenses out of focus, zooming, with fringes; glass; erosion and dilation: arguments, draws, and how they look."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import variegate as vg
from tests.images import gray, photo
from variegate import transforms as T
from variegate.program.ops import Op


def made(t: T.Transform, image: Any, device: str = "cpu") -> Any:
    return vg.Augmenter(t, device=device, layout="NHWC")([image], ids=[3])[0].numpy()


def args_of(t: T.Transform, count: int = 64) -> np.ndarray[Any, Any]:
    return vg.Augmenter(t).program([(40, 50)] * count, ids=np.arange(count)).args[:, 0]


def test_a_point_out_of_focus_is_a_disc() -> None:
    img = np.zeros((41, 41), np.uint8)
    img[20, 20] = 255
    x, y = np.meshgrid(np.arange(41) - 20, np.arange(41) - 20)
    for radius in (1, 3):
        disc = made(T.Defocus(radius, 0.0), img)[..., 0]
        inside = x**2 + y**2 <= radius**2
        np.testing.assert_allclose(disc[inside], 255 / inside.sum(), atol=0.51)
        assert not disc[~inside].any()
    soft = made(T.Defocus(3, 2.0), img)[..., 0]
    assert 0 < soft[20, 24] < soft[20, 20]
    flat = np.full((9, 9, 3), 255, np.uint8)
    for radius in (1, 8, 13):
        np.testing.assert_array_equal(made(T.Defocus(radius, 1.0), flat), flat)


def test_zooms_are_those_of_the_range() -> None:
    """Copies at 1, 1 + step and so on below the greatest factor; the first is the image."""
    assert args_of(T.ZoomBlur(1.31, 0.01))[0, :2].tolist() == pytest.approx([30, 0.01])
    assert args_of(T.ZoomBlur(1.1, 0.03))[0, 0] == 3
    most, step = args_of(T.ZoomBlur(4.0, 0.01))[0, :2]
    assert most == 30
    assert step == pytest.approx(3 / 31)
    np.testing.assert_array_equal(made(T.ZoomBlur(1.0, 0.5), photo(20, 30)), photo(20, 30))
    drawn = args_of(T.ZoomBlur())
    assert len(set(drawn[:, 0].tolist())) > 8
    assert ((drawn[:, 1] >= 0.01) & (drawn[:, 1] <= 0.03)).all()


def test_signs_of_fringes_follow_the_mode() -> None:
    for mode, same in (("green_purple", True), ("red_blue", False)):
        args = args_of(T.ChromaticAberration((-0.1, 0.1), (-0.2, 0.2), mode))  # type: ignore[arg-type]
        assert ((np.sign(args[:, 0]) == np.sign(args[:, 2])) == same).all()
        np.testing.assert_array_equal(np.sign(args[:, :4:2]), np.sign(args[:, 1:4:2]))
        assert np.abs(args[:, 0]).max() > 0.08
        assert np.abs(args[:, 1]).max() > 0.16
    signs = np.sign(args_of(T.ChromaticAberration(mode="random"))[:, :4:2]).prod(axis=1)
    assert set(signs.tolist()) == {1, -1}
    np.testing.assert_array_equal(made(T.ChromaticAberration(1.0, 1.0), gray(20, 30)), gray(20, 30)[..., :1])


def test_glass_is_blurred_scattered_and_blurred_again() -> None:
    program = vg.Augmenter(T.GlassBlur(0.7, 4, 2)).program([(40, 50)], ids=[1])
    ops = [op for op, _ in program.operations(0)]
    assert ops == [Op.GAUSSIAN_BLUR, Op.SCATTER, Op.GAUSSIAN_BLUR]
    assert program.args[0, 0, :4].tolist() == [5, 5, 0.7, 0.7]
    assert [op for op, _ in vg.Augmenter(T.GlassBlur(0, 4)).program([(9, 9)], ids=[1]).operations(0)] == [Op.SCATTER]
    two = [vg.Augmenter(T.GlassBlur(), seed=s)([photo(30, 40)], ids=[i])[0].numpy() for s, i in ((0, 0), (0, 1))]
    assert (two[0] != two[1]).any()


def test_dilation_makes_lighter_and_erosion_darker() -> None:
    img = photo(40, 50)
    assert (made(T.Morphological(3), img) >= img).all()
    assert (made(T.Morphological(3, "erosion"), img) <= img).all()
    inverted = 255 - made(T.Morphological((4, 7), "erosion"), 255 - img)
    np.testing.assert_array_equal(inverted, made(T.Morphological((4, 7)), img))
    np.testing.assert_array_equal(made(T.Morphological(1), img), img)
