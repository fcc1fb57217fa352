"""The studio in a real browser: tuned, compared, exported, reloaded, on a phone, without its server."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import variegate as vg
from tests.browser import Page, find_browser, opened_page
from tests.images import photo
from tests.jobs.augment.samples import expansion, lay_photos
from variegate_studio.server import StudioServer

EVIL = "<img src=x onerror=alert(1)>"
TORCHVISION = "transforms.Compose([transforms.Resize(64), transforms.RandomHorizontalFlip(1.0), transforms.Lambda(f)])"
ROTATED, POSTERIZED = {"type": "Rotate", "degrees": 40}, {"type": "Posterize", "bits": 3}
CHOICE: Any = [
    {"type": "Resize", "size": [64, 64]},
    {"type": "OneOf", "transforms": [{"type": "Rotate", "degrees": 9}, {"type": "Invert"}], "weights": [3, 2]},
    {"type": "MixUp"},
]
FIGURES = "document.querySelectorAll('#view .figure').length"
SOURCES = "[...document.querySelectorAll('#view .figure img')].map((one) => one.getAttribute('src')).join()"
OPS = "[...document.querySelectorAll('#cards strong')].map((one) => one.textContent)"


def visit(server: StudioServer, tmp_path: Path, steps: Callable[[Page], Awaitable[None]]) -> None:
    """Open the page, and see that it asks nobody else for anything and that no script complains."""

    async def visited() -> None:
        async with opened_page(find_browser(), tmp_path / "profile") as page:
            await page.open(server.url)
            await page.wait_for(f"{FIGURES} > 0 || document.querySelector('.curves')")
            await steps(page)
            own = (f"http://127.0.0.1:{server.port}/", "data:", "blob:")
            assert [address for address in page.requests if not address.startswith(own)] == []

    try:
        asyncio.run(visited())
    finally:
        server.close()


async def choose(page: Page, selector: str, text: str) -> None:
    await page.evaluate(
        f"[...document.querySelectorAll({json.dumps(selector)})].find((one) => one.textContent == '{text}').click()"
    )


async def show(page: Page, view: str) -> None:
    await choose(page, "#tabs button", view)


async def slide(page: Page, selector: str, number: int, value: int) -> None:
    one = f"document.querySelectorAll({json.dumps(selector)})[{number}]"
    await page.evaluate(f"{one}.value = {value}; {one}.dispatchEvent(new Event('input'))")


async def click(page: Page, selector: str) -> None:
    """Wherever it is: pictures that come in still move others."""
    await page.evaluate(f"document.querySelector({json.dumps(selector)}).click()")


async def exported(page: Page) -> Any:
    await show(page, "Export")
    await page.wait_for("document.querySelector('textarea[aria-label=json]')?.value")
    return json.loads(await page.evaluate("document.querySelector('textarea[aria-label=json]').value"))


async def is_accessible(page: Page) -> None:
    """By axe-core's rules."""
    await page.evaluate(files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
    found = await page.evaluate(
        "axe.run().then(({violations}) => violations.map((one) => [one.id, one.nodes[0].html]))"
    )
    assert found == []


async def fits(page: Page, width: int) -> None:
    await page.resize(width, 800)
    await page.wait_for(f"document.documentElement.scrollWidth <= {width}")


@pytest.mark.process
def test_a_policy_is_tuned_in_a_browser(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    for n, kind in enumerate((EVIL, "cat", "dog")):
        (folder / kind).mkdir(parents=True)
        Image.fromarray(photo(60 + 8 * n, 90)).save(folder / kind / "a.png")
    (folder / "cat" / "b.png").write_bytes(b"no image")
    server = vg.studio(folder, "randaugment", size=64)

    async def steps(page: Page) -> None:
        await page.wait_for(f"{FIGURES} == 18 && document.images.length == 18")
        assert "cat/b.png" in await page.evaluate("document.getElementById('status').textContent")
        assert EVIL in await page.evaluate("document.querySelector('#view .original + .caption').textContent")
        assert await page.evaluate("document.querySelector('[onerror]')") is None
        await is_accessible(page)
        # A slider redraws; undo brings the same pictures back.
        before = await page.evaluate(SOURCES)
        await slide(page, "#cards input[type=range]", 2, 20)
        await page.wait_for(f"{SOURCES} != {json.dumps(before)}")
        await click(page, "#undo")
        await page.wait_for(f"{SOURCES} == {json.dumps(before)}")
        # Text of another library; the report says what has no counterpart.
        await click(page, "#paste")
        await page.evaluate(f"document.querySelector('#dialog textarea').value = {json.dumps(TORCHVISION)}")
        await click(page, "#dialog-body button")
        await page.wait_for("document.querySelector('#dialog tr.refused')")
        assert "Lambda" in await page.evaluate("document.querySelector('#dialog tr.refused').textContent")
        await click(page, "#dialog form button")
        assert await page.evaluate(OPS) == ["Resize", "RandomHorizontalFlip"]
        await page.evaluate("document.querySelector('#cards li').focus()")
        down = {"key": "ArrowDown", "windowsVirtualKeyCode": 40, "modifiers": 1}
        await page.call("Input.dispatchKeyEvent", type="keyDown", **down)
        assert await page.evaluate(OPS) == ["RandomHorizontalFlip", "Resize"]
        # Cards within a card: only the inner one moves.
        before = await page.evaluate("document.getElementById('cards').innerHTML")
        await page.evaluate(f"document.getElementById('policy').value = {json.dumps(json.dumps(CHOICE))}")
        await click(page, "#start button")
        await page.wait_for("document.querySelectorAll('.inside li').length == 2")
        await page.evaluate("document.querySelector('.inside li').focus()")
        await page.call("Input.dispatchKeyEvent", type="keyDown", **down)
        await slide(page, ".inside input[type=range]", 0, 40)
        await click(page, ".inside > button")
        await choose(page, ".tile", "Posterize")
        await click(page, "#add")
        await choose(page, ".tile", "Invert")
        assert await page.evaluate(OPS) == ["Resize", "OneOf", "Invert", "Rotate", "Posterize", "Invert", "MixUp"]
        [_, choice, *_] = (await exported(page))["transforms"]
        inner = [{"type": "Invert"}, ROTATED, POSTERIZED]
        assert choice == {"type": "OneOf", "transforms": inner, "weights": [2, 3, 1]}
        await show(page, "Compare")
        for _ in range(5):
            await click(page, "#undo")
        assert await page.evaluate("document.getElementById('cards').innerHTML") == before
        await page.wait_for(f"{FIGURES} == 36")
        await is_accessible(page)
        assert [one["type"] for one in (await exported(page))["transforms"]] == ["RandomHorizontalFlip", "Resize"]
        await is_accessible(page)
        # The address holds the policy.
        await page.wait_for("location.hash.length > 20")
        await page.evaluate("localStorage.clear()")
        address = await page.evaluate("document.querySelector('#view a').href")
        await page.go("about:blank")
        await page.go(address)
        await page.wait_for(f"{FIGURES} == 18")
        assert await page.evaluate(OPS) == ["RandomHorizontalFlip", "Resize"]
        # So does one that is pasted into the open page.
        await click(page, "#cards button[title=Delete]")
        assert await page.evaluate(OPS) == ["Resize"]
        link = json.dumps("#" + address.partition("#")[2])
        await page.wait_for(f"location.hash != {link}")
        await page.evaluate(f"location.hash = {link}")
        await page.wait_for("document.querySelectorAll('#cards li').length == 2")
        await page.wait_for(f"{FIGURES} == 18")
        await page.evaluate("document.documentElement.dataset.theme = 'dark'")
        await is_accessible(page)
        await fits(page, 400)
        assert page.errors == []
        # One from elsewhere runs nothing, and one that holds no policy is passed over.
        for cards in ([{"op": EVIL, "arguments": {EVIL: EVIL}}], [{"op": 5}]):
            state = {"cards": cards, "seed": 0, "epoch": 0, "copies": 2, "images": [0]}
            link = base64.b64encode(json.dumps(state).encode()).decode()
            await page.go("about:blank")
            await page.go(f"{address.partition('#')[0]}#{link}")
            await page.wait_for("document.querySelectorAll('#cards li').length > 0")
            assert await page.evaluate("document.querySelector('[onerror]')") is None
        await page.wait_for(f"{FIGURES} > 2")
        server.close()
        await click(page, "#reseed")
        await page.wait_for("document.getElementById('problem').textContent.includes('does not answer')")

    visit(server, tmp_path, steps)


@pytest.mark.process
def test_ten_thousand_images_are_chosen_from(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    Image.fromarray(photo(20, 20)).save(folder / "00000.png")
    for n in range(1, 10_000):
        os.link(folder / "00000.png", folder / f"{n:05}.png")

    async def steps(page: Page) -> None:
        await click(page, "#choose")
        await page.wait_for("document.querySelectorAll('.images button').length > 10")
        # A tile that has the focus keeps it while others are scrolled past, whose thumbnails are given up.
        await page.evaluate("window.passed = document.querySelectorAll('.images img')[1]")
        await page.evaluate("document.querySelector('.images button').focus()")
        await page.evaluate("const one = document.querySelector('.images'); one.scrollTop = one.scrollHeight")
        await page.wait_for("document.querySelector('.images button[title=\"09999.png\"]')")
        assert await page.evaluate("document.querySelectorAll('.images button').length") < 200
        assert await page.evaluate("document.activeElement.title") == "00000.png"
        assert await page.evaluate("[window.passed.isConnected, window.passed.getAttribute('src')]") == [
            False,
            "data:,",
        ]
        await click(page, '.images button[title="09999.png"]')
        await choose(page, "#dialog-body button", "Show these")
        await page.wait_for("document.querySelector('#view').textContent.includes('09999.png')")
        assert page.errors == []

    visit(vg.studio(folder, "trivialaugment"), tmp_path, steps)


@pytest.mark.process
def test_earlier_work_is_shown(tmp_path: Path) -> None:
    photos, out, table = lay_photos(tmp_path / "photos"), tmp_path / "out", tmp_path / "findings.parquet"
    expansion(photos, out, policy="randaugment").run()
    Image.new("RGB", (32, 32), "red").save(out / "a" / "red.png")
    vg.check(out, out=table)

    async def steps(page: Page) -> None:
        await show(page, "Run")
        assert await page.evaluate("document.querySelector('aside').offsetParent") is None  # tunes nothing here
        await page.wait_for("document.querySelector('select[aria-label=operation]')")
        await page.wait_for(f"{FIGURES} > 0 && [...document.images].every((one) => one.naturalWidth > 0)")
        await click(page, "#view .figure")
        assert "variegate replay" in await page.evaluate("document.querySelector('#dialog-body').textContent")
        await click(page, "#dialog form button")
        await show(page, "Findings")
        await page.wait_for("document.querySelector('#view .mark input')")
        await click(page, "#view .mark input")
        assert await page.evaluate("document.querySelector('#view .mark input').checked")
        await is_accessible(page)
        await fits(page, 400)
        assert page.errors == []

    visit(vg.studio(out, None, findings=table), tmp_path, steps)
