"""Contact sheets: where things are drawn, and that they show what ``augment`` writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFont

from tests.programs import program_of, step
from variegate import transforms as T
from variegate.apps.preview import check_out, policy_sheet, sweep_sheet, sweepable
from variegate.apps.preview.choosing import choose_images
from variegate.apps.preview.rows import StrengthSweep, captions, sample_rows, sweep_of, sweep_rows
from variegate.apps.preview.screen import for_screen
from variegate.apps.preview.sheet import GAP, MARGIN, PAPER, SCREEN, Cell, draw_sheet
from variegate.apps.preview.text import wrap, wrap_name
from variegate.data.base import SourceError
from variegate.data.folder import open_folder
from variegate.decode import read_image
from variegate.decode.depth import note_once
from variegate.errors import DecodeError
from variegate.jobs.arguments import build_transform
from variegate.jobs.augment import Expansion, Plan
from variegate.jobs.engine import Engine
from variegate.ops.matrices import inverse_affine_of, perspective_coefficients
from variegate.program import describe
from variegate.program.depth import Depth
from variegate.program.ops import Op

FONT = ImageFont.load_default(14)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    for n in range(6):
        path = root / "abc"[n % 3] / f"{n}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        across = Image.linear_gradient("L").resize((60 + n, 48))
        Image.merge("RGB", [across, across.rotate(180), Image.radial_gradient("L").resize(across.size)]).save(path)
    return root


def test_cells_lie_side_by_side_without_overlap() -> None:
    red = np.full((50, 100, 3), (200, 0, 0), np.uint8)
    sheet = np.asarray(draw_sheet([[Cell(red, "one"), Cell(red, "two", ["x" * 200])]] * 2, "Title", ["note"], cell=100))
    assert sheet.shape[1] == 2 * MARGIN + 200 + GAP
    is_red = (sheet == (200, 0, 0)).all(-1)
    columns = np.flatnonzero(is_red.any(0))
    assert columns.tolist() == [*range(MARGIN, MARGIN + 100), *range(MARGIN + 100 + GAP, MARGIN + 200 + GAP)]
    assert is_red.sum() == 4 * 50 * 100
    # Text keeps inside its own column, so the gap and the margins stay blank below the heading.
    below = np.flatnonzero(is_red.any(1))[-1] + 2
    for start in (0, MARGIN + 101, MARGIN + 200 + GAP + 1):
        width = GAP - 2 if start == MARGIN + 101 else MARGIN - 2
        assert (sheet[below:, start : start + width] == PAPER).all()


def test_pictures_keep_their_proportions_and_small_ones_their_pixels() -> None:
    checks = (np.indices((8, 16)).sum(0) % 2 * 255).astype(np.uint8)
    sheet = np.asarray(draw_sheet([[Cell(checks, "gray")]], "t", [], cell=100))
    black = (sheet == 0).all(-1)
    assert black.sum() == 64 * 36  # 16 x 8 pixels, each six by six
    tall = np.zeros((400, 100, 3), np.uint8)
    ys, xs = np.nonzero((np.asarray(draw_sheet([[Cell(tall, "tall")]], "t", [], cell=100)) == 0).all(-1))
    assert (np.ptp(ys) + 1, np.ptp(xs) + 1) == (100, 25)


def test_text_is_wrapped_to_its_width() -> None:
    text = "Rotate -9.00, ResizedCrop 304x321 at 69,31 and_a_very_long_word_without_any_space_in_it_at_all"
    lines = wrap(text, FONT, 120)
    assert all(FONT.getlength(line) <= 120 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert lines[0] == "Rotate -9.00,"
    assert wrap("", FONT, 100) == []


def test_rows_show_the_pixels_that_augment_writes(photos: Path, tmp_path: Path) -> None:
    transform = build_transform("randaugment", (32, 32))
    source = open_folder(photos)
    plan = Plan(source, transform, copies=2, seed=3, epoch=1, format="png")
    Expansion(plan, tmp_path / "out", Engine(["cpu:0"], "thread", num_threads=1)).run()
    chosen = choose_images(photos, 3)
    for image, row in zip(chosen.images, sample_rows(chosen, transform, range(2), seed=3, epoch=1), strict=True):
        assert row[0].lines == [f"original, {image.img_HWC.shape[1]} x 48"]
        for copy, cell in enumerate(row[1:]):
            assert cell.title == f"copy {copy}"
            written = read_image(tmp_path / "out" / f"{Path(image.name).with_suffix('')}_{copy}.png")
            np.testing.assert_array_equal(cell.img_HWC, written)


def test_views_stand_side_by_side(photos: Path) -> None:
    chosen = choose_images(photos, 2)
    end = T.Normalize(0.5, 0.5)
    views = T.MultiView([T.Compose([T.Resize((8, 9)), T.Invert(), end]), T.Compose([T.CenterCrop(5), end])], [1, 2])
    for image, row in zip(chosen.images, sample_rows(chosen, views, range(2), seed=3, epoch=1), strict=True):
        assert [cell.title for cell in row[1:4]] == [
            "copy 0, group 0",
            "copy 0, group 1, view 0",
            "copy 0, group 1, view 1",
        ]
        assert [cell.img_HWC.shape for cell in row[1:]] == [(8, 9, 3), (5, 5, 3), (5, 5, 3)] * 2
        assert "Invert" in row[1].lines
        top, left = round((image.img_HWC.shape[0] - 5) / 2), round((image.img_HWC.shape[1] - 5) / 2)
        np.testing.assert_array_equal(row[2].img_HWC, image.img_HWC[top : top + 5, left : left + 5])


def test_images_are_spread_and_bad_ones_passed_over(photos: Path) -> None:
    chosen, bad = choose_images(photos, 3)[:2]
    assert [c.name for c in chosen] == ["a/0.png", "b/1.png", "c/2.png"]
    assert bad == []
    (photos / "b/1.png").write_bytes(b"")
    chosen, bad = choose_images(photos, 3)[:2]
    assert [c.name for c in chosen] == ["a/0.png", "b/4.png", "c/2.png"]
    assert [Path(error.path).name for error in bad] == ["1.png"]
    assert len(choose_images(photos, 50).images) == 5


def test_a_single_image_will_do(photos: Path) -> None:
    sheet = policy_sheet(photos / "a/0.png", "none", samples=2)
    assert sheet.num_images == 1
    (photos / "a/0.png").write_text("hello")
    with pytest.raises(DecodeError, match="not an image"):
        policy_sheet(photos / "a/0.png", "none")


def test_nothing_readable_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("hello")
    with pytest.raises(SourceError, match=r"none of 1 image can be read; .*not an image"):
        policy_sheet(tmp_path, "none")
    with pytest.raises(SourceError, match="no such file or folder"):
        policy_sheet(tmp_path / "gone", "none")


# -- sweeps ------------------------------------------------------------------------------------------------------


def test_signed_sweeps_run_through_zero() -> None:
    assert sweep_of("rotate", 7).magnitudes == pytest.approx([-30, -20, -10, 0, 10, 20, 30])
    assert sweep_of("Brightness", 3).magnitudes == pytest.approx([0.1, 1, 1.9])
    assert sweep_of("Posterize", 9).magnitudes == [7, 6, 5, 4]
    assert sweep_of("Equalize", 5).magnitudes == [0]


@pytest.mark.parametrize(
    ("name", "label"),
    [("Rotate", "Rotate 0"), ("Brightness", "Brightness 1"), ("Posterize", "Posterize 8"), ("Gamma", "Gamma 1")],
)
@pytest.mark.parametrize("steps", [5, 6])
def test_the_first_picture_of_a_sweep_is_the_identity(photos: Path, name: str, label: str, steps: int) -> None:
    chosen = choose_images(photos, 1)
    sweep = sweep_of(name, steps)
    first = sweep_rows(chosen, sweep, seed=0)[0][0]
    assert first.lines[-1] == f"identity: {label}"
    # It would be: the operation with that argument gives the same picture.
    same = sweep_rows(chosen, StrengthSweep(name, [sweep.identity, sweep.identity]), seed=0)[0][1]  # type: ignore[list-item]
    np.testing.assert_array_equal(same.img_HWC, first.img_HWC)
    # An even number of steps is spread around it, so that nothing is shown twice.
    assert (sweep.identity in sweep.magnitudes) == (steps == 5 and name != "Posterize")
    assert len(sweep.magnitudes) == (4 if name == "Posterize" else steps)


@pytest.mark.parametrize("name", sweepable())
def test_an_identity_changes_nothing(photos: Path, name: str) -> None:
    sweep = sweep_of(name, 3)
    if sweep.identity is None or len(sweep.magnitudes) == 1:
        pytest.skip("it has none")
    chosen = choose_images(photos, 1)
    first, same = sweep_rows(chosen, StrengthSweep(name, [sweep.identity] * 2), seed=0)[0][:2]
    np.testing.assert_array_equal(same.img_HWC, first.img_HWC)


def test_translations_are_fractions_of_the_side() -> None:
    sweep = sweep_of("TranslateX", 3)
    assert sweep.identity == 0
    assert [sweep.argument(i, 100, 331) for i in range(3)] == [-150, 0, 150]


def test_unknown_operation_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"sweep: got 'Rotat'; accepted: .*Rotate.*; did you mean 'Rotate'\?$"):
        sweep_of("Rotat", 3)


@pytest.mark.parametrize("name", sweepable())
def test_every_operation_can_be_swept(photos: Path, name: str) -> None:
    chosen = choose_images(photos, 1)
    row = sweep_rows(chosen, sweep_of(name, 3), seed=0)[0]
    assert len(row) in (2, 4)
    assert all(name in cell.title for cell in row[1:]), [cell.title for cell in row]
    if len(row) == 4:
        assert len({cell.img_HWC.tobytes() for cell in row[1:]}) > 1


@pytest.mark.parametrize(
    ("name", "kind"), [("a.png", "PNG"), ("a.jpg", "JPEG"), ("a.JPEG", "JPEG"), ("a.webp", "WEBP")]
)
def test_a_sheet_is_what_its_name_says(photos: Path, tmp_path: Path, name: str, kind: str) -> None:
    sheet = sweep_sheet(photos, "Rotate", images=2, steps=3)
    sheet.save(tmp_path / "new" / name)
    assert Image.open(tmp_path / "new" / name).format == kind


@pytest.mark.parametrize("name", ["a.gif", "a", "a.png.txt", "folder.png"])
def test_other_names_are_refused(photos: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ValueError, match=r"out: got .*; accepted: a file that ends in \.png, \.jpg, \.jpeg, \.webp"):
        check_out(tmp_path / name)


# -- what fits -----------------------------------------------------------------------------------------------------


def test_a_sheet_fits_on_a_screen(photos: Path) -> None:
    picture = policy_sheet(photos, "randaugment", size="160").picture
    assert picture.width <= SCREEN[0]
    assert picture.height <= SCREEN[1]
    assert policy_sheet(photos, "none", images=6, samples=9).num_images == 6
    assert sweep_sheet(photos, "Rotate", images=1, steps=1, cell=400).picture.width > 800


# -- captions ------------------------------------------------------------------------------------------------------


def test_what_all_chains_begin_with_is_written_once() -> None:
    crop = {"op": "ResizedCrop", "top": 1, "left": 2, "height": 30, "width": 40, "out_height": 8, "out_width": 8}
    rotate = {"op": "Rotate", "angle": 5}
    chains = [
        {"weight": 0.6, "operations": [crop]},
        {"weight": 0.3, "operations": [crop, rotate]},
        {"weight": 0.1, "operations": [crop, rotate, {"op": "Invert"}]},
    ]
    assert captions([{"op": "Blend", "chains": chains}]) == [
        "ResizedCrop 40x30 at 2,1",
        "blend of 3:",
        "60% no operation",
        "30% Rotate 5",
        "10% Rotate 5, Invert",
    ]
    assert captions([rotate]) == ["Rotate 5"]
    assert captions([]) == ["unchanged"]


def test_matrices_are_written_in_words() -> None:
    def words(op: Op, *args: float) -> list[str]:
        program = program_of([[step(op, *args)]], [np.zeros((40, 60, 3), np.uint8)])
        return captions(describe.operations_of(program, 0, in_words=True))

    def affine(angle: float, translate: tuple[int, int], scale: float, shear: tuple[float, float]) -> list[str]:
        return words(Op.AFFINE, *inverse_affine_of((30.0, 20.0), angle, translate, scale, shear))

    assert affine(5, (0, 0), 1.1, (0, 0)) == ["Affine rotate 5, scale 1.1"]
    assert affine(-30, (3, -4), 1.0, (10, 0)) == ["Affine rotate -30, shear 10, shift 3 -4"]
    assert affine(0, (0, 0), 1.0, (0, 0)) == ["Affine unchanged"]
    assert words(Op.AFFINE, 0.5, 0, 15, 0, 1, 0) == ["Affine scale 2 x 1"]
    assert words(Op.AFFINE, *[0] * 6)[0].startswith("Affine")
    ends, _ = perspective_coefficients([(0, 0), (60, 0), (60, 40), (0, 40)], [(7, 2), (60, 0), (60, 40), (0, 40)])
    assert ends is not None
    assert words(Op.PERSPECTIVE, *ends) == ["Perspective corners moved by up to 7 px"]


def test_names_of_files_break_behind_separators() -> None:
    name = "animals/IMG_2024-08-17_the-cat-of-my-neighbours.jpg"
    lines = wrap_name(name, FONT, 200)
    assert "".join(lines) == name
    assert all(FONT.getlength(line) <= 200 for line in lines)
    assert [line[-1] in "/_-." for line in lines[:-1]] == [True] * (len(lines) - 1)
    assert len(lines) == 2
    assert wrap_name("cat.jpg", FONT, 200) == ["cat.jpg"]


def test_longer_names_keep_their_end() -> None:
    name = "/".join(["a_long_folder"] * 5) + "/number-17.jpg"
    lines = wrap_name(name, FONT, 160)
    assert len(lines) == 2
    assert all(FONT.getlength(line) <= 160 for line in lines)
    assert "..." in "".join(lines)
    assert lines[-1].endswith("number-17.jpg")
    assert len(wrap_name("x" * 500, FONT, 100)) == 2


def test_deep_images_are_shown_from_black_to_white_or_as_their_caption_says(tmp_path: Path) -> None:
    ramp = np.linspace(0, 65535, 64 * 48).reshape(48, 64).astype(np.uint16)
    Image.fromarray(ramp).save(tmp_path / "full.png")
    Image.fromarray(ramp // 16).save(tmp_path / "twelve-bits.png")
    with note_once(set(), Depth.UINT16):
        choice = choose_images(tmp_path, 2)
        full, narrow = sample_rows(choice, T.RandomHorizontalFlip(1.0), [0], 0, 0)
    expected = np.repeat((ramp[..., None] / 257).round().astype(np.uint8), 3, axis=2)
    for row, notes in ((full, []), (narrow, ["shown from 0 to 4095"])):
        for cell, pixels in zip(row, (expected, expected[:, ::-1]), strict=True):
            np.testing.assert_allclose(cell.img_HWC.astype(int), pixels, atol=1)
            assert cell.lines[1:] == notes
    assert policy_sheet(tmp_path, "randaugment", samples=1, depth=Depth.FLOAT32).num_images == 2
    with pytest.raises(ValueError, match="JPEG: got images of uint16"):
        sweep_sheet(tmp_path, "JPEG", depth=Depth.UINT16)


@pytest.mark.parametrize(
    ("values", "levels"),
    [([0, 0.5, 1], [0, 128, 255]), ([-1000, 0, 1000], [0, 128, 255]), ([2, 2, 2], [255, 255, 255])],
)
def test_floats_beyond_black_and_white_are_scaled_by_their_range(values: list[float], levels: list[int]) -> None:
    pixels = np.array([*values, np.nan], np.float32).reshape(1, 4, 1)
    shown, notes = for_screen(pixels)
    assert shown.ravel().tolist() == [*levels, 0]
    assert notes == (["shown from -1000 to 1000"] if min(values) < 0 else [])
