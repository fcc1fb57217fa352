"""What is drawn over pictures: where it is, that it can be seen, and that nothing else is touched."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageFont

from variegate.apps.preview.overlay import Points, ShownMask, TargetOverlay, draw_overlay
from variegate.apps.preview.sheet import Cell, draw_sheet
from variegate.apps.preview.text import NEUTRAL, Key, colors_of, ink_on

RED = (255, 0, 0)
GRAY = (128, 128, 128)
COLOURS = {"a": RED, "b": (0, 0, 255)}


def drawn(overlay: TargetOverlay, side: int = 60, shown: int = 60) -> np.ndarray:
    """The overlay of an image of ``side`` pixels on a gray picture of ``shown`` pixels."""
    picture = Image.new("RGB", (shown, shown), GRAY)
    draw_overlay(picture, overlay, (side, side), COLOURS)
    return np.asarray(picture)


def bounds(where: np.ndarray) -> tuple[int, int, int, int]:
    """Left, top, right, bottom as edges."""
    ys, xs = np.nonzero(where)
    return int(xs.min()), int(ys.min()), int(xs.max()) + 1, int(ys.max()) + 1


@pytest.mark.parametrize(("side", "shown"), [(60, 60), (28, 56), (240, 60), (1000, 60), (8, 64)])
def test_the_box_of_a_mask_is_drawn_along_its_edge(side: int, shown: int) -> None:
    unit = side // 4
    mask = np.zeros((side, side), np.uint8)
    mask[unit : 2 * unit, unit : 3 * unit] = 1
    box = np.array([[unit, unit, 3 * unit, 2 * unit]], np.float64)
    at = shown // 4
    area = drawn(TargetOverlay(areas=[ShownMask(mask, {1: "a"})]), side, shown)
    assert bounds((area != GRAY).any(-1)) == (at, at, 3 * at, 2 * at)
    lines = drawn(TargetOverlay(box, ["a"]), side, shown)
    assert bounds((lines == RED).all(-1)) == (at, at, 3 * at, 2 * at)
    # The halo is a pixel wider, and the inside is free.
    assert bounds((lines != GRAY).any(-1)) == (at - 1, at - 1, 3 * at + 1, 2 * at + 1)
    assert (lines[at + 3 : 2 * at - 3, at + 3 : 3 * at - 3] == GRAY).all()


def test_masks_let_the_picture_show_through() -> None:
    mask = np.zeros((60, 60), np.int32)
    mask[10:50, 10:50] = 300
    mask[20:30, 20:30] = 7
    seen = drawn(TargetOverlay(areas=[ShownMask(mask, {300: "a", 7: None})]))
    within = seen[40, 40].astype(int)
    assert within[0] > 128 > within[1] > 60
    assert (np.abs(seen[10, 10:50].astype(int) - RED) < 10).all()
    neutral = seen[25, 25].astype(int)
    assert (neutral > 150).all()
    assert np.ptp(neutral) < 5
    assert (drawn(TargetOverlay(areas=[ShownMask(mask, {7: "b"})]))[40, 40] == GRAY).all(), (
        "numbers without a name are nothing"
    )


def test_a_mask_of_a_large_image_has_smooth_edges() -> None:
    mask = np.zeros((400, 400), np.uint8)
    mask[:, :202] = 1  # half of a pixel of the picture, below
    seen = drawn(TargetOverlay(areas=[ShownMask(mask, {1: "a"})]), 400, 100)
    assert (seen[:, :49, 0] > 128).all()
    assert (seen[:, 52:] == GRAY).all()
    thin = np.zeros((1000, 1000), np.uint8)
    thin[500:560, 500:560] = 1
    assert bounds((drawn(TargetOverlay(areas=[ShownMask(thin, {1: "a"})]), 1000, 100) != GRAY).any(-1)) == (
        50,
        50,
        56,
        56,
    )


def test_points_seen_hidden_and_absent_differ() -> None:
    def point(visibility: float) -> np.ndarray:
        return drawn(TargetOverlay(points=[Points(np.array([[30.5, 30.5, visibility]]), "a")]), 60, 180)

    seen, hidden, absent = point(2), point(1), point(0)
    assert (absent == GRAY).all()
    assert (seen[91, 91] == RED).all()
    assert (hidden[91, 91] == GRAY).all()
    for one in (seen, hidden):
        ys, xs = np.nonzero((one != GRAY).any(-1))
        assert abs(xs.mean() - 91) < 0.5
        assert abs(ys.mean() - 91) < 0.5
        assert np.ptp(xs) <= 12


def test_points_at_the_edge_stay_on_the_picture() -> None:
    corners = np.array([[0, 0, 2], [60, 0, 2], [0, 60, 1], [60, 60, 2]], np.float64)
    seen = drawn(TargetOverlay(points=[Points(corners, None, [(0, 3)])]))
    assert (seen[:2, :2] != GRAY).any()
    assert (seen[-2:, -2:] != GRAY).any()
    assert (np.abs(seen[30, 30].astype(int) - NEUTRAL) < 60).all(), "on the line between"


def test_names_stay_on_the_picture_and_apart() -> None:
    boxes = np.array([[0, 0, 30, 30], [170, 0, 200, 200], [60, 60, 150, 150]], np.float64)
    bare = drawn(TargetOverlay(boxes, ["a", "a", "b"]), 200, 40)
    assert (bare[22:38, 22:28] == bare[2, 2]).all() or (bare[15, 10] == GRAY).all()
    for names in (["a", "b", "a"], ["a" * 80, "b", "a"]):
        colours = {"a": RED, "b": (0, 0, 255), "a" * 80: RED}
        picture = Image.new("RGB", (200, 200), GRAY)
        draw_overlay(picture, TargetOverlay(boxes, names), (200, 200), colours)
        ink = (np.asarray(picture) == ink_on(RED)).all(-1)
        assert ink.any()


def test_many_names_are_left_to_the_key() -> None:
    boxes = np.array([[x, y, x + 18, y + 18] for x in range(0, 200, 20) for y in range(0, 200, 20)], np.float64)
    seen = drawn(TargetOverlay(boxes, ["a"] * len(boxes)), 200, 200)
    # Thin lines, and nothing in the boxes.
    assert (seen[5:12, 5:12] == GRAY).all()
    assert (seen == RED).all(-1).sum() == 100 * (4 * 18 - 4)


def test_the_key_has_every_class_in_lines_that_fit() -> None:
    font = ImageFont.load_default(15)
    key = Key(colors_of(f"class number {n}" for n in range(30)), font, 300)
    entries = [entry for line in key.lines for entry in line]
    assert [name for _, name, _ in entries] == [*(f"class number {n}" for n in range(24)), "and 6 more"]
    for line in key.lines:
        assert all(x + 18 + font.getlength(name) <= 301 for x, name, _ in line)
    assert Key({}, font, 300).lines == []
    [[(_, name, _)]] = Key({"w" * 300: RED}, font, 300).lines
    assert name.endswith("...")


def test_a_sheet_has_a_key_where_there_are_classes() -> None:
    image = np.full((50, 50, 3), 128, np.uint8)
    box = TargetOverlay(np.array([[10.0, 10, 40, 40]]), ["ant"])
    plain, keyed = (draw_sheet([[Cell(image, "x", overlay=one)]], "Title", []) for one in (None, box))
    assert keyed.height > plain.height
    colour = colors_of(["ant"])["ant"]
    places = (np.asarray(keyed) == colour).all(-1)
    assert places[: keyed.height - plain.height + 60].any(), "the swatch"
    assert not (np.asarray(plain) == colour).all(-1).any()
