"""The fixtures of all Python tests.

The package and the tests' `helpers` are found without installation: pyproject.toml names their
folders. The library is the one named by AIMLE_LIBRARY, or the one in build/release. Data sets are
looked for in AIMLE_DATA, or in shared/data beside the checkout.
"""

import contextlib
import functools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from repository import ROOT

import aimle
from aimle.black_box import solver as black_box_solver

# A shell starts background jobs with SIGINT ignored, which the programs under test would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def folder_of_failed_instances(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What failing solvers save goes where pytest cleans up."""
    with pytest.MonkeyPatch.context() as patch:
        folder = functools.cache(lambda: str(tmp_path_factory.mktemp("instances")))
        patch.setattr(black_box_solver, "_temporary_folder", folder)
        yield


@pytest.fixture
def gpu() -> torch.device:
    """A GPU that the library has kernels for; what takes it is skipped where there is none."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if aimle._library.cuda == "none":
        pytest.skip("aimle was built without GPU kernels")
    return torch.device("cuda")


@pytest.fixture(params=["cpu", "cuda"])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Every test that takes it runs on both devices."""
    if request.param == "cuda":
        return request.getfixturevalue("gpu")
    return torch.device(request.param)


@pytest.fixture
def everything_on_the_device(device: torch.device) -> Iterator[None]:
    """Tensors made without naming a device lie on this one."""
    with contextlib.nullcontext() if device.type == "cpu" else device:
        yield


@pytest.fixture
def key(device: torch.device) -> torch.Tensor:
    return torch.tensor([20230207, 1], device=device)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of data sets."""
    places = [ROOT.parent / "shared" / "data"]
    if path := os.environ.get("AIMLE_DATA"):
        places.insert(0, Path(path))
    for place in places:
        if place.is_dir():
            return place
    pytest.skip("no data sets: set AIMLE_DATA")


@pytest.fixture(scope="session")
def program() -> Path:
    """The program `aimle` beside the library."""
    path = Path(aimle._library.find()).with_name("aimle")
    if not path.is_file():
        pytest.skip("the program aimle was not built")
    return path


def pytest_report_header() -> list[str]:
    return [f"aimle: {aimle.__version__} from {aimle._library.find()}, torch {torch.__version__}"]
