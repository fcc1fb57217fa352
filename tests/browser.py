"""A real browser without a window, told what to do by its DevTools protocol.

aiohttp, which tests need anyway, speaks WebSocket; the protocol over it is JSON. Packages that drive browsers bring
10 to 50 MB, or want a second program beside the browser.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE_S = 60.0


def find_browser() -> str:
    """Its path; skips the test where there is none, and fails it where VARIEGATE_REQUIRE_BROWSER=1."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    said = f"needs a browser: one of {', '.join(NAMES)}"
    if os.environ.get("VARIEGATE_REQUIRE_BROWSER") == "1":
        pytest.fail(said)
    pytest.skip(f"{said} (VARIEGATE_REQUIRE_BROWSER=1 makes this an error)")


class Page:
    """One page. ``requests``: addresses that were asked for; ``errors``: what scripts and the console complained of."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, session: str) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._socket, self._session, self._calls = socket, session, 0
        self._loaded = False

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._calls += 1
        number = self._calls
        await self._socket.send_json({"id": number, "method": method, "params": params, "sessionId": self._session})
        while True:
            answer = await self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    async def _next(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self._socket.receive_json(timeout=_PATIENCE_S)
        params = answer.get("params", {})
        match answer.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(str(params["exceptionDetails"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.errors.append(params["entry"]["text"])
            case "Runtime.consoleAPICalled":
                self.errors.append(str(params["args"]))
            case "Page.loadEventFired":
                self._loaded = True
        return answer

    async def open(self, place: Path | str, width: int = 1200, height: int = 900) -> None:
        """A file, or an address."""
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        await self.resize(width, height)
        await self.go(place if isinstance(place, str) else place.as_uri())

    async def go(self, address: str) -> None:
        self._loaded = False
        await self.call("Page.navigate", url=address)
        while not self._loaded:
            await self._next()

    async def wait_for(self, condition: str) -> None:
        """Until JavaScript finds it true."""
        waiting = f"(async () => {{ while (!({condition})) await new Promise((done) => setTimeout(done, 20)); }})()"
        await asyncio.wait_for(self.evaluate(waiting), _PATIENCE_S)

    async def resize(self, width: int, height: int) -> None:
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def evaluate(self, expression: str) -> Any:
        """The value of JavaScript; of a promise, what it comes to."""
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def click(self, selector: str) -> None:
        """With the mouse, where the element is."""
        place = await self.evaluate(
            f"""(() => {{ const e = document.querySelector({selector!r});
            e.scrollIntoView({{block: "center", behavior: "instant"}});
            const box = e.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]; }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    async def type(self, text: str) -> None:
        for letter in text:
            await self.call("Input.dispatchKeyEvent", type="keyDown", text=letter, key=letter)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=letter)

    async def press(self, key: str, code: int, text: str = "") -> None:
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, text=text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)


@asynccontextmanager
async def opened_page(browser: str, profile: Path) -> AsyncIterator[Page]:
    """``profile``: an empty folder for what the browser keeps."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    options += ["--disable-background-networking", f"--user-data-dir={profile}", "--remote-debugging-port=0"]
    process = await asyncio.create_subprocess_exec(
        browser,
        *options,
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        address = await asyncio.wait_for(_address_of(process), _PATIENCE_S)
        async with aiohttp.ClientSession() as client, client.ws_connect(address, max_msg_size=0) as socket:
            yield Page(socket, await _attached(socket))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with those that it has started
        await process.wait()


async def _address_of(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    said = []
    async for line in process.stderr:
        said.append(line.decode(errors="replace"))
        if said[-1].startswith("DevTools listening on "):
            return said[-1].split()[-1]
    raise RuntimeError(f"the browser has ended: {''.join(said)}")


async def _attached(socket: aiohttp.ClientWebSocketResponse) -> str:
    """The session of a new page."""
    session: str | None = None
    await socket.send_json({"id": -1, "method": "Target.createTarget", "params": {"url": "about:blank"}})
    while session is None:
        answer = await socket.receive_json(timeout=_PATIENCE_S)
        if answer.get("id") == -1:
            attach = {"targetId": answer["result"]["targetId"], "flatten": True}
            await socket.send_json({"id": -2, "method": "Target.attachToTarget", "params": attach})
        elif answer.get("id") == -2:
            session = answer["result"]["sessionId"]
    return session
