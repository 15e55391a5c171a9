"""`aimle data`: fetching from a local server, checking, making."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import os
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from aimle import data as data_sets


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
    md5 = {name: hashlib.md5(content).hexdigest() for name, content in contents.items()}
    return data_sets.DataSet("test", "two files", sources, md5)


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
    (folder / "a.gz").write_bytes(b"something else")
    with pytest.raises(data_sets.FetchError, match=r"a\.gz: its MD5 is .* expected"):
        data_sets.fetch(wanted, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


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
    for name in data_sets.MNIST.md5:
        (folder / name).symlink_to(data / "mnist" / name)
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
    (out / "t10k-labels-idx1-ubyte.gz").write_bytes(b"\x1f\x8b")
    assert "t10k-labels" in run(program, "check", str(out), expect=1)
