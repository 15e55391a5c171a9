"""Public data sets: where they come from, and how to know them.

    python -m aimle.data list
    python -m aimle.data fetch mnist --cache ~/.cache/aimle
    python -m aimle.data recognise FOLDER

The program's `aimle data` calls these. Files are checked against the published MD5 sums before they
get their names, so that a folder never holds half a file; what is there is not fetched again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aimle._program import EXPLAINED

_CHUNK = 1 << 18
_TIMEOUT = 30.0


@dataclass(frozen=True)
class DataSet:
    """A folder of files with known sums, and the servers that have it."""

    name: str
    about: str
    sources: tuple[str, ...]
    md5: dict[str, str]


MNIST = DataSet(
    name="mnist",
    about="handwritten digits, 60,000 + 10,000 of 28 x 28 (LeCun, Cortes, Burges)",
    sources=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    md5={
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
)
FASHION_MNIST = DataSet(
    name="fashion_mnist",
    about="articles of clothing, 60,000 + 10,000 of 28 x 28 (Xiao, Rasul, Vollgraf)",
    sources=("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
    md5={
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
)
DATA_SETS = {data.name: data for data in (MNIST, FASHION_MNIST)}


class FetchError(RuntimeError):
    """A file that no server gave, or that is not what it should be."""


def cache_folder() -> Path:
    """$AIMLE_CACHE, or aimle in the user's cache folder."""
    if folder := os.environ.get("AIMLE_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aimle"


def md5_of(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def is_complete(data: DataSet, folder: Path) -> bool:
    """Whether the folder holds every file of the data set, as published."""
    return all(
        (folder / name).is_file() and md5_of(folder / name) == md5 for name, md5 in data.md5.items()
    )


def _download(url: str, target: Path, md5: str) -> None:
    """To a temporary file, checked, then renamed; FetchError says what was wrong."""
    digest = hashlib.md5(usedforsecurity=False)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=target.name, delete=False) as file:
        temporary = Path(file.name)
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
                while chunk := answer.read(_CHUNK):
                    digest.update(chunk)
                    file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            if digest.hexdigest() != md5:
                raise FetchError(f"{url}: its MD5 is {digest.hexdigest()}, expected {md5}")
            os.replace(temporary, target)
        except (urllib.error.URLError, TimeoutError, ConnectionError, ValueError) as error:
            raise FetchError(f"{url}: {error}") from error
        finally:
            temporary.unlink(missing_ok=True)


def fetch(data: DataSet, folder: Path, sources: Sequence[str] | None = None) -> list[str]:
    """Puts the data set into the folder; returns the names that had to be fetched.

    The servers are tried in turn for every file; if none has it, a FetchError lists what each said.
    """
    folder.mkdir(parents=True, exist_ok=True)
    fetched = []
    for name, md5 in data.md5.items():
        target = folder / name
        if target.is_file() and md5_of(target) == md5:
            continue
        complaints = []
        for source in sources or data.sources:
            try:
                _download(source.rstrip("/") + "/" + name, target, md5)
                fetched.append(name)
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
    if name not in DATA_SETS:
        print(f"unknown data set {name!r}: known are {', '.join(DATA_SETS)}", file=sys.stderr)
        return 1
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
    parser = argparse.ArgumentParser(prog="python -m aimle.data", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    fetching = commands.add_parser("fetch")
    fetching.add_argument("name")
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
    sys.exit(main())
