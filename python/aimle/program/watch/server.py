"""Answers the browser: the page, the runs as JSON, and their pictures.

The server is for this machine only. It listens on the loopback address, and refuses requests whose
`Host` is another name, so that a web page elsewhere cannot reach it through a name of its own that
it points here (DNS rebinding). Paths are looked up in tables and never become names of files.
"""

import json
import os
import secrets
import socketserver
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from urllib.parse import parse_qs, unquote, urlsplit

from aimle.program.report.stylesheet import CSS
from aimle.program.watch.reader import RunsBelow

ADDRESS = "127.0.0.1"
_LOOPBACK_NAMES = {"127.0.0.1", "localhost", "::1"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def _own_file(name: str) -> str:
    return (resources.files("aimle.program.watch") / name).read_text(encoding="utf-8")


def _files() -> dict[str, tuple[str, bytes]]:
    """What never changes: the type and the content, by path."""
    return {
        "/": ("text/html; charset=utf-8", _own_file("page.html").encode()),
        "/page.css": ("text/css; charset=utf-8", (CSS + _own_file("page.css")).encode()),
        "/page.js": ("text/javascript; charset=utf-8", _own_file("page.js").encode()),
    }


def is_loopback(host: str | None) -> bool:
    """Whether a `Host` header names this machine; its port may be that of a tunnel."""
    try:
        return urlsplit(f"//{host}").hostname in _LOOPBACK_NAMES if host else False
    except ValueError:
        return False


class Server(ThreadingHTTPServer):
    """Serves the page of a folder; ends with the process that started it."""

    daemon_threads = True

    def __init__(self, runs: RunsBelow, port: int) -> None:
        self._runs = runs
        self._reading = threading.Lock()
        self._parent = os.getppid()
        self._started = secrets.token_hex(8)
        self.files = _files()
        super().__init__((ADDRESS, port), _Handler)

    def server_bind(self) -> None:
        """Without looking up the machine's name, which may take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = ADDRESS, self.server_address[1]

    def service_actions(self) -> None:
        if os.getppid() != self._parent:
            sys.exit(1)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that closes its connection is no error; others are shown on one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError):
            print(f"a request failed: {error!r}", file=sys.stderr)

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"

    def runs_since(self, version: int) -> bytes:
        with self._reading:
            changes = self._runs.changes_since(version)
        # Versions are those of this process: the page starts again if another one answers.
        answer = {"started": self._started, **changes}
        return json.dumps(answer, allow_nan=False, separators=(",", ":")).encode()

    def picture(self, id: str, name: str) -> bytes | None:
        with self._reading:
            return self._runs.picture(id, name)


def bind(runs: RunsBelow, port: int) -> tuple[Server, str]:
    """A server on this port, or on a free one and the reason why it is not this port."""
    try:
        return Server(runs, port), ""
    except OSError as error:
        if port == 0:
            raise
        return Server(runs, 0), error.strerror or str(error)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = 30
    server_version = "aimle"
    sys_version = ""

    def do_GET(self) -> None:
        if not is_loopback(self.headers.get("Host")):
            self._refuse(HTTPStatus.FORBIDDEN, "aimle watch answers to localhost only")
            return
        path, _, query = self.path.partition("?")
        if path in self.server.files:
            self._answer(*self.server.files[path])
        elif path == "/runs.json":
            since = parse_qs(query).get("since", ["0"])[0]
            version = int(since) if since.isdecimal() and len(since) < 16 else 0
            self._answer("application/json", self.server.runs_since(version))
        else:
            self._answer_picture(path)

    do_HEAD = do_GET  # noqa: N815  (the name that http.server calls)

    def _answer_picture(self, path: str) -> None:
        parts = path.split("/")  # "", "pictures", id, name
        content = None
        if len(parts) == 4 and parts[:2] == ["", "pictures"]:
            name = unquote(parts[3], errors="surrogateescape")
            content = self.server.picture(parts[2], name)
        if content is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
        else:
            self._answer("image/png", content)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._answer("text/plain; charset=utf-8", f"{why}\n".encode(), status)

    def _answer(self, kind: str, content: bytes, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *values: object) -> None:
        """Requests are not printed."""
