"""Finds and loads the compiled ops, after checking that they were built for this torch."""

import json
import os
from pathlib import Path

import torch

NAME = "libaimle_torch.so"
BUILD_RECORD = "_build.json"


def candidates() -> list[Path]:
    """Where the library may be, in search order."""
    package = Path(__file__).resolve().parent
    if path := os.environ.get("AIMLE_LIBRARY"):
        return [Path(path)]
    return [package / "lib" / NAME, package.parents[1] / "build" / "release" / NAME]


def find() -> Path:
    """The path of the library; raises ImportError with every place that was searched."""
    places = candidates()
    for place in places:
        if place.is_file():
            return place
    listed = "\n".join(f"  {place}" for place in places)
    raise ImportError(
        f"aimle: the compiled library was not found in:\n{listed}\n"
        "Build it, or set the environment variable AIMLE_LIBRARY to its path."
    )


def check_torch(built: str, found: str) -> None:
    """Raises ImportError unless both versions of torch have the same major and minor number."""
    if built.split(".")[:2] == found.split(".")[:2]:
        return
    wanted = ".".join(built.split(".")[:2])
    raise ImportError(
        f"aimle was built for torch {built} but torch {found} is installed, and C++ libraries "
        f"built for one do not load into the other.\nInstall torch {wanted}.*, or rebuild aimle "
        "for it: pip install --no-build-isolation --force-reinstall --no-deps <aimle's source>"
    )


def cmake_prefix_path() -> str:
    """CMAKE_PREFIX_PATH for a project with custom solvers: where aimle and torch are installed."""
    package = Path(__file__).resolve().parent
    if not (package / "lib" / "cmake").is_dir():
        raise FileNotFoundError(
            "[aimle.cmake_prefix_path] this aimle is a source tree, whose headers are not "
            "installed: run `cmake --install build/release --prefix PREFIX` and use PREFIX"
        )
    return f"{package.parent};{torch.utils.cmake_prefix_path}"


def load() -> tuple[str, str]:
    """Loads the library; returns its version and its CUDA version ("none" without kernels)."""
    path = find()
    record = path.with_name(BUILD_RECORD)
    if not record.is_file():
        raise ImportError(f"aimle: {record}, which belongs next to {path.name}, is missing")
    build = json.loads(record.read_text())
    check_torch(build["torch"], torch.__version__)
    torch.ops.load_library(path)
    return build["aimle"], build.get("cuda", "none")


version, cuda = load()
