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
from variegate.apps.curate.report import THEME
from variegate.checks import PIXEL_VERSION
from variegate.errors import DecodeError
from variegate.jobs.augment.plan import check_writable
from variegate.ops.base import Transform
from variegate.policies.load import POLICY_NAMES
from variegate_studio.cards import CardError, FoundCards, cards_of, to_cards, to_policy, written
from variegate_studio.catalogue import FORMATS, catalogue
from variegate_studio.drawing import Studio, Superseded
from variegate_studio.guard import ENTER, HOST, Guard
from variegate_studio.photos import THUMBNAIL
from variegate_studio.requests import policy_hash, whole_of
from variegate_studio.runs import SHOWN_SIDE, StudioView

_STATIC = Path(__file__).parent / "static"
_MOST_BODY = 1 << 20
_MOST_IMAGES = 500  # listed at a time
_MOST_PAGES, _LONGEST = 1000, 400
_EXPORTED = {"copies": 1, "seed": 0, "epoch": 0}
_BYTES = "application/octet-stream"
_FOR_EVER = {"Cache-Control": "private, max-age=31536000, immutable"}
Call = Callable[[Any, Callable[[], None]], Any]  # what is asked for, and what to call from time to time
Handler = Callable[[Request], Awaitable[Response]]


class Json(Response):
    """In ASCII, which holds whatever a name or a text has."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class Page:
    """Answers of the page's calls."""

    def __init__(
        self, studio: Studio, policy: Transform | None, size: int | None, views: Sequence[StudioView] = ()
    ) -> None:
        self._studio, self._size, self._views = studio, size, views
        self._cards = [] if policy is None else cards_of(policy)
        self._generations: dict[str, int] = {}  # the newest of each page
        # One draw after another, on all cores; one that is superseded ends at its next picture.
        self._drawing = asyncio.Lock()

    def routes(self) -> list[Route | Mount]:
        calls: dict[str, Call] = {
            "policy": lambda asked, _: _found(to_cards(str(asked.get("text", "")))),
            "grid": self._studio.grid,
            "sweep": lambda asked, _: self._studio.sweep(asked),
            "catalogue": lambda asked, _: self._studio.thumbnails(asked),
            "strongest": self._studio.strongest,
            "counterparts": self._studio.counterparts,
            "export": lambda asked, _: self._export(asked),
            "sheet": lambda asked, _: self._studio.sheet(asked),
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
                asked = await _asked(request)
                page, generation = str(asked.get("page", ""))[:64], asked.get("generation")
                if type(generation) is int:
                    if page not in self._generations and len(self._generations) >= _MOST_PAGES:
                        self._generations.clear()
                    self._generations[page] = max(generation, self._generations.get(page, generation))

                def proceed() -> None:
                    if type(generation) is int and self._generations.get(page, generation) > generation:
                        raise Superseded

                async with self._drawing:
                    proceed()
                    made = await asyncio.to_thread(call, asked, proceed)
            except Superseded:
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
        about = {"name": photos.name, "count": photos.count, "classes": list(photos.classes), "key": photos.key}
        return Json(
            {
                "version": variegate.__version__,
                "pixel_version": PIXEL_VERSION,
                "source": {**about, "has_targets": photos.has_targets, "notes": photos.notes},
                "policies": sorted(POLICY_NAMES),
                "cards": self._cards,
                "size": self._size,
                "views": {view.name: view.about() for view in self._views},
                "catalogue": catalogue(),
                "formats": sorted(FORMATS),
            }
        )

    async def _images(self, request: Request) -> Response:
        photos, (first, count) = self._studio.photos, _stretch(request)
        wanted = range(first, min(first + min(count, _MOST_IMAGES), photos.count))
        return Json({"images": [photos.listed(index) for index in wanted]})

    async def _picture(self, request: Request) -> Response:
        address = request.path_params["address"]
        try:
            made = self._studio.kept(address) or await asyncio.to_thread(self._studio.picture, address)
        except (LookupError, ValueError, DecodeError):
            return PlainTextResponse("no such picture", 404)
        return Response(made, media_type="image/jpeg", headers=_FOR_EVER)

    async def _thumbnail(self, request: Request) -> Response:
        side, (index, _, stamp) = request.path_params["side"], request.path_params["address"].partition("-")
        is_there = side in (str(THUMBNAIL), str(SHOWN_SIDE)) and index.isdecimal() and len(index) < 20
        if not is_there or int(index) >= self._studio.photos.count or stamp != self._studio.photos.stamp(int(index)):
            return PlainTextResponse("no such image", 404)
        made = await asyncio.to_thread(self._studio.photos.thumbnail, int(index), int(side))
        return Response(made, media_type="image/jpeg", headers=_FOR_EVER)

    def _export(self, asked: Any) -> dict[str, str]:
        tuned = to_policy(asked.get("cards"))
        place = self._studio.photos.place
        given = {"policy": "policy.json", "annotations": self._studio.photos.annotations}
        given |= {name: whole_of(asked, name, default, 0, 2**32 - 1) for name, default in _EXPORTED.items()}
        options = "".join(f" --{name} {shlex.quote(str(value))}" for name, value in given.items() if value is not None)
        command = f"variegate augment {'PHOTOS' if place is None else shlex.quote(str(place))} AUGMENTED{options}"
        try:
            check_writable(tuned.transform, 0, self._studio.photos.has_targets)
        except ValueError as error:
            command = f"# variegate augment does not take this policy: {error}"
        return {**written(tuned), "command": command, "hash": policy_hash(tuned.transform)}


def _answer_of(view: StudioView) -> Call:
    return lambda asked, _: view.answer(asked)


def _found(found: FoundCards) -> dict[str, Any]:
    report = found.report
    close, refused = ({}, {}) if report is None else (report.approximate, report.refused)
    told = [[place, "; ".join(one.lstrip(": ") for one in how), "close"] for place, how in close.items()]
    told += [[place, _skipped(instead), "refused"] for place, instead in refused.items()]
    same = [[place, "", "the same"] for place in (() if report is None else report.converted)]
    return {"cards": found.cards, "report": None if report is None else [*told, *same]}


def _skipped(instead: str) -> str:
    return f"skipped; accepted: {instead}" if len(instead) < _LONGEST else "skipped: not a transform that is known here"


def _stretch(request: Request) -> tuple[int, int]:
    """``first`` and ``count`` of a list, from 0 on. Raises HTTPException."""
    given = request.query_params
    try:
        return max(int(given.get("first", "0")), 0), max(int(given.get("count", "100")), 0)
    except ValueError:
        raise HTTPException(400, "first, count: accepted: whole numbers") from None


async def _asked(request: Request) -> Mapping[str, Any]:
    """Raises CardError."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise CardError("accepted: a body of application/json")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BODY:
            raise CardError(f"more than {_MOST_BODY:,} bytes; accepted: a smaller policy")
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CardError(f"accepted: JSON; {error}") from None
    if not isinstance(asked, dict):
        raise CardError("accepted: a JSON object")
    return asked


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
        self.port, token = self._socket.getsockname()[1], secrets.token_urlsafe(16)
        self.url = f"http://{HOST}:{self.port}{ENTER}{token}"
        app = Guard(Starlette(routes=Page(studio, policy, size, views).routes()), token, self.port)
        config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Until Ctrl-C."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()

    def _repr_html_(self) -> str:
        """In a notebook of this machine."""
        return f'<iframe src="{self.url}" width="100%" height="800" style="border: 0"></iframe>'
