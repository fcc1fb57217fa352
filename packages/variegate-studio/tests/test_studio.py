"""The studio: cards and policies, the pictures that training sees, and a server that lets in who has the token."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

import variegate as vg
import variegate_studio
from tests.data.annotated.made import put_coco
from tests.images import photo
from tests.jobs.augment.samples import expansion, lay_photos, rows
from variegate import transforms as T
from variegate.apps.preview.choosing import Annotations
from variegate.data.base import SourceError
from variegate.policies import load_policy
from variegate.policies.load import POLICY_NAMES
from variegate_studio.cards import CardError, cards_of, schedule_of, to_cards, to_policy, written
from variegate_studio.catalogue import catalogue, new_card
from variegate_studio.drawing import Cancelled, Studio
from variegate_studio.guard import Guard
from variegate_studio.photos import Photos
from variegate_studio.runs import FoundImages, RunGallery, views_of
from variegate_studio.server import Page
from variegate_studio.strongest import points_with_detail, share_left

PORT, TOKEN = 8712, "right"
KINDS = ("number", "integer", "choice", "flag", "pair", "triple", "color", "weights", "transforms", "fixed")
FLIP = {"op": "RandomHorizontalFlip", "arguments": {"p": 1.0}}


def nothing() -> None:
    pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("photos")
    for n, (kind, name) in enumerate([("cat", "a"), ("cat", "b"), ("dog", "c")]):
        (root / kind).mkdir(exist_ok=True)
        Image.fromarray(photo(60 + 8 * n, 90)).save(root / kind / f"{name}.png")
    return root


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    page = Page(Studio(Photos(folder)), load_policy("randaugment"), 48)
    app = Guard(Starlette(routes=page.routes()), TOKEN, PORT)
    with TestClient(app, base_url=f"http://127.0.0.1:{PORT}") as client:
        yield client


def enter(client: TestClient) -> TestClient:
    assert client.get(f"/enter/{TOKEN}", follow_redirects=False).status_code == 303
    return client


# -- cards ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*POLICY_NAMES, "rand-m9-mstd0.5-inc1", "augmix-m5-w4-d2", "none"])
def test_a_policy_goes_through_cards(name: str) -> None:
    if name in ("simclr", "byol", "dino", "mocov3", "3-augment"):
        assert to_cards(name).cards
        return
    cards = to_cards(name).cards
    made = to_policy(json.loads(json.dumps(cards))).transform
    assert made.to_dict() == (T.Identity() if name == "none" else load_policy(name)).to_dict()


def test_what_is_applied_together_is_one_card() -> None:
    both = T.RandomApply([T.Compose([T.Invert(), T.Rotate(9)])], 0.5)
    twice = T.RandomApply([T.RandomApply([T.Invert()], 0.5)], 0.5)
    for transform in (both, twice, T.Compose([T.Invert(), both])):
        cards = cards_of(transform)
        assert to_policy(json.loads(json.dumps(cards))).transform == transform
    assert [card["op"] for card in cards_of(both)] == ["RandomApply"]


def test_cards_are_switched_off_and_have_chances() -> None:
    rotate = {"op": "Rotate", "arguments": {"degrees": 20}, "on": False}
    tuned = to_policy([rotate, {**FLIP, "p": 0.25}, {"op": "Invert"}])
    expected = T.Compose([T.RandomApply([T.RandomHorizontalFlip(1.0)], 0.25), T.Invert()])
    assert (tuned.transform, tuned.numbers) == (expected, (1, 2))
    # Its own chance and that of being applied are two.
    assert [(card["op"], card["p"]) for card in cards_of(expected)] == [("RandomApply", 1.0), ("Invert", 1.0)]
    assert cards_of(T.RandomApply([T.Invert()], 0.25))[0] == {"op": "Invert", "arguments": {}, "on": True, "p": 0.25}
    assert to_policy([]).transform == T.Identity()


@pytest.mark.parametrize(
    ("cards", "card", "message"),
    [
        ([FLIP, {"op": "Rotate", "arguments": {}}], 1, "Rotate.degrees: got None; accepted: a value"),
        ([{"op": "Rotat"}], 0, "did you mean 'Rotate'"),
        ([FLIP, {"op": "Invert", "p": 2}], 1, r"p: got 2; accepted: .* from 0 to 1"),
        ([{"op": "Normalize", "arguments": {"mean": 0.5, "std": 0.5}}, FLIP], None, "after Normalize"),
        (["Rotate"], 0, 'accepted: {"op": name'),
        ([FLIP] * 65, None, "a list of at most 64"),
        ({}, None, "a list"),
    ],
)
def test_wrong_cards_are_named(cards: Any, card: int | None, message: str) -> None:
    with pytest.raises(CardError, match=message) as caught:
        to_policy(cards)
    assert caught.value.card == card


def test_text_makes_cards() -> None:
    assert to_cards("[{type: Rotate, degrees: 20}]").cards[0]["arguments"] == {"degrees": 20}
    assert to_cards(written(to_policy([FLIP]))["json"]).cards == [{**FLIP, "on": True, "p": 1.0}]
    assert to_cards("[transforms.Resize(64), transforms.Lambda(f)]").cards[0]["arguments"] == {"size": 64}
    for text, message in [
        ("/etc/passwd", "its text"),
        ('{"a": [}', "line 1, column 8: .*; accepted: JSON or YAML"),
        ("[1, 2]", r"transforms\[0\]: got 1"),
        ("[{type: Invert}" + ", {type: Invert}" * 64 + "]", "65 operations; accepted: at most 64"),
        ("policy.yaml", "its text"),
        ("nonsense", "policy"),
        ("&a [*a]", "policy"),
        ("print(1)", "Python that calls transforms"),
    ]:
        with pytest.raises(CardError, match=message):
            to_cards(text)


def test_every_operation_of_the_catalogue_makes_a_card() -> None:
    entries = catalogue()
    assert len(entries) > 100
    json.dumps(entries, allow_nan=False)
    for entry in entries:
        if entry["group"] != "Your own":  # other tests declare operations whose arguments nobody can guess
            to_policy([new_card(entry["name"])])
        for field in entry["fields"]:
            assert field["kind"] in KINDS, entry["name"]
            if field["low"] is not None and field["high"] is not None:
                assert field["low"] < field["high"], (entry["name"], field)
    assert {"Rotate", "RandAugment", "RandomFog", "OneOf", "Normalize"} <= {entry["name"] for entry in entries}


def test_a_new_card_has_controls_and_does_something(folder: Path) -> None:
    fields = {entry["name"]: {field["name"]: field for field in entry["fields"]} for entry in catalogue()}
    assert new_card("ColorJitter")["arguments"] == dict.fromkeys(["brightness", "contrast", "saturation"], 0.4) | {
        "hue": 0.1
    }
    blur = fields["GaussianBlur"]["sigma"]
    assert (blur["kind"], blur["low"] < 0.1, blur["high"] > 2.0) == ("pair", True, True)
    assert ["sharpen", [[0, -1, 0], [-1, 5, -1], [0, -1, 0]]] in fields["Convolve"]["kernel"]["choices"]
    assert (fields["RandomAffine"]["scale"]["default"], fields["RandomAffine"]["scale"]["start"]) == (None, [0.8, 1.2])
    for name in ("ColorJitter", "RandomAffine", "Convolve", "GaussianNoise"):
        found = Studio(Photos(folder)).grid({"cards": [new_card(name)], "images": [0], "copies": 2}, nothing)
        assert found["histograms"]["before"] != found["histograms"]["after"], name


def test_a_class_without_fields_of_its_own_makes_no_card() -> None:
    class Undecorated(T.Transform):
        pass

    catalogue.cache_clear()
    try:
        assert "Undecorated" not in {entry["name"] for entry in catalogue()}
    finally:
        del T.Transform.registry["Undecorated"]


@pytest.mark.parametrize(
    "transform",
    [
        load_policy("dino"),
        T.Cond(by="label", cases={0: T.Invert(), 1: T.OneOf([T.Rotate(9), T.Solarize(9)])}, default=T.AutoContrast()),
    ],
)
def test_python_imports_what_is_deep_within(transform: T.Transform) -> None:
    names: dict[str, Any] = {}
    exec(written(to_policy(json.loads(json.dumps(cards_of(transform)))))["python"], names)
    assert names["transform"].to_dict() == json.loads(json.dumps(transform.to_dict()))


def test_python_and_yaml_are_the_same_policy() -> None:
    cards, _ = to_cards(
        "[{type: OneOf, transforms: [{type: Rotate, degrees: 9}, {type: Invert}]}, {type: AutoContrast}]"
    )
    told = written(to_policy(cards))
    names: dict[str, Any] = {}
    exec(told["python"], names)
    assert (
        names["transform"].to_dict()
        == json.loads(told["json"])
        == to_policy(to_cards(told["yaml"]).cards).transform.to_dict()
    )


# -- pictures ------------------------------------------------------------------------------------------------------


def pixels(jpeg: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(jpeg))).astype(int)


def test_pictures_are_those_of_augment(folder: Path) -> None:
    studio = Studio(Photos(folder))
    cards = to_cards("randaugment-2-5").cards
    asked = {"cards": cards, "seed": 3, "epoch": 1, "size": None, "images": [2, 0], "copies": 3}
    found = studio.grid(asked, nothing)
    augmenter = vg.Augmenter(T.RandAugment(2, 5), seed=3, layout="NHWC")
    source = vg.open_source(folder)
    for cell in found["cells"]:
        image = np.asarray(Image.open(io.BytesIO(source.read(cell["index"]).data)))
        (own,) = source.ids(np.array([cell["index"]])).tolist()
        expected = augmenter([image], ids=[own], epoch=1, copy=cell["copy"])[0].numpy()
        assert np.abs(pixels(studio.picture(cell["url"][3:])) - expected).mean() < 6
    assert [one["name"] for one in found["originals"]] == ["dog/c.png", "cat/a.png"]
    assert [(cell["index"], cell["copy"]) for cell in found["cells"]] == [(i, c) for i in (2, 0) for c in range(3)]
    assert sum(found["histograms"]["before"]["luma"]) > 0


def test_pictures_that_were_dropped_are_drawn_again(folder: Path) -> None:
    studio = Studio(Photos(folder))
    for cards in (to_cards("augmix").cards, to_cards("simclr").cards, [FLIP]):
        found = studio.grid({"cards": cards, "size": 64, "images": [1], "copies": 2}, nothing)
        kept = {each["url"]: studio.picture(each["url"][3:]) for each in (*found["originals"], *found["cells"])}
        studio._pictures.clear()
        assert {url: studio.picture(url[3:]) for url in kept} == kept
    for address in ("1-0-0-0-0-0-0-0", found["cells"][0]["url"][3:].replace("-1-", "-2-"), "x", "a-b-c-d-e-f-g-h"):
        with pytest.raises((LookupError, ValueError)):
            studio.picture(address)


def test_partners_are_as_large_as_the_images_they_are_mixed_with(tmp_path: Path) -> None:
    (tmp_path / "same").mkdir()
    for name in "abcd":
        Image.fromarray(photo(200, 300)).save(tmp_path / "same" / f"{name}.png")
    mixed = [{"op": "CenterCrop", "arguments": {"size": 40}}, {"op": "MixUp"}]
    [made] = Studio(Photos(tmp_path)).grid({"cards": mixed, "size": 60, "images": [0], "copies": 1}, nothing)["cells"]
    assert made["lines"][:2] == ["Crop 40x40 at 10,0", "MixUp of 2:"]  # one crop, of both


@pytest.mark.parametrize("by", ["change", "left"])
def test_the_strongest_draw_of_each_operation_and_combination(folder: Path, by: str) -> None:
    studio = Studio(Photos(folder))
    asked = {"cards": to_cards("randaugment").cards, "size": 48, "draws": 150, "by": by}
    found = studio.strongest(asked, nothing)
    assert {"Rotate", "TranslateX"} <= {one["title"] for one in found["operations"]}
    assert all(" + " in one["title"] for one in found["combinations"])
    for some in found.values():
        strengths = [one["change"] if by == "change" else -one["left"] for one in some]
        assert strengths == sorted(strengths, reverse=True)
    first = found["operations"][0]
    [original] = studio.grid({"cards": [], "size": 48, "images": [0], "copies": 0}, nothing)["originals"]
    change = np.abs(pixels(studio.picture(first["url"][3:])) - pixels(studio.picture(original["url"][3:]))).mean()
    assert abs(change - first["change"]) < 4
    for cards, more, message in (([{"op": "MixUp"}], {}, "mix none"), ([FLIP], {"by": "size"}, "by: accepted: change")):
        with pytest.raises(CardError, match=message):
            studio.strongest({"cards": cards, **more}, nothing)


def test_the_share_of_the_photo_that_is_left() -> None:
    image = photo(96, 128)
    half, dark = image.copy(), (image * 0.01).astype(np.uint8)
    half[:, :64] = 0
    points = points_with_detail(image)
    outside = points.copy()
    outside[points[:, 1] < 48, 2] = 0
    share = float((points[:, 1] >= 48).mean())
    for made, moved, expected in (
        (image, points, 1.0),
        (half, points, 0.5),
        (dark, points, 0.0),
        (image, outside, share),
    ):
        assert abs(share_left(made, moved) - expected) < 0.1
    assert points_with_detail(np.zeros_like(image)).shape == (256, 3)


def test_sweep_thumbnails_and_sheet(folder: Path) -> None:
    studio = Studio(Photos(folder))
    card = {"op": "RandAugment", "arguments": {"num_ops": 1}}
    asked = {"card": card, "argument": "magnitude", "values": [0, 15, 30], "images": [0, 1], "size": 48}
    rows = studio.sweep(asked)["rows"]
    titles = ["magnitude 0", "magnitude 15", "magnitude 30"]
    assert [[cell["title"] for cell in row][1:] for row in rows] == [titles, titles]
    assert len({studio.picture(cell["url"][3:]) for cell in rows[0][1:]}) == 3
    found = studio.thumbnails({"size": 32})["thumbnails"]
    assert len(found) > 100
    assert studio.picture(found["Rotate"][3:])[:2] == b"\xff\xd8"
    assert studio.sheet({"cards": [FLIP], "images": [0, 1], "copies": 2})[:4] == b"\x89PNG"
    for wrong, message in (({"op": "Rotatee"}, "did you mean 'Rotate'"), (FLIP, "RandomHorizontalFlip.magnitude")):
        with pytest.raises(CardError, match=message):
            studio.sweep({**asked, "card": wrong})
    with pytest.raises(CardError, match="values: accepted: a list of at most 32"):
        studio.sweep({**asked, "values": []})


class Stretched:
    """What an Albumentations of tests makes of images: lighter by the seed."""

    def __init__(self, parts: list[Any], seed: int) -> None:
        [self._described], self._seed = parts, seed

    def __call__(self, image: Any) -> dict[str, Any]:
        assert (self._described["__class_fullname__"], self._described["p"]) == ("GlassBlur", 1.0)
        return {"image": np.minimum(image, 200) + np.uint8(10 * self._seed)}


def superseded() -> None:
    raise Cancelled


def test_close_conversions_are_drawn_by_both_libraries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    studio, asked = Studio(Photos(folder)), {"text": "A.Compose([A.GlassBlur(p=0.1), A.Lambda(f)])", "size": 48}
    monkeypatch.setitem(sys.modules, "albumentations", None)
    [(place, alone)] = studio.counterparts(asked, nothing)["counterparts"].items()
    assert (place, len(alone["ours"]), alone["theirs"]) == ("transforms[0] GlassBlur", 4, [])
    assert alone["why"] == "albumentations is not installed here, so its own pictures are not shown"
    library = ModuleType("albumentations")
    library.from_dict, library.Compose = lambda described: described["transform"], Stretched  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "albumentations", library)
    both = studio.counterparts(asked, nothing)["counterparts"][place]
    assert (both["ours"], both["why"]) == (alone["ours"], "")
    means = [pixels(studio.picture(one["url"][3:])).mean() for one in both["theirs"]]
    np.testing.assert_allclose(np.diff(means), 10, atol=1)
    library.Compose = lambda parts, seed: 1 / 0  # type: ignore[attr-defined]
    assert "does not run it: ZeroDivisionError" in studio.counterparts(asked, nothing)["counterparts"][place]["why"]
    with pytest.raises(Cancelled):
        studio.counterparts(asked, superseded)


class RandomPerspective:
    """As a torchvision of tests has it."""

    def __init__(self, distortion_scale: float, p: float, interpolation: str) -> None:
        assert (distortion_scale, p, interpolation) == (0.3, 1.0, "<bilinear>")

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image * 0 + torch.randint(256, (1,), dtype=torch.uint8)


def test_torchvision_draws_by_its_own_seeds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("torchvision.transforms.v2")
    library.RandomPerspective, library.InterpolationMode = RandomPerspective, "<{}>".format  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, library.__name__, library)
    text = "v2.Compose([v2.ToImage(), v2.RandomPerspective(0.3, 0.2, InterpolationMode.BILINEAR)])"
    state = torch.random.get_rng_state()
    [both] = Studio(Photos(folder)).counterparts({"text": text, "size": 48}, nothing)["counterparts"].values()
    assert both["why"] == ""
    assert len({one["title"] for one in both["theirs"]}) == 4
    assert torch.equal(torch.random.get_rng_state(), state)


def test_targets_are_drawn_over(tmp_path: Path) -> None:
    file = put_coco(tmp_path)
    photos = Photos(tmp_path / "images", Annotations(str(file)))
    assert photos.has_targets
    studio = Studio(photos)
    without, asked = Studio(Photos(tmp_path / "images")), {"cards": [FLIP], "size": 40, "images": [0], "copies": 1}
    marked, plain = studio.grid(asked, nothing), without.grid(asked, nothing)
    [drawn, bare] = [one.picture(found["cells"][0]["url"][3:]) for one, found in ((studio, marked), (without, plain))]
    assert drawn != bare
    assert "1 box" in " ".join(marked["originals"][0]["lines"]) or "boxes" in " ".join(marked["originals"][0]["lines"])


def test_a_newer_generation_ends_an_older_one(folder: Path) -> None:
    calls = []

    def after_two() -> None:
        calls.append(1)
        if len(calls) > 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        Studio(Photos(folder)).grid({"cards": [FLIP], "images": [0], "copies": 8}, after_two)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"cards": [FLIP, {"op": "RandomIoUCrop"}]}, "boxes"),
        ({"images": [3]}, "images: accepted: a list of numbers from 0 to 2"),
        ({"images": [True]}, "images"),
        ({"images": []}, "images: accepted: .*, at least one"),
        ({"images": [0] * 300}, "600 pictures of 300 images; accepted: at most 512"),
        ({"copies": -1}, "copies: got -1; accepted: a whole number from 0 to 256"),
        ({"size": 8}, "size: got 8"),
        ({"seed": "x"}, "seed: got 'x'"),
        ({"cards": [{"op": "RandomCrop", "arguments": {"size": 2000}}]}, "larger than an image"),
        ({"cards": [{"op": "Resize", "arguments": {"size": 6000}}], "copies": 9}, "megapixels at a time"),
        ({"cards": [{"op": "Resize", "arguments": {"size": 20000}}]}, "megapixels at a time; accepted: up to 268"),
    ],
)
def test_wrong_requests_are_named(folder: Path, asked: Any, message: str) -> None:
    with pytest.raises(CardError, match=message):
        Studio(Photos(folder)).grid(asked, nothing)


def test_the_card_that_an_image_is_too_small_for_is_named(folder: Path) -> None:
    cards = [FLIP, {"op": "RandomCrop", "arguments": {"size": 2000}}, {"op": "Invert"}]
    with pytest.raises(CardError, match="larger than an image") as caught:
        Studio(Photos(folder)).grid({"cards": cards, "images": [0]}, nothing)
    assert caught.value.card == 1


# -- runs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["folder", "webdataset", "parquet"])
def test_a_run_is_shown_by_operation(tmp_path: Path, layout: str) -> None:
    out = tmp_path / "out"
    expansion(lay_photos(tmp_path / "photos"), out, policy="randaugment", layout=layout).run()
    photos = Photos(out)
    [gallery] = views_of(photos, None)
    assert isinstance(gallery, RunGallery)
    written = [(n, row) for n, row in enumerate(rows(out)) if row["status"] == "written"]
    whole = gallery.answer({})
    assert whole["count"] == len(whole["rows"]) == len(written)
    for name, count in gallery.about():
        own = [n for n, row in written if name in {one["op"] for one in json.loads(row["operations"])}]
        page = gallery.answer({"operation": name})
        assert (page["count"], [one["replay"].split()[-1] for one in page["rows"]]) == (count, list(map(str, own)))
        assert len(own) == count
    assert len(gallery.answer({"first": 1, "count": 2})["rows"]) == 2
    for (_, row), shown in zip(written, whole["rows"], strict=True):
        index = int(shown["url"].split("/")[-1].split("-")[0])
        output = vg.open_source(out, stream=False).read(index).data
        assert hashlib.sha256(output).hexdigest() == row["sha256"]
    with pytest.raises(ValueError, match="accepted: whole numbers"):
        gallery.answer({"first": -1})


def test_a_run_shows_no_other_file(tmp_path: Path) -> None:
    out = tmp_path / "out"
    expansion(lay_photos(tmp_path / "photos"), out).run()
    table = pq.read_table(out / "manifest.parquet")
    for file in ("../secret.jpg", str(tmp_path / "secret.jpg"), "missing.jpg", None):
        names = pa.array([file] * len(table), pa.string())
        pq.write_table(table.set_column(table.schema.get_field_index("file"), "file", names), out / "manifest.parquet")
        assert {one["url"] for one in RunGallery(Photos(out)).answer({})["rows"]} == {""}
    (tmp_path / "photos" / "manifest.parquet").write_bytes(b"no manifest")
    with pytest.warns(UserWarning, match=r"manifest.parquet: .*; its run is not shown"):
        assert views_of(Photos(tmp_path / "photos"), None) == []


def test_marks_become_what_clean_takes(folder: Path, tmp_path: Path) -> None:
    source, table = tmp_path / "source", tmp_path / "findings.parquet"
    shutil.copytree(folder, source)
    shutil.copy(source / "cat" / "a.png", source / "dog" / "same.png")
    vg.check(source, out=table)
    found = FoundImages(Photos(source), table)
    assert [(one["name"], one["count"]) for one in found.about()] == [("duplicates", 2), ("contradictions", 2)]
    answer = found.answer({"kind": "contradictions"})
    assert [one["title"] for one in answer["rows"]] == ["cat/a.png", "dog/same.png"]
    assert answer["command"] == f"variegate clean {source} --from marked.parquet --drop marked"
    marked = tmp_path / "marked.parquet"
    marked.write_bytes(found.answer({"marks": [answer["rows"][1]["index"]]}))
    cleaned = vg.clean(source, out=tmp_path / "excluded.txt", findings=marked, drop="marked")
    assert [one.file for one in cleaned.left_out] == ["dog/same.png"]
    again = FoundImages(Photos(source), marked)
    assert [one["name"] for one in again.about()] == ["duplicates", "contradictions", "marked"]
    marked.write_bytes(again.answer({"marks": []}))
    assert [one["name"] for one in FoundImages(Photos(source), marked).about()] == ["duplicates", "contradictions"]
    for marks in ([99], [True], "all"):
        with pytest.raises(ValueError, match="marks: accepted: a list of numbers from 0 to 3"):
            found.answer({"marks": marks})
    with pytest.raises(SourceError, match="holds other images"):
        FoundImages(Photos(folder), table)
    with pytest.raises(ValueError, match="without its images"):
        vg.studio(findings=table)


def test_a_schedule_has_its_curves() -> None:
    found = schedule_of(load_policy("pba-cifar10"))
    assert found is not None
    assert (found["epochs"], len(found["curves"])) == (200, 15)
    assert found["curves"]["TranslateX"][:2] == [(0, 0.0), (12, 0.1167)]
    assert schedule_of(T.RandAugment()) is None


# -- the server ----------------------------------------------------------------------------------------------------


def test_nobody_enters_without_the_token(client: TestClient) -> None:
    for path in ("/", "/enter/wrong", "/api/state", "/static/main.js", "/p/x", "/t/96/0-x"):
        answer = client.get(path, follow_redirects=False)
        assert (answer.status_code, "right" in answer.text) == (403, False), path
    assert client.post("/api/grid", json={}).status_code == 403
    enter(client)
    assert client.get("/api/state").status_code == 200
    cookie = client.get(f"/enter/{TOKEN}", follow_redirects=False).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()


def test_other_hosts_and_origins_are_refused(client: TestClient) -> None:
    enter(client)
    for headers in (
        {"host": "evil.example"},
        {"host": f"127.0.0.1:{PORT + 1}"},
        {"origin": "https://evil.example"},
        {"origin": "http://["},
    ):
        assert client.get("/api/state", headers=headers).status_code == 403, headers
    assert client.get("/api/state", headers={"origin": f"http://127.0.0.1:{PORT}"}).status_code == 200


def test_the_page_runs_no_foreign_script(client: TestClient) -> None:
    answer = enter(client).get("/")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    static = Path(variegate_studio.__file__).parent / "static"
    for file in static.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
        assert "http://" not in text, file
        assert "https://" not in text, file
        name = f"/static/{file.name}" if file.name != "index.html" else "/"
        assert client.get(name).status_code == 200
    assert client.get("/static/../server.py").status_code == 404


def test_calls_answer_and_errors_have_their_card(client: TestClient) -> None:
    enter(client)
    state = client.get("/api/state").json()
    assert state["source"]["name"].startswith("photos")
    assert (state["source"]["count"], state["size"]) == (3, 48)
    found = client.post(
        "/api/grid", json={"cards": state["cards"], "size": 48, "copies": 2, "page": "a", "generation": 2}
    )
    picture = client.get(found.json()["cells"][0]["url"])
    assert picture.headers["content-type"] == "image/jpeg"
    assert "immutable" in picture.headers["cache-control"]
    older = client.post("/api/grid", json={"cards": [], "page": "a", "generation": 1})
    assert (older.status_code, older.json()) == (200, {"superseded": True})
    wrong = client.post("/api/grid", json={"cards": [FLIP, {"op": "Rotat"}]})
    assert (wrong.status_code, wrong.json()["card"]) == (400, 1)
    listed = client.get("/api/images?first=1&count=9").json()["images"]
    assert [(one["name"], one["label"]) for one in listed] == [("cat/b.png", "cat"), ("dog/c.png", "dog")]
    for query, names in (
        ("label=cat", {"cat/a.png", "cat/b.png"}),
        ("text=C.PNG", {"dog/c.png"}),
        ("order=class&label=dog", {"dog/c.png"}),
        ("order=random&seed=5", {"cat/a.png", "cat/b.png", "dog/c.png"}),
    ):
        found = client.get(f"/api/images?{query}").json()
        assert ({one["name"] for one in found["images"]}, found["count"]) == (names, len(names))
    assert client.get("/api/images?label=cow").status_code == 400
    assert client.get("/api/images?order=size").status_code == 400
    assert client.get(listed[0]["url"]).status_code == 200
    assert client.post("/api/export", json={"cards": [FLIP]}).json()["command"].startswith("variegate augment ")
    assert client.post("/api/sheet", json={"cards": [FLIP]}).content[:4] == b"\x89PNG"
    for answer in (
        client.post("/api/grid", content=b"{"),
        client.post("/api/grid", content=b"{", headers={"content-type": "application/json"}),
        client.post("/api/grid", json=[]),
        client.post("/api/policy", json={"text": "nonsense"}),
        client.post("/api/policy", json={"text": "print(1)"}),
    ):
        assert (answer.status_code, "error" in answer.json()) == (400, True)
    asked = {"cards": [FLIP], "copies": 3, "seed": 7, "epoch": 2}
    command = client.post("/api/export", json=asked).json()["command"]
    assert command.endswith(" AUGMENTED --policy policy.json --copies 3 --seed 7 --epoch 2")
    for card in (
        {"op": "Normalize", "arguments": {"mean": 0.5, "std": 0.5}},
        {"op": "FiveCrop", "arguments": {"size": 9}},
    ):
        told = client.post("/api/export", json={"cards": [card]}).json()["command"]
        assert told.startswith("# variegate augment does not take this policy: ")
    unspeakable = '{"__class_fullname__": "Compose", "transforms": [{"__class_fullname__": "\\ud800"}]}'
    report = client.post("/api/policy", json={"text": unspeakable}).json()["report"]
    assert [each[2] for each in report] == ["refused"]
    assert client.get("/api/images?first=x").status_code == 400
    for path in (
        "/t/96/7-x",
        "/t/96/0-x",
        "/t/5000/0-x",
        f"/t/96/{'9' * 5000}-x",
        f"/t/{'9' * 5000}/0-x",
        "/r/0-x",
        "/p/x",
        "/static/none.js",
        "/api/none",
    ):
        assert client.get(path).status_code == 404, path


def test_a_server_ends_when_closed(folder: Path) -> None:
    import httpx

    server = vg.studio(folder, T.RandomHorizontalFlip(), size=32)
    try:
        assert server.url in server._repr_html_()
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", follow_redirects=True) as browser:
            assert browser.get("/api/state").status_code == 403
            assert browser.get(server.url).status_code == 200
            assert browser.get("/api/state").json()["cards"][0]["op"] == "RandomHorizontalFlip"
        with pytest.raises(OSError, match=f"port {server.port}: .*; accepted: one that is free"):
            vg.studio(folder, port=server.port)
    finally:
        server.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{server.port}/")
