"""Descriptions, model files, manifests and requests are data: nothing that they name is opened, imported or fetched."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

import variegate as vg
from tests.jobs.augment.samples import expansion, lay_photos
from tests.ops.examples import BY_BOXES, EXAMPLES, MIXERS, POLICIES, STICKER
from tests.recording_opens import ADDRESSES, MARK, RecordingFileSystem, recorded_opens, replaced
from variegate import transforms as T
from variegate.apps import attribution
from variegate.apps.studio.cards import CardError, to_cards, to_policy
from variegate.apps.studio.drawing import Studio
from variegate.apps.studio.photos import Photos
from variegate.apps.studio.runs import RunGallery
from variegate.apps.studio.server import Page
from variegate.apps.train.models import ModelError
from variegate.errors import DecodeError, PolicyError
from variegate.formats.base import SourceError
from variegate.jobs.augment.replay import replay
from variegate.jobs.output.verify import verify
from variegate.policies import load_policy
from variegate.policies.uniform import AdaptiveRandAugment
from variegate.transforms import functional as F


class Scanlines(T.CustomOp):
    """An operation of a user's."""

    magnitude = T.Magnitude(0.0, 1.0)

    def lut(self, m: float) -> Any:
        return np.arange(256, dtype=np.uint8)


@vg.pipeline
def turned(image: Any) -> Any:
    if vg.coin(0.5):
        image = F.rotate(image, vg.uniform(0, 30))
    return image


SCHEDULE: dict[str, Any] = {
    "format": "variegate-schedule/1",
    "source": "a search",
    "space": {"base": "pba-relative", "operations": ["Rotate", "Scanlines:0..1"], "around": ["Crop"]},
    "operations": ["Rotate"],
    "segments": [{"epochs": 2, "policy": [["Rotate", 0.5, 3]]}],
}
POLICY = {"format": "variegate-policy/1", "source": "a", "space": "pil", "policy": [[["Rotate", 0.5, 3]]]}
TRANSFORMS = [
    *(example for examples in (EXAMPLES | MIXERS | BY_BOXES).values() for example in examples),
    *(
        *POLICIES,
        AdaptiveRandAugment(),
        turned,
        Scanlines(0.5),
        T.PBA(),
        T.MultiView([T.Identity()]),
        vg.load_policy("dino"),
    ),
    *(vg.load_policy(name) for name in ("dino", "original-mstd0.5", "augmix-m5-w4-d2", "v0r", "3a")),
]


def injected(*values: Any) -> Iterator[dict[str, Any]]:
    """Of every class a description with each of its arguments in turn as one of ``values``."""
    for transform in {type(each).__name__: each for each in TRANSFORMS}.values():
        described = transform.to_dict()
        for field in dataclasses.fields(transform):  # type: ignore[arg-type]
            yield from ({**described, field.name: value} for value in values if field.init)


def hostile(described: Any, addresses: Sequence[str] = ADDRESSES) -> Iterator[Any]:
    for address in addresses:
        yield from replaced(described, address)


def test_every_registered_class_is_read() -> None:
    own = {name for name, cls in T.Transform.registry.items() if cls.__module__.startswith("variegate.")}
    assert own <= {type(part).__name__ for each in TRANSFORMS for part in parts(each)}


def parts(transform: Any) -> Iterator[Any]:
    from variegate.ops.description import walk

    return (part for part in walk(transform) if isinstance(part, T.Transform))


def test_opens_are_recorded(tmp_path: Path) -> None:
    """Else the tests below would pass whatever is done."""
    (tmp_path / MARK).write_bytes(b"")
    for touch in (
        lambda: (tmp_path / MARK).read_bytes(),
        lambda: vg.open_source(ADDRESSES[0]),
        lambda: __import__(MARK),
        lambda: vg.open_source(ADDRESSES[2], stream=False),
        lambda: T.Overlay(ADDRESSES[3]),
    ):
        with recorded_opens() as touched, contextlib.suppress(ImportError, ValueError, OSError):
            touch()
        assert touched
    assert RecordingFileSystem.protocol == "recording"


@pytest.mark.parametrize("read", [load_policy, T.from_dict])
def test_descriptions(read: Any) -> None:
    forms = itertools.cycle(ADDRESSES)
    described = [each.to_dict() for each in TRANSFORMS]
    some = [one for each in (*described, SCHEDULE, POLICY) for one in hostile(each, [next(forms)])]
    values = [[address, [address]] for address in ADDRESSES] + [[{"type": one}, {"png": one}] for one in ADDRESSES[:1]]
    with recorded_opens() as touched:
        for changed in itertools.chain(some, injected(*itertools.chain(*values))):
            with contextlib.suppress(PolicyError):
                read(changed)
    assert touched == []


@pytest.mark.parametrize("address", ADDRESSES[:4])
def test_paths_are_for_python_calls(address: str) -> None:
    described = T.Overlay(STICKER).to_dict()
    for value in (address, [address], [*described["images"], address], Path(address)):
        for changed in ({**described, "images": value}, {"type": "Compose", "transforms": [described, described]}):
            if changed["type"] == "Compose":
                changed["transforms"][1] = {**described, "images": value}
            with pytest.raises(PolicyError, match=r"images: got .*only a Python call, .*, opens files"):
                load_policy(changed)


def test_files_and_texts(tmp_path: Path) -> None:
    path, forms = tmp_path / "policy.json", itertools.cycle(ADDRESSES)
    with recorded_opens() as touched:
        for described in [*injected([MARK]), SCHEDULE, POLICY]:
            text = json.dumps(described).replace(MARK, next(forms))
            path.write_text(text)
            with contextlib.suppress(PolicyError):
                load_policy(path)
            if len(text) < 5000:
                with contextlib.suppress(CardError):
                    to_cards(text)
            arguments = {key: value for key, value in json.loads(text).items() if key != "type"}
            with contextlib.suppress(CardError):
                to_policy([{"op": described.get("type"), "arguments": arguments}])
        for pasted in pastes():
            with contextlib.suppress(CardError):
                to_cards(pasted)
    assert touched == []


def pastes() -> Iterator[str]:
    for address in ADDRESSES:
        yield from (address, f"{{type: Overlay, images: {address!r}}}", f"[{{type: Overlay, images: [{address!r}]}}]")
        yield from (f"T.Overlay({address!r})", f"import {MARK}\nT.Compose([T.Overlay([{address!r}]), {MARK}.Op()])")
        yield from (f"A.FDA(reference_images=[{address!r}])", f"A.OverlayElements(metadata_key={address!r})")
        yield f'{{"transform": {{"__class_fullname__": "{address}", "path": "{address}"}}}}'


SAVED: dict[str, Any] = {"model": "wrn-10-1", "classes": ["a"], "weights": {}, "channels": 3}


def test_model_files(tmp_path: Path) -> None:
    path, scoring = tmp_path / "model.pt", {"type": "Compose", "transforms": [{"type": "Identity"}]}
    overlay = {"type": "Overlay", "images": [MARK]}
    for changed in [
        *({**SAVED, "scoring": scoring, key: address} for key in (*SAVED, "scoring") for address in ADDRESSES),
        *({**SAVED, "scoring": one} for one in hostile(overlay)),
        *({**SAVED, "scoring": scoring, "model": f"timm:{address}"} for address in ADDRESSES),
    ]:
        torch.save(changed, path)
        with recorded_opens() as touched, pytest.raises(ModelError):
            vg.load_model(path)
        assert touched == []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("run")
    expansion(lay_photos(root / "photos"), root / "out", copies=1, policy="none").run()
    return root / "out"


def test_manifests(run: Path, tmp_path: Path) -> None:
    """Replays alone open the source in a manifest, if that is of this machine (SECURITY.md)."""
    table = pq.read_table(run / "manifest.parquet")
    metadata = table.schema.metadata
    settings = json.loads(metadata[b"variegate.settings"]) | {
        "exclude": "",
        "annotations": {"format": "coco", "file": ""},
    }
    for changed in hostile(settings, ADDRESSES[:3]):
        changed_metadata = {**metadata, b"variegate.settings": json.dumps(changed).encode()}
        pq.write_table(table.replace_schema_metadata(changed_metadata), tmp_path / "manifest.parquet")
        with recorded_opens() as touched:
            with pytest.raises((SourceError, DecodeError)) as caught:
                replay(tmp_path, 0)
            verify(tmp_path)
        assert touched == []
        assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:outputs of an earlier run", "ignore:.*has no record of what its source was")
def test_names_in_rows(run: Path, tmp_path: Path) -> None:
    table = pq.read_table(run / "manifest.parquet")
    (tmp_path / "variegate.json").write_bytes((run / "variegate.json").read_bytes())
    for row in hostile(table.slice(0, 1).to_pylist()[0], ADDRESSES[:4]):
        rows = [row, *table.slice(1).to_pylist()]
        pq.write_table(type(table).from_pylist(rows, table.schema), tmp_path / "manifest.parquet")
        with recorded_opens() as touched:
            verify(tmp_path)
            expansion(run.parent / "photos", tmp_path, copies=1, policy="none").run()
        assert touched == []


def test_a_run_on_an_address_is_told_how_to_name_it(run: Path) -> None:
    recorded = SimpleNamespace(transform=run / "transform.json", run={"source": ADDRESSES[0], "fingerprint": ""})
    with (
        recorded_opens() as touched,
        pytest.raises(SourceError, match=r"names the address .* as source; accepted"),
    ):
        attribution._opened(recorded, None)  # type: ignore[arg-type]
    assert touched == []


def test_requests_of_the_studio(run: Path) -> None:
    photos = Photos(run)
    routes = Page(Studio(photos), None, 48, [RunGallery(photos)]).routes()
    posts = [route.path for route in routes if isinstance(route, Route) and "POST" in (route.methods or ())]
    card = {"op": "Overlay", "arguments": {"images": [MARK]}, "on": True}
    body = {"cards": [card], "text": MARK, "page": MARK, "images": [0], "image": 0, "operation": MARK, "op": MARK}
    with TestClient(Starlette(routes=routes)) as client, recorded_opens() as touched:
        for path, address in zip(posts, itertools.cycle(ADDRESSES), strict=False):
            for asked in hostile(body, [address]):
                assert client.post(path, json=asked).status_code in (200, 400)
        for address in ADDRESSES:
            for place in ("/p/", "/t/64/", "/static/", "/api/images?first="):
                assert client.get(place + quote(address, safe="")).status_code in (400, 404)
    assert posts
    # Names below the page's folder of scripts are looked up there, and nowhere else.
    assert [one for one in touched if "static" not in one] == []
