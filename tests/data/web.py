"""A web server on this machine for tests: files with byte ranges, and every failure that a path asks for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# A path may begin with one of these: /404/a.tar answers so, /cut/a.tar breaks off after half of the file,
# /stalled/a.tar sends nothing after it, /whole/a.tar answers a request for a range with all of the file, and
# /unsized/a.tar does not say how long it is.
_STATUS = ("403", "404", "500")
_WAYS = (*_STATUS, "cut", "stalled", "whole", "unsized")
_STALLED_SECONDS = 20


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """The server's address, and the requests that it was sent: "GET /a.tar bytes=0-9"."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def _answer(self, with_body: bool) -> None:
            asked = self.headers.get("Range")
            requests.append(" ".join(filter(None, (self.command, self.path, asked))))
            _, first, *rest = self.path.partition("?")[0].split("/")
            data = files.get("/".join(rest) if rest and first in _WAYS else self.path[1:].split("?")[0])
            if first in _STATUS or data is None:
                self.send_error(int(first) if first in _STATUS else 404)
                return
            begin, end = 0, len(data)
            if asked and first not in ("whole", "unsized"):
                low, _, high = asked.removeprefix("bytes=").partition("-")
                begin, end = int(low), min(int(high or end) + 1, end)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
            else:
                self.send_response(200)
            if first != "unsized":
                self.send_header("Content-Length", str(end - begin))
            self.end_headers()
            if with_body:
                body = data[begin:end]
                self.wfile.write(body[: len(body) // 2] if first in ("cut", "stalled") else body)
                if first == "stalled":
                    time.sleep(_STALLED_SECONDS)
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # Polled often, so that shutting down does not wait.
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", requests
    finally:
        server.shutdown()
        server.server_close()
