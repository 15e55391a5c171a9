"""Public data sets: where they come from, and how to identify them.

    python -m aimle.program.data list
    python -m aimle.program.data fetch mnist --cache ~/.cache/aimle
    python -m aimle.program.data recognise FOLDER

The program's `aimle data` calls these. Files are downloaded by https and checked by size and
SHA-256 before they get their final names, so a folder never holds a partial or wrong file. Files
that are already there are not downloaded again.
"""

import argparse
import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aimle._files import write_atomically
from aimle.program.launch import EXPLAINED, exit_with

_TIMEOUT = 30.0


@dataclass(frozen=True)
class PublishedFile:
    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class DataSet:
    """A folder of files with known digests, and the servers that have it."""

    name: str
    about: str
    sources: tuple[str, ...]
    files: tuple[PublishedFile, ...]


def _image_files(*sizes_and_digests: tuple[int, str]) -> tuple[PublishedFile, ...]:
    """The files of MNIST and of data sets in its format."""
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(
        PublishedFile(f"{name}-ubyte.gz", size, sha256)
        for name, (size, sha256) in zip(names, sizes_and_digests, strict=True)
    )


MNIST = DataSet(
    name="mnist",
    about="handwritten digits, 60,000 + 10,000 of 28 x 28 (LeCun, Cortes, Burges)",
    sources=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    files=_image_files(
        (9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        (28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        (1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        (4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
)
FASHION_MNIST = DataSet(
    name="fashion_mnist",
    about="articles of clothing, 60,000 + 10,000 of 28 x 28 (Xiao, Rasul, Vollgraf)",
    sources=(
        "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
    files=_image_files(
        (26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        (29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        (4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        (5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    ),
)
DATA_SETS = {data.name: data for data in (MNIST, FASHION_MNIST)}


class FetchError(RuntimeError):
    """No server provided the file, or the file is not the expected one."""


def cache_folder() -> Path:
    """$AIMLE_CACHE, or aimle in the user's cache folder."""
    if folder := os.environ.get("AIMLE_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aimle"


def is_as_published(path: Path, file: PublishedFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    return hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256


def is_complete(data: DataSet, folder: Path) -> bool:
    """Whether the folder holds every file of the data set, as published."""
    return all(is_as_published(folder / file.name, file) for file in data.files)


class _KeepHttps(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but not from https to http."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            message = f"the redirection leads from https to {newurl}"
            raise urllib.error.HTTPError(req.full_url, code, message, headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _read(url: str, most: int) -> bytes:
    """At most so many bytes of the server's response; raises FetchError if that fails."""
    try:
        opener = urllib.request.build_opener(_KeepHttps)
        with opener.open(url, timeout=_TIMEOUT) as answer:
            return answer.read(most)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FetchError(f"{url}: {error}") from error


def _download(url: str, target: Path, wanted: PublishedFile) -> None:
    """Downloads and checks the file before it is written; raises FetchError."""
    content = _read(url, wanted.size + 1)
    if len(content) != wanted.size:
        got = "more" if len(content) > wanted.size else len(content)
        raise FetchError(f"{url}: expected {wanted.size} bytes but got {got}")
    digest = hashlib.sha256(content).hexdigest()
    if digest != wanted.sha256:
        raise FetchError(f"{url}: expected a file with SHA-256 {wanted.sha256} but got {digest}")
    write_atomically(target, content)


def fetch(data: DataSet, folder: Path, sources: Sequence[str] | None = None) -> list[str]:
    """Puts the data set into the folder; returns the names of the downloaded files.

    The servers are tried in turn for every file; if none has it, a FetchError lists the responses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fetched = []
    for file in data.files:
        target = folder / file.name
        if is_as_published(target, file):
            continue
        complaints = []
        for source in sources or data.sources:
            try:
                _download(source.rstrip("/") + "/" + file.name, target, file)
                fetched.append(file.name)
                break
            except FetchError as error:
                complaints.append(str(error))
        else:
            raise FetchError("; ".join(complaints))
    return fetched


def _list() -> int:
    print("digits           drawn by the program: the default of `aimle train dvae`, and")
    print("                 `aimle data make` writes them as files")
    for data in DATA_SETS.values():
        folder = cache_folder() / data.name
        here = f"in {folder}" if is_complete(data, folder) else "not here; `aimle data fetch`"
        print(f"{data.name:<16} {data.about}; {here}")
    return 0


def _fetch(name: str, cache: Path, source: str | None) -> int:
    folder = cache / name
    try:
        fetched = fetch(DATA_SETS[name], folder, [source] if source else None)
    except (FetchError, OSError) as error:
        print(f"cannot fetch {name}: {error}", file=sys.stderr)
        return EXPLAINED
    print(f"{folder}: {', '.join(fetched) + ' fetched' if fetched else 'complete already'}")
    return 0


def _recognise(folder: Path) -> int:
    for data in DATA_SETS.values():
        if is_complete(data, folder):
            print(f"This is {data.name}, as published.")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m aimle.program.data", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    fetching = commands.add_parser("fetch")
    fetching.add_argument("name", choices=list(DATA_SETS))
    fetching.add_argument("--cache", type=Path, default=cache_folder())
    fetching.add_argument("--from", dest="source")
    recognising = commands.add_parser("recognise")
    recognising.add_argument("folder", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "list":
        return _list()
    if given.command == "fetch":
        return _fetch(given.name, given.cache, given.source)
    return _recognise(given.folder)


if __name__ == "__main__":
    exit_with(main)
