"""Server of the page: HTTP on loopback only, for anybody who knows the address, which contains a random token.

``GET /TOKEN/`` is the page, ``/TOKEN/state`` the run as JSON, ``/TOKEN/picture`` and ``/TOKEN/frame`` PNG files,
``/TOKEN/scene`` the numbers of a scene in three dimensions as JSON, ``/TOKEN/report.html`` the report. Anything else is
refused: other methods, a wrong token, and a ``Host`` that is not this machine's loopback, so that no page of another
site can reach it by a host name of its own (DNS rebinding).

``POST /TOKEN/paint`` is a wish to set cells, of a run that allows it. It must be JSON and come from the page itself, as
``Origin`` says, which browsers send and other sites cannot forge; it is checked before it is written for the run.

A connection is a guest until its first line shows the token. Guests have a few seconds for that line, and if there are
too many the oldest is closed: clients that do not know the token cannot keep out those that do.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from minga.errors import CaseError
from minga.output.directory import RunDirectory
from minga.view.live.state import RunReader

__all__ = ["LiveServer"]

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OWN = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'"
_REPORT = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; media-src data:"
_PARTS = {
    "": ("live/page.html", "text/html; charset=utf-8"),
    "page.js": ("live/page.js", "text/javascript; charset=utf-8"),
    "scene.js": ("report/scene.js", "text/javascript; charset=utf-8"),
    "sections.js": ("report/sections.js", "text/javascript; charset=utf-8"),
    "solid.js": ("report/solid.js", "text/javascript; charset=utf-8"),
    "paint.js": ("live/paint.js", "text/javascript; charset=utf-8"),
    "page.css": ("live/page.css", "text/css; charset=utf-8"),
    "palette.css": ("pages/palette.css", "text/css; charset=utf-8"),
}
_MOST_GUESTS = 32
_MOST_MEMBERS = 64
_LARGEST = 1 << 17
"""Largest number of bytes of a request to paint."""
_PATIENCE = 3.0
"""Seconds that a guest has to show the token, even if it arrives in pieces."""
_TIMEOUT = 20.0
"""Seconds that a browser with the token may be silent, or may not accept an answer."""


class LiveServer(ThreadingHTTPServer):
    """Server of one run.

    Raises
    ------
    CaseError
        If the port is taken.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, directory: RunDirectory, port: int = 0) -> None:
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            reason = error.strerror if isinstance(error, OSError) else "there is no such port"
            raise CaseError(
                f"no page can be served on port {port}: {reason}", key="--port", remedy="leave it out for a free one"
            ) from error
        self.reader = RunReader(directory)
        self.token = secrets.token_urlsafe(16)
        self._guests: dict[socket.socket, float] = {}
        """Connections that have not shown the token, the oldest first, with the times of their arrival."""
        self._members: set[socket.socket] = set()
        self._door = threading.Lock()
        self.asked = time.monotonic()
        """Time of a page's last request."""

    @property
    def address(self) -> str:
        """Address to open in a browser."""
        return f"http://127.0.0.1:{self.server_address[1]}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a separate thread, so that a slow browser does not hold up the server."""
        with self._door:
            if len(self._guests) >= _MOST_GUESTS:
                self._dismiss(next(iter(self._guests)))
            self._guests[request] = time.monotonic()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._door:
                self._guests.pop(request, None)
                self._members.discard(request)

    def service_actions(self) -> None:
        """Close the connections of guests that were silent for too long; called regularly."""
        with self._door:
            late = time.monotonic() - _PATIENCE
            for guest in [guest for guest, since in self._guests.items() if since < late]:
                self._dismiss(guest)

    def admit(self, connection: socket.socket) -> bool:
        """Make a connection that has shown the token a member; return False if there are too many."""
        with self._door:
            if connection not in self._members and len(self._members) >= _MOST_MEMBERS:
                return False
            self._guests.pop(connection, None)
            self._members.add(connection)
            return True

    def _dismiss(self, guest: socket.socket) -> None:
        """End the wait of a guest's thread, which then closes the connection."""
        del self._guests[guest]
        with contextlib.suppress(OSError):
            guest.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that disconnects in the middle of an answer."""

    def serve_until_forgotten(self, patience: float) -> None:
        """Serve until the run is over and no page has asked for ``patience`` seconds."""
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()
        ended: float | None = None
        while ended is None or time.monotonic() - max(ended, self.asked) < patience:
            time.sleep(min(1.0, patience))
            if ended is None and self.reader.over:
                ended = time.monotonic()
        self.shutdown()


_STRANGE = b"This address is not the one that minga printed.\n"


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    raw_requestline: bytes
    protocol_version = "HTTP/1.1"
    server_version = "minga"
    sys_version = ""
    timeout = _TIMEOUT

    def parse_request(self) -> bool:
        """Read the first line, and the rest only if that line contains the token."""
        words = self.raw_requestline.split(None, 2)
        token = words[1].removeprefix(b"/").partition(b"?")[0].partition(b"/")[0] if len(words) > 1 else b""
        known = hmac.compare_digest(token, self.server.token.encode())
        if known and self.server.admit(self.connection):
            return super().parse_request()
        self.requestline, self.request_version, self.command = "", self.protocol_version, ""
        if known:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, b"Too many pages look at this run.\n", Connection="close")
        else:
            self._answer(HTTPStatus.FORBIDDEN, _STRANGE, Connection="close")
        return False

    def do_GET(self) -> None:
        """Answer one request with a valid token."""
        address = urlsplit(self.path)
        token, slash, page = address.path.removeprefix("/").partition("/")
        if not self._is_meant():
            self._answer(HTTPStatus.FORBIDDEN, _STRANGE, Connection="close")
        elif not slash:
            self._answer(HTTPStatus.PERMANENT_REDIRECT, b"", Location=f"/{token}/")
        else:
            self.server.asked = time.monotonic()
            try:
                self._page(page, {key: values[-1] for key, values in parse_qs(address.query).items()})
            except (ConnectionError, TimeoutError):
                raise  # the browser disconnected
            except Exception as error:
                text = f"The run could not be read: {type(error).__name__}: {error}\n"
                self._answer(HTTPStatus.INTERNAL_SERVER_ERROR, text.encode())

    def do_POST(self) -> None:
        """Take a wish to set cells, which is all that a page can do to a run."""
        length = self.headers.get("Content-Length", "")
        page = urlsplit(self.path).path.removeprefix("/").partition("/")[2]
        if not self._is_meant() or not self._is_own() or page != "paint":
            self._answer(HTTPStatus.FORBIDDEN, _STRANGE, Connection="close")
        elif not length.isascii() or not length.isdigit() or len(length) > 9 or int(length) > _LARGEST:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"Paint fewer cells at once.\n", Connection="close")
        else:
            self.server.asked = time.monotonic()
            said = self.server.reader.paint(self.rfile.read(int(length)))
            status = HTTPStatus.OK if said is None else HTTPStatus.BAD_REQUEST
            self._answer(status, (said or "painted").encode() + b"\n")

    def _is_own(self) -> bool:
        """Return whether the page itself sends a request, and not a form or a script of another site."""
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip()
        own = f"http://{self.headers.get('Host', '')}"
        return self.headers.get("Origin", "") == own and kind == "application/json"

    def _is_meant(self) -> bool:
        """Return whether the browser addressed this machine's loopback; the port may differ, as with a tunnel."""
        try:
            return urlsplit(f"//{self.headers.get('Host', '')}").hostname in _LOOPBACK
        except ValueError:
            return False

    def _page(self, page: str, query: dict[str, str]) -> None:
        reader = self.server.reader
        if page in _PARTS:
            name, kind = _PARTS[page]
            self._answer(HTTPStatus.OK, files("minga.view").joinpath(name).read_bytes(), kind)
        elif page == "state":
            state = reader.state(query.get("field", ""), look=query.get("look") == "1")
            self._answer(HTTPStatus.OK, json.dumps(state).encode(), "application/json")
        elif page == "scene":
            self._answer(HTTPStatus.OK, reader.scene(), "application/json")
        elif page == "picture" and (content := reader.picture(query.get("key", ""))):
            self._answer(HTTPStatus.OK, content, "image/png")
        elif page == "frame" and (drawn := reader.frame(query.get("field", ""), _number(query.get("index", "")))):
            self._answer(HTTPStatus.OK, drawn.content, "image/png")
        elif page == "report.html" and reader.directory.report.is_file():
            report = reader.directory.report.read_bytes()
            self._answer(HTTPStatus.OK, report, "text/html; charset=utf-8", policy=_REPORT)
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"There is nothing here.\n")

    def _answer(
        self,
        status: HTTPStatus,
        content: bytes,
        kind: str = "text/plain; charset=utf-8",
        policy: str = _OWN,
        **headers: str,
    ) -> None:
        self.send_response(status)
        headers |= {
            "Content-Type": kind,
            "Content-Length": str(len(content)),
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "X-Frame-Options": "DENY",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: the terminal belongs to the run."""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
