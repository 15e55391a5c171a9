"""`aimle data`: fetching from a local server, checking, making."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import os
import struct
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

import numpy as np
import pytest

from aimle.program import data as data_sets


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """Its address, the folder it serves, and the paths it was asked for."""
    folder = tmp_path / "served"
    folder.mkdir()
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **options) -> None:
            super().__init__(*arguments, directory=str(folder), **options)

        def do_GET(self) -> None:
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *arguments) -> None:
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}/", folder, asked
    running.shutdown()
    thread.join()
    running.server_close()


def a_data_set(folder: Path, sources: tuple[str, ...]) -> data_sets.DataSet:
    contents = {"a.gz": b"first" * 1000, "b.gz": b"second"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    files = tuple(
        data_sets.PublishedFile(name, len(content), hashlib.sha256(content).hexdigest())
        for name, content in contents.items()
    )
    return data_sets.DataSet("test", "two files", sources, files)


def test_fetch_gets_what_is_missing(server, tmp_path: Path) -> None:
    url, folder, asked = server
    wanted = a_data_set(folder, (url,))
    cache = tmp_path / "cache" / "test"
    assert data_sets.fetch(wanted, cache) == ["a.gz", "b.gz"]
    assert (cache / "a.gz").read_bytes() == b"first" * 1000
    assert data_sets.is_complete(wanted, cache)
    assert data_sets.fetch(wanted, cache) == []
    assert asked == ["/a.gz", "/b.gz"]
    (cache / "b.gz").write_bytes(b"damaged")
    assert not data_sets.is_complete(wanted, cache)
    assert data_sets.fetch(wanted, cache) == ["b.gz"]


def test_a_wrong_file_is_refused_and_not_kept(server, tmp_path: Path) -> None:
    url, folder, _ = server
    wanted = a_data_set(folder, (url,))
    expected = wanted.files[0].sha256
    other = b"FIRST" * 1000
    got = hashlib.sha256(other).hexdigest()
    (folder / "a.gz").write_bytes(other)
    message = rf"a\.gz: expected a file with SHA-256 {expected} but got {got}"
    with pytest.raises(data_sets.FetchError, match=message):
        data_sets.fetch(wanted, tmp_path / "cache")
    for content, size in ((b"first", "5"), (b"first" * 1001, "more")):
        (folder / "a.gz").write_bytes(content)
        message = rf"a\.gz: expected 5000 bytes but got {size}"
        with pytest.raises(data_sets.FetchError, match=message):
            data_sets.fetch(wanted, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_files_come_by_https_and_have_digests() -> None:
    for wanted in data_sets.DATA_SETS.values():
        assert all(source.startswith("https://") for source in wanted.sources)
        assert {len(file.sha256) for file in wanted.files} == {64}


def test_a_redirection_does_not_leave_https() -> None:
    request = urllib.request.Request("https://127.0.0.1/a.gz")
    follow = data_sets._KeepHttps().redirect_request
    with pytest.raises(urllib.error.HTTPError, match="leads from https to http"):
        follow(request, None, 302, "Found", Message(), "http://127.0.0.1/a.gz")
    assert follow(request, None, 302, "Found", Message(), "https://127.0.0.1/b.gz") is not None


def test_a_local_folder_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    wanted = a_data_set(tmp_path / "served", ((tmp_path / "served").as_uri(),))
    assert data_sets.fetch(wanted, tmp_path / "cache") == ["a.gz", "b.gz"]
    with pytest.raises(data_sets.FetchError, match="nowhere"):
        data_sets.fetch(wanted, tmp_path / "other", [(tmp_path / "nowhere").as_uri()])


def test_the_next_server_is_tried(server, tmp_path: Path) -> None:
    url, folder, _ = server
    wanted = a_data_set(folder, (url + "nowhere", "http://127.0.0.1:9/", url))
    assert data_sets.fetch(wanted, tmp_path / "cache") == ["a.gz", "b.gz"]
    with pytest.raises(data_sets.FetchError, match="404"):
        data_sets.fetch(wanted, tmp_path / "other", [url + "nowhere"])


def run(program: Path, *arguments: str, expect: int = 0, **environment: str) -> str:
    done = subprocess.run(
        [program, "data", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == expect, done.stderr
    return done.stdout + done.stderr


def test_program_fetches_mnist(program: Path, server, data: Path, tmp_path: Path) -> None:
    if not (data / "mnist").is_dir():
        pytest.skip("no MNIST among the data sets")
    url, folder, _ = server
    for file in data_sets.MNIST.files:
        (folder / file.name).symlink_to(data / "mnist" / file.name)
    cache = tmp_path / "cache"
    assert "fetched" in run(program, "fetch", "mnist", "--from", url, "--cache", str(cache))
    assert "complete already" in run(program, "fetch", "mnist", "--cache", str(cache))
    assert f"in {cache / 'mnist'}" in run(program, "list", AIMLE_CACHE=str(cache))
    told = run(program, "check", str(cache / "mnist"))
    assert "train: 60000 images of 28 x 28" in told
    assert "This is mnist, as published." in told


def test_program_says_what_it_cannot_fetch(program: Path, server, tmp_path: Path) -> None:
    url, _, _ = server
    options = ["--from", url, "--cache", str(tmp_path)]
    told = run(program, "fetch", "fashion_mnist", *options, expect=1)
    assert "404" in told
    assert "AIMLE_PYTHON" not in told
    assert "did you mean 'mnist'?" in run(program, "fetch", "minst", *options, expect=2)


def read_idx(path: Path) -> np.ndarray:
    raw = gzip.decompress(path.read_bytes())
    dimensions = raw[3]
    shape = struct.unpack(f">{dimensions}I", raw[4 : 4 + 4 * dimensions])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def test_made_digits_are_idx_files(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "digits"
    run(program, "make", "--out", str(out), "--examples", "300", "--test_examples", "50")
    images = read_idx(out / "train-images-idx3-ubyte.gz")
    labels = read_idx(out / "train-labels-idx1-ubyte.gz")
    assert images.shape == (300, 28, 28)
    assert labels.shape == (300,)
    assert set(labels) == set(range(10))
    ink = images.reshape(300, -1).mean(1)
    assert ((ink > 8) & (ink < 110)).all()
    assert "train: 300 images" in run(program, "check", str(out))
    more = ("--out", str(tmp_path / "more"), "--examples", "1400000")
    assert "in [1, 1369568]" in run(program, "make", *more, expect=2)  # no more can be read
    (out / "t10k-labels-idx1-ubyte.gz").write_bytes(b"\x1f\x8b")
    assert "t10k-labels" in run(program, "check", str(out), expect=1)
