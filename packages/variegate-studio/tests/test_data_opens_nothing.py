"""Texts and requests are data: nothing that they name is opened, imported or fetched."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.hostile import POLICY, SCHEDULE, hostile, injected
from tests.jobs.augment.samples import expansion, lay_photos
from tests.recording_opens import ADDRESSES, MARK, recorded_opens
from variegate_studio.cards import CardError, to_cards, to_policy
from variegate_studio.drawing import Studio
from variegate_studio.photos import Photos
from variegate_studio.runs import RunGallery
from variegate_studio.server import Page


def test_texts() -> None:
    forms = itertools.cycle(ADDRESSES)
    with recorded_opens() as touched:
        for described in [*injected([MARK]), SCHEDULE, POLICY]:
            text = json.dumps(described).replace(MARK, next(forms))
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
        yield from (address, f"{{type: Overlay, images: {address!r}}}", f"[{{type: FDA, references: {address!r}}}]")
        yield from (f"T.Overlay({address!r})", f"import {MARK}\nT.Compose([T.FDA([{address!r}]), {MARK}.Op()])")
        yield from (f"A.FDA(reference_images=[{address!r}])", f"A.OverlayElements(metadata_key={address!r})")
        yield f'{{"transform": {{"__class_fullname__": "{address}", "path": "{address}"}}}}'


def test_requests(tmp_path: Path) -> None:
    expansion(lay_photos(tmp_path / "photos"), tmp_path / "out", copies=1, policy="none").run()
    photos = Photos(tmp_path / "out")
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
