"""The server of `aimle watch`: what it answers, and to whom."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from watched_runs import png, serving
from written_runs import write_run

from aimle.program.watch.reader import RunsBelow
from aimle.program.watch.server import Server, bind, is_loopback


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    write_run(tmp_path / "a", "aimle", 0, [2.0, 1.0])
    (tmp_path / "a" / "pictures").mkdir()
    (tmp_path / "a" / "pictures" / "a b.png").write_bytes(png())
    with serving(tmp_path) as started:
        yield started


def ask(
    server: Server, path: str, host: str | None = "localhost", method: str = "GET"
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def test_the_page_loads_nothing_from_elsewhere(server: Server) -> None:
    for path, kind in (("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javasc")):
        response, content = ask(server, path)
        assert response.status == 200
        assert response.getheader("Content-Type", "").startswith(kind)
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text
        assert "https:" not in text
        assert "@import" not in text
        policy = response.getheader("Content-Security-Policy", "")
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert response.getheader("X-Content-Type-Options") == "nosniff"
        assert response.getheader("Cross-Origin-Resource-Policy") == "same-origin"
        assert response.getheader("Cache-Control") == "no-store"
        assert response.getheader("Access-Control-Allow-Origin") is None


def test_the_script_makes_no_markup_of_values(server: Server) -> None:
    script = ask(server, "/page.js")[1].decode()
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert name not in script


def test_runs_and_their_changes(server: Server) -> None:
    answer = json.loads(ask(server, "/runs.json")[1])
    assert [run["name"] for run in answer["runs"]] == ["a"]
    later = json.loads(ask(server, f"/runs.json?since={answer['version']}")[1])
    assert later["runs"] == []
    assert later["started"] == answer["started"]
    for since in ("-1", "x", "1" * 400, ""):
        assert len(json.loads(ask(server, f"/runs.json?since={since}")[1])["runs"]) == 1


def test_pictures(server: Server) -> None:
    (run,) = json.loads(ask(server, "/runs.json")[1])["runs"]
    response, content = ask(server, f"/pictures/{run['id']}/a%20b.png?17")
    assert (response.status, response.getheader("Content-Type")) == (200, "image/png")
    assert content == png()


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/pictures/{id}/../config.json",
        "/pictures/{id}/..%2fconfig.json",
        "/pictures/{id}/%2e%2e%2fconfig.json",
        "/pictures/{id}/a%20b.png/",
        "/pictures/{id}/%00",
        "/pictures/../a/pictures/a%20b.png",
        "/pictures/",
        "/config.json",
        "/a/config.json",
        "/server.py",
        "http://evil.example/",
        "*",
    ],
)
def test_nothing_else_is_served(server: Server, path: str) -> None:
    (run,) = json.loads(ask(server, "/runs.json")[1])["runs"]
    response, content = ask(server, path.format(id=run["id"]))
    assert response.status == 404
    assert content == b"there is nothing here\n"


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", None,
             "0.0.0.0", "192.168.0.1", "[::2]", "[", "user@evil.example", "localhost@evil.example"]
)  # fmt: skip
def test_other_names_of_this_machine_are_refused(server: Server, host: str | None) -> None:
    for path in ("/", "/runs.json", "/page.js"):
        response, content = ask(server, path, host)
        assert response.status == 403
        assert content == b"aimle watch answers to localhost only\n"


def test_names_of_the_loopback_are_answered(server: Server) -> None:
    for host in ("localhost", "LOCALHOST:9", f"127.0.0.1:{server.server_port}", "[::1]:8712"):
        assert is_loopback(host)
        assert ask(server, "/", host)[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(server: Server, method: str) -> None:
    assert ask(server, "/runs.json", method=method)[0].status == 501


def test_a_head_has_no_body(server: Server) -> None:
    response, content = ask(server, "/", method="HEAD")
    assert (response.status, content) == (200, b"")
    assert int(response.getheader("Content-Length", "0")) > 100


def test_only_the_loopback_address_is_bound(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/"


def test_a_port_in_use_is_replaced(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        server, why = bind(RunsBelow(tmp_path), taken)
        server.server_close()
        assert server.server_port != taken
        assert why == "Address already in use"
