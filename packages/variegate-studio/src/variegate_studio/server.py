"""The studio's server: one page and its calls, for this machine alone, behind a token."""

from __future__ import annotations

import asyncio
import json
import secrets
import shlex
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import variegate
from variegate.apps.check.report import THEME
from variegate.checks import PIXEL_VERSION
from variegate.errors import DecodeError
from variegate.jobs.augment.plan import check_writable
from variegate.ops.base import Transform
from variegate.policies.load import POLICY_NAMES
from variegate.program.depth import Depth
from variegate_studio.cards import CardError, CardsOfText, cards_of, to_cards, to_policy, written
from variegate_studio.catalogue import FORMATS, catalogue
from variegate_studio.drawing import Cancelled, Studio
from variegate_studio.guard import ENTER, HOST, Guard
from variegate_studio.photos import THUMBNAIL
from variegate_studio.requests import read_integer
from variegate_studio.runs import SHOWN_SIDE, StudioView

_STATIC = Path(__file__).parent / "static"
_MOST_BODY = 1 << 20
_MOST_IMAGES = 500  # listed at a time
_MOST_PAGES = 1000
_LONGEST = 400  # reason for which a transform was skipped
_LISTING = {"first": 0, "count": 100, "seed": 0}
_EXPORTED = {"copies": 1, "seed": 0, "epoch": 0}
_BYTES = "application/octet-stream"
_FOR_EVER = {"Cache-Control": "private, max-age=31536000, immutable"}
Call = Callable[[Any, Callable[[], None]], Any]  # the body of a request, and a function to call before each picture
Handler = Callable[[Request], Awaitable[Response]]


class Json(Response):
    """ASCII, so that any name or text is valid."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class Page:
    """Answers of the page's calls."""

    def __init__(
        self, studio: Studio, policy: Transform | None, size: int | None, views: Sequence[StudioView] = ()
    ) -> None:
        self._studio = studio
        self._size = size
        self._views = views
        self._cards = [] if policy is None else cards_of(policy)
        self._generations: dict[str, int] = {}  # the newest of each page
        # One draw after another, on all cores; one that is superseded ends at its next picture.
        self._drawing = asyncio.Lock()

    def routes(self) -> list[Route | Mount]:
        calls: dict[str, Call] = {
            "policy": lambda body, _: _cards_answer(to_cards(str(body.get("text", "")))),
            "grid": self._studio.grid,
            "sweep": lambda body, _: self._studio.sweep(body),
            "catalogue": lambda body, _: self._studio.thumbnails(body),
            "strongest": self._studio.strongest,
            "counterparts": self._studio.counterparts,
            "export": lambda body, _: self._export(body),
            "sheet": lambda body, _: self._studio.sheet(body),
        }
        calls |= {view.name: _answer_of(view) for view in self._views}
        posts = [Route(f"/api/{name}", self._call(call), methods=["POST"]) for name, call in calls.items()]
        return [
            Route("/", self._index),
            Route("/api/state", self._state),
            Route("/api/images", self._images),
            Route("/p/{address}", self._picture),
            Route("/t/{side}/{address}", self._thumbnail),
            *posts,
            Route("/static/theme.css", self._theme),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ]

    def _call(self, call: Call) -> Handler:
        async def answer(request: Request) -> Response:
            try:
                body = await _read_body(request)
                page = str(body.get("page", ""))[:64]
                generation = body.get("generation")
                if type(generation) is int:
                    if page not in self._generations and len(self._generations) >= _MOST_PAGES:
                        self._generations.clear()
                    self._generations[page] = max(generation, self._generations.get(page, generation))

                def proceed() -> None:
                    if type(generation) is int and self._generations.get(page, generation) > generation:
                        raise Cancelled

                async with self._drawing:
                    proceed()
                    made = await asyncio.to_thread(call, body, proceed)
            except Cancelled:
                return Json({"superseded": True})  # not an error, which the browser's console would show
            except CardError as error:
                return Json({"error": str(error), "card": error.card}, 400)
            except (DecodeError, ValueError) as error:
                return Json({"error": str(error), "card": None}, 400)
            return Response(made, media_type=_BYTES) if isinstance(made, bytes) else Json(made)

        return answer

    async def _index(self, _: Request) -> Response:
        return Response((_STATIC / "index.html").read_bytes(), media_type="text/html")

    async def _theme(self, _: Request) -> Response:
        return FileResponse(THEME)

    async def _state(self, _: Request) -> Response:
        photos = self._studio.photos
        source = {
            "name": photos.name,
            "count": photos.count,
            "classes": list(photos.classes),
            "key": photos.key,
            "has_targets": photos.has_targets,
            "notes": photos.notes,
        }
        return Json(
            {
                "version": variegate.__version__,
                "pixel_version": PIXEL_VERSION,
                "source": source,
                "policies": sorted(POLICY_NAMES),
                "cards": self._cards,
                "size": self._size,
                "views": {view.name: view.about() for view in self._views},
                "catalogue": catalogue(),
                "formats": sorted(FORMATS),
            }
        )

    async def _images(self, request: Request) -> Response:
        """A page of search results: their total, and ``count`` of them from ``first`` on."""
        first, count, seed = (_read_number(request, name, default) for name, default in _LISTING.items())
        wanted = {name: request.query_params.get(name, "") for name in ("text", "label")}
        order = request.query_params.get("order", "source")
        try:
            found = await asyncio.to_thread(self._studio.photos.search, **wanted, order=order, seed=seed)
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        page = found[first : first + min(count, _MOST_IMAGES)]
        return Json({"count": len(found), "images": [self._studio.photos.listed(index) for index in page]})

    async def _picture(self, request: Request) -> Response:
        address = request.path_params["address"]
        try:
            made = self._studio.kept(address) or await asyncio.to_thread(self._studio.picture, address)
        except (LookupError, ValueError, DecodeError):
            return PlainTextResponse("no such picture", 404)
        return Response(made, media_type="image/jpeg", headers=_FOR_EVER)

    async def _thumbnail(self, request: Request) -> Response:
        photos = self._studio.photos
        side = request.path_params["side"]
        index, _, stamp = request.path_params["address"].partition("-")
        is_address = side in (str(THUMBNAIL), str(SHOWN_SIDE)) and index.isdecimal() and len(index) < 20
        if not is_address or int(index) >= photos.count or stamp != photos.stamp(int(index)):
            return PlainTextResponse("no such image", 404)
        made = await asyncio.to_thread(photos.thumbnail, int(index), int(side))
        return Response(made, media_type="image/jpeg", headers=_FOR_EVER)

    def _export(self, body: Any) -> dict[str, str]:
        tuned = to_policy(body.get("cards"))
        photos = self._studio.photos
        options: dict[str, Any] = {"policy": "policy.json"}
        if photos.annotations is not None:
            options["annotations"] = photos.annotations
        for name, default in _EXPORTED.items():
            options[name] = read_integer(body, name, default, 0, 2**32 - 1)
        source = "PHOTOS" if photos.place is None else shlex.quote(str(photos.place))
        typed = [f"--{name} {shlex.quote(str(value))}" for name, value in options.items()]
        command = " ".join(["variegate augment", source, "AUGMENTED", *typed])
        try:
            check_writable(tuned.transform, 0, photos.has_targets, Depth.UINT8)
        except ValueError as error:
            command = f"# variegate augment does not take this policy: {error}"
        return {**written(tuned), "command": command}


def _answer_of(view: StudioView) -> Call:
    return lambda body, _: view.answer(body)


def _cards_answer(found: CardsOfText) -> dict[str, Any]:
    """Cards, and a row [place, remark, outcome] for each transform of another library: close, refused, the same."""
    report = found.report
    if report is None:
        return {"cards": found.cards, "report": None}
    rows = []
    for place, differences in report.approximate.items():
        rows.append([place, "; ".join(differences), "close"])
    for place, instead in report.refused.items():
        rows.append([place, _refusal(instead), "refused"])
    for place in report.converted:
        rows.append([place, "", "the same"])
    return {"cards": found.cards, "report": rows}


def _refusal(instead: str) -> str:
    return f"use {instead}" if len(instead) < _LONGEST else "not a transform that is known here"


def _read_number(request: Request, name: str, default: int) -> int:
    """A number of the query, from 0 on. Raises HTTPException."""
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise HTTPException(400, f"{name}: accepted: whole numbers")
    return int(text)


async def _read_body(request: Request) -> Mapping[str, Any]:
    """Raises CardError."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise CardError("accepted: a body of application/json")
    text = b""
    async for part in request.stream():
        text += part
        if len(text) > _MOST_BODY:
            raise CardError(f"more than {_MOST_BODY:,} bytes; accepted: a smaller policy")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CardError(f"accepted: JSON; {error}") from None
    if not isinstance(body, dict):
        raise CardError("accepted: a JSON object")
    return body


class StudioServer:
    """Serves on the loopback interface from its own thread until ``close``; ``url`` lets in."""

    def __init__(
        self,
        studio: Studio,
        policy: Transform | None = None,
        size: int | None = 224,
        port: int = 0,
        views: Sequence[StudioView] = (),
    ) -> None:
        # Naming TCP lets asyncio switch off the waiting for more to send, 40 ms a picture.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((HOST, port))
        except OSError as error:
            self._socket.close()
            raise OSError(f"port {port}: {error.strerror}; accepted: one that is free, or 0") from None
        self._socket.listen(128)  # visitors wait until the server has started
        self.port = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(16)
        self.url = f"http://{HOST}:{self.port}{ENTER}{token}"
        app = Guard(Starlette(routes=Page(studio, policy, size, views).routes()), token, self.port)
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Block until Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()

    def _repr_html_(self) -> str:
        """Embed the page in a notebook of this machine."""
        return f'<iframe src="{self.url}" width="100%" height="800" style="border: 0"></iframe>'
