"""Layers over the image: what each transform draws, on the reference executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import variegate as vg
from tests.images import gray, photo
from variegate import transforms as T

GRAY_128 = np.full((96, 128, 3), 128, np.uint8)
WEATHER = (
    *(T.RandomFog(p=1.0), T.RandomRain(p=1.0), T.RandomSnow(p=1.0), T.RandomSnow(method="texture", p=1.0)),
    *(T.RandomSunFlare(p=1.0), T.RandomSunFlare(method="physics_based", p=1.0), T.RandomShadow(p=1.0)),
    *(T.RandomGravel(p=1.0), T.Spatter(p=1.0), T.Spatter(mode="mud", p=1.0), T.Illumination(p=1.0)),
    *(T.Illumination("corner", p=1.0), T.Illumination("gaussian", p=1.0, num_spots_range=3)),
)


def done(t: T.Transform, image: npt.NDArray[np.uint8] = GRAY_128, sample: int = 0, epoch: int = 0) -> Any:
    augmenter = vg.Augmenter(t, device="oracle", layout="NHWC", seed=3)
    return np.asarray(augmenter([image], ids=[sample], epoch=epoch)[0]).astype(np.int32)


@pytest.mark.parametrize("t", WEATHER, ids=repr)
def test_one_pass_and_no_more(t: T.Transform) -> None:
    """Layers are laid within the pass of what is around them, and geometry after them starts another."""
    chain = T.Compose([T.RandomHorizontalFlip(1.0), T.RandomRotation((9, 9)), T.Invert(), t, T.Posterize(4)])
    augmenter = vg.Augmenter(chain, device="cpu", seed=3)
    passes = augmenter.explain(0, size=(40, 56)).count("apart from")
    assert passes == (1 if isinstance(t, T.RandomRain) else 0)  # for its blur
    moved = vg.Augmenter(T.Compose([t, T.RandomRotation((9, 9))]), device="cpu", seed=3)
    assert "moves what" in moved.explain(0, size=(40, 56))


def test_illumination_is_the_formula() -> None:
    """Within a level, of AlbumentationsX's: 0.2 of 255 along the angle; a factor of 1.2 in the middle of a spot."""
    x = np.arange(128) / 127
    right = done(T.Illumination("linear", 0.2, "brighten", 0.0, p=1.0))[40, :, 1]
    assert np.abs(right - (128 + 51 * x)).max() <= 1
    down = done(T.Illumination("linear", 0.2, "darken", 90.0, p=1.0))[:, 40, 1]
    assert np.abs(down - (128 - 51 * np.arange(96) / 95)).max() <= 1
    spot = done(T.Illumination("gaussian", p=1.0, gaussian_spots=[(0.5, 0.5, 0.2, -0.2)]))
    y, x = np.mgrid[:96, :128]
    away = ((x - 63.5) / 128) ** 2 + ((y - 47.5) / 128) ** 2
    assert np.abs(spot[..., 0] - 128 * (1 - 0.2 * np.exp(-away / 0.08))).max() <= 1
    corner = done(T.Illumination("corner", 0.5, "brighten", p=1.0))[..., 0]
    ends = sorted([corner[0, 0], corner[0, -1], corner[-1, 0], corner[-1, -1]])
    assert ends[0] == 128
    assert ends[3] == 192


def test_bleaching_is_hls_lightness() -> None:
    """Of a gray ramp AlbumentationsX makes these; and hue and saturation stay."""
    ramp = np.arange(256, dtype=np.uint8).reshape(8, 32)[..., None].repeat(3, axis=2)
    levels = done(T.RandomSnow(2.5, 0.2, p=1.0), ramp)[..., 0].reshape(-1)
    expected = np.where(np.arange(256) < 110.4, np.minimum(np.arange(256) * 2.5, 255), np.arange(256))
    assert np.abs(levels - expected).max() <= 1
    dark = np.array([[[60, 20, 40]]], np.uint8).repeat(8, axis=0)
    assert done(T.RandomSnow(2.5, 0.2, p=1.0), dark)[0, 0].tolist() == [150, 50, 100]


def test_where_layers_lie() -> None:
    shadow = done(T.RandomShadow((0.25, 0.5, 0.75, 1.0), 2, shadow_intensity_range=0.5, p=1.0))[..., 0]
    assert (shadow[:48] == 128).all()
    assert (shadow[:, :32] == 128).all()
    assert (shadow[:, 96:] == 128).all()
    assert shadow.min() in (32, 64)
    gravel = done(T.RandomGravel((0.0, 0.0, 0.5, 1.0), 4, p=1.0))
    assert (gravel[:, 64:] == 128).all()
    assert 50 < (gravel[:, :64] != 128).any(axis=2).sum() < 4000
    sun = done(T.RandomSunFlare((0.7, 0.1, 0.8, 0.2), 40, num_flare_circles_range=0, p=1.0))[..., 0]
    y, x = np.unravel_index(sun.argmax(), sun.shape)
    assert 88 <= x <= 104
    assert 8 <= y <= 21
    assert sun[90, 10] == 128


def test_rain_darkens_what_it_does_not_cover() -> None:
    """Within the blur, or by itself."""
    for blur_value in (7, 1):
        assert np.median(done(T.RandomRain(blur_value=blur_value, brightness_coefficient=0.7, p=1.0))) in (89, 90)


def test_rain_slants_and_types_differ() -> None:
    black = np.zeros((96, 128, 3), np.uint8)

    def drops(**given: Any) -> Any:
        return done(T.RandomRain(blur_value=1, brightness_coefficient=1.0, p=1.0, **given), black)[..., 0]

    light, default, heavy, most = (
        int((drops(rain_type=name) > 0).sum()) for name in ("drizzle", "default", "heavy", "torrential")
    )
    assert 0 < light < default < heavy < most
    y, x = np.nonzero(drops(slant_range=30.0, drop_length=60, rain_type="drizzle"))
    left = drops(slant_range=-30.0, drop_length=60, rain_type="drizzle")
    assert np.array_equal(left > 0, drops(slant_range=-30.0, drop_length=60, rain_type="drizzle") > 0)
    assert len(y) == len(x) > 100


def test_gray_images_see_the_luma_of_colors() -> None:
    sticker = np.zeros((8, 8, 4), np.uint8)
    sticker[...] = 255, 0, 0, 255
    t = T.Overlay(sticker, place="cover", p=1.0)
    assert (done(t, gray(20, 30)) == 76).all()
    assert (done(t, photo(20, 30)) == [255, 0, 0]).all()


@pytest.mark.parametrize("blend", ["alpha", "multiply", "screen", "add"])
def test_own_pictures_are_blended(blend: Any) -> None:
    """A picture of the image's size, at its place, against floats."""
    rng = np.random.default_rng(1)
    picture, image = rng.integers(0, 256, (24, 32, 4), dtype=np.uint8), photo(24, 32)
    made = done(T.Overlay(picture, place="cover", blend=blend, opacity=0.8, p=1.0), image)
    alpha, colour, level = picture[..., 3:] / 255 * 0.8, picture[..., :3] / 255, image / 255
    blended = {"alpha": colour, "multiply": level * colour, "screen": 1 - (1 - level) * (1 - colour)}.get(blend)
    expected = level + alpha * colour if blended is None else level + alpha * (blended - level)
    assert np.abs(made - 255 * np.clip(expected, 0, 1)).max() <= 1.6


def test_own_pictures_lie_within_the_image_at_their_scale() -> None:
    picture = np.full((10, 40, 4), 255, np.uint8)
    for sample in range(20):
        made = done(T.Overlay(picture, (0.25, 0.75), p=1.0), sample=sample)[..., 0]
        rows, columns = np.nonzero((made > 200).any(axis=1))[0], np.nonzero((made > 200).any(axis=0))[0]
        assert 22 <= len(columns) <= 74  # a pixel of the border is half covered
        assert len(rows) == pytest.approx(len(columns) / 4, abs=2)
    centred = done(T.Overlay(picture, 0.5, (0.25, 0.5), p=1.0))[..., 0] > 200
    assert np.nonzero(centred.any(axis=0))[0].mean() == pytest.approx(32, abs=1.5)
    assert np.nonzero(centred.any(axis=1))[0].mean() == pytest.approx(48, abs=1.5)


def test_transparent_pixels_have_no_fringes() -> None:
    """A white disc around which the file says black."""
    y, x = np.mgrid[-15.5:16, -15.5:16]
    disc = np.zeros((32, 32, 4), np.uint8)
    disc[np.hypot(x, y) < 12] = 255
    for scale in (0.15, 0.6):
        assert done(T.Overlay(disc, scale, (0.5, 0.5), p=1.0), np.full((96, 96, 3), 255, np.uint8)).min() == 255


def test_own_pictures_are_described(tmp_path: Any) -> None:
    picture = np.random.default_rng(2).integers(0, 256, (5, 7, 4), dtype=np.uint8)
    Image.fromarray(picture).save(tmp_path / "lens.png")
    t = T.Overlay([str(tmp_path / "lens.png"), picture[..., :3]], p=1.0)
    again = T.from_dict(t.to_dict())
    assert again == t
    assert np.array_equal(again.images[0].array(), picture)  # type: ignore[attr-defined]
    assert repr(t) == "Overlay((<picture of 5x7 pixels>, <picture of 5x7 pixels>), p=1.0)"
