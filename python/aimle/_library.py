"""Finds and loads the compiled ops, after making sure that they were built for this torch."""

import json
import os
from pathlib import Path

import torch

NAME = "libaimle_torch.so"
BUILD_RECORD = "_build.json"


def candidates() -> list[Path]:
    """Where the library may be, in the order in which it is looked for."""
    package = Path(__file__).resolve().parent
    if path := os.environ.get("AIMLE_LIBRARY"):
        return [Path(path)]
    return [package / "lib" / NAME, package.parents[1] / "build" / "release" / NAME]


def find() -> Path:
    """The library, or an ImportError that names every place where it is not."""
    places = candidates()
    for place in places:
        if place.is_file():
            return place
    listed = "\n".join(f"  {place}" for place in places)
    raise ImportError(
        f"aimle: the compiled library is not there:\n{listed}\n"
        "Build it, or point the environment variable AIMLE_LIBRARY at it."
    )


def check_torch(built: str, found: str) -> None:
    """ImportError unless both versions of torch share major and minor number."""
    if built.split(".")[:2] == found.split(".")[:2]:
        return
    wanted = ".".join(built.split(".")[:2])
    raise ImportError(
        f"aimle was built for torch {built} but torch {found} is installed: C++ libraries of one "
        f"do not load into the other.\nInstall torch {wanted}.*, or build aimle again with this "
        "torch: pip install --no-build-isolation --force-reinstall --no-deps <aimle's source>"
    )


def cmake_prefix_path() -> str:
    """For CMAKE_PREFIX_PATH of a project with solvers of its own: where aimle and torch are."""
    package = Path(__file__).resolve().parent
    if not (package / "lib" / "cmake").is_dir():
        raise FileNotFoundError(
            "[aimle.cmake_prefix_path] this aimle is a source tree, whose headers are not "
            "installed: run `cmake --install build/release --prefix PREFIX` and give PREFIX"
        )
    return f"{package.parent};{torch.utils.cmake_prefix_path}"


def load() -> tuple[str, str]:
    """Loads the library and returns its version, and that of CUDA ("none": without kernels)."""
    path = find()
    record = path.with_name(BUILD_RECORD)
    if not record.is_file():
        raise ImportError(f"aimle: {record} is missing, which belongs beside {path.name}")
    build = json.loads(record.read_text())
    check_torch(build["torch"], torch.__version__)
    torch.ops.load_library(path)
    return build["aimle"], build.get("cuda", "none")


version, cuda = load()
