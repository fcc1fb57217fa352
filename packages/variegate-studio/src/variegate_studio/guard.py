"""Guard of the page: visitors of this machine who have the token come in."""

from __future__ import annotations

import hmac
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

HOST = "127.0.0.1"
ENTER = "/enter/"
# Notebooks on this machine show the page in a frame.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors http://127.0.0.1:* http://localhost:*"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Lets in who has the token: by the address once, then by a cookie that no script can read.

    Refuses other hosts (a name of somebody else's that leads here) and other origins.
    """

    def __init__(self, app: Any, token: str, port: int) -> None:
        self._app, self._token, self._cookie = app, token, f"variegate-studio-{port}"
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        answer = (self._answer(Request(scope)) if scope["type"] == "http" else None) or self._app
        await answer(scope, receive, _with_headers(send))

    def _answer(self, request: Request) -> Response | None:
        """None if the request may pass."""
        origin = request.headers.get("origin")
        own = {f"http://{host}" for host in self._hosts}
        if request.headers.get("host") not in self._hosts or (origin and origin not in own):
            return PlainTextResponse("not from here", 403)
        # In the path, because programs that print addresses omit queries, which often hold secrets of storage.
        if (path := request.url.path).startswith(ENTER):
            if not self._is_right(path.removeprefix(ENTER)):
                return PlainTextResponse("wrong token; open the address that the command printed", 403)
            entered = RedirectResponse("/", 303)
            entered.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return entered
        if not self._is_right(request.cookies.get(self._cookie, "")):
            return PlainTextResponse("no token; open the address that the command printed", 403)
        return None

    def _is_right(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _with_headers(send: Any) -> Any:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            message["headers"] += [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
        await send(message)

    return sending
