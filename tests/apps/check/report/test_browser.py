"""The report in a real browser: it works without a network, its table is sorted and filtered by mouse and keyboard."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.apps.check.report.made import EVIL, small_result
from tests.browser import Page, find_browser, opened_page
from variegate.apps.check.report import write_report
from variegate.apps.check.selection import LIST_PREFIX
from variegate.data.filtered import read_names

_CELLS = '[...document.querySelectorAll("#findings tbody tr")].map((row) => row.cells[%d].textContent)'


@pytest.mark.process
def test_the_report_in_a_browser(tmp_path: Path) -> None:
    browser = find_browser()
    write_report(tmp_path / "report.html", small_result())

    async def visit() -> None:
        async with opened_page(browser, tmp_path / "profile") as page:
            await page.open(tmp_path / "report.html")
            await _shows_pictures(page)
            await _sorts(page)
            await _filters(page)
            await _makes_a_list(page, tmp_path)
            await _fits_a_phone(page)
            outside = [address for address in page.requests if not address.startswith("data:")]
            assert outside == [(tmp_path / "report.html").as_uri()]
            assert page.errors == []
            await _refuses_the_network(page)

    asyncio.run(visit())


async def _shows_pictures(page: Page) -> None:
    await page.evaluate('document.querySelectorAll("img").forEach((one) => { one.loading = "eager"; })')
    sizes = await page.evaluate(
        "Promise.all([...document.images].map(async (one) => { await one.decode(); return [one.naturalWidth, "
        "one.getBoundingClientRect().width]; }))"
    )
    assert len(sizes) > 30
    assert all(natural == 224 and shown > 100 for natural, shown in sizes)
    # A title in the names' own characters, and no element made of them.
    assert await page.evaluate('document.querySelector("#corrupt .file").textContent') == EVIL
    assert await page.evaluate("document.scripts.length") == 2


async def _sorts(page: Page) -> None:
    before = await page.evaluate(_CELLS % 1)
    assert len(before) == 63
    await page.click("#findings thead th:nth-child(2) button")
    ascending = await page.evaluate(_CELLS % 1)
    assert ascending != before
    # Signs stand before digits and letters; rows without a name, of whole splits, last.
    named = sorted((name for name in before if name), key=lambda name: (name != EVIL, name))
    assert ascending == [*named, ""]
    assert await page.evaluate('document.querySelector("#findings th:nth-child(2)").ariaSort') == "ascending"
    await page.press("Enter", 13, "\r")  # the head has the focus
    descending = await page.evaluate(_CELLS % 1)
    assert descending == [*reversed(named), ""]
    await page.click("#findings thead th:nth-child(5) button")
    measures = [float(one) for one in await page.evaluate(_CELLS % 4) if one]
    assert measures == sorted(measures)


async def _filters(page: Page) -> None:
    await page.click("#filter")
    await page.type("Leaks CATS")
    assert await page.evaluate(_CELLS % 1) == ["cats/003.jpg", "cats/005.jpg"]
    assert await page.evaluate('document.querySelector("#shown").textContent') == "2 of 63 findings"
    await page.evaluate('document.querySelector("#filter").value = ""')
    await page.evaluate(
        '(() => { const kind = document.querySelector("#kind"); kind.value = "contradictions"; '
        'kind.dispatchEvent(new Event("input")); })()'
    )
    assert await page.evaluate(_CELLS % 0) == ["Contradictions"]


async def _makes_a_list(page: Page, folder: Path) -> None:
    """Ticks of a kind and of images make the list that ``--exclude`` reads."""
    await page.evaluate('document.querySelector("[data-kind=duplicates]").click()')
    await page.evaluate('document.querySelector("[data-kind=corrupt]").click()')
    await page.evaluate("document.querySelector(\".group [data-file='cats/021.jpg']\").click()")
    assert await page.evaluate('document.querySelector("[data-kind=duplicates]").indeterminate') is True
    assert await page.evaluate('document.querySelector("#dropped").textContent') == "19 images to exclude"
    list_file = folder / "excluded.txt"
    list_file.write_text(await page.evaluate('document.querySelector("#text").value'), "utf-8")
    names, _ = read_names(list_file)
    # The largest of the equal files stays, and the one that was unticked.
    assert set(names) == {EVIL, "cats/020.jpg", *(f"cats/{n:03d}.jpg" for n in range(22, 39))}
    assert list_file.read_text("utf-8").startswith(LIST_PREFIX)
    await page.evaluate('document.querySelector("#clear").click()')
    assert await page.evaluate('document.querySelector("#list").hidden') is True


async def _fits_a_phone(page: Page) -> None:
    await page.resize(360, 740)
    wide, room = await page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room


async def _refuses_the_network(page: Page) -> None:
    """Last: the browser complains of what the page's policy forbids."""
    asked = 'fetch("https://example.invalid/").then(() => "answered", () => "refused")'
    assert await page.evaluate(asked) == "refused"
    assert any("Content Security Policy" in error for error in page.errors)
    assert "https://example.invalid/" not in page.requests
