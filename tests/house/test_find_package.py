"""An external project finds and uses an installed aimle, with and without Torch."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "build/release"


def run(*command: object, check: bool = True) -> subprocess.CompletedProcess:
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    assert not check or result.returncode == 0, f"{result.args}\n{result.stdout}\n{result.stderr}"
    return result


def configure(prefix: Path, build: Path, *options: str, check: bool = True):
    command = ["cmake", "-S", ROOT / "examples/find_package", "-B", build, "-G", "Ninja"]
    return run(*command, f"-DCMAKE_PREFIX_PATH={prefix}", *options, check=check)


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", RELEASE, "--prefix", prefix)
    return prefix


def test_core_without_torch(prefix: Path, tmp_path: Path):
    configure(prefix, tmp_path, "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON")
    run("cmake", "--build", tmp_path)
    assert run(tmp_path / "core_example").stdout == "0 1 0 1 0\n1 1 0 0 0\n"


@pytest.fixture(scope="module")
def with_torch(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("with_torch")
    configure(f"{prefix};{torch.utils.cmake_prefix_path}", build, "-DWITH_TORCH=ON")
    run("cmake", "--build", build)
    return build


def test_torch(with_torch: Path):
    lines = run(with_torch / "torch_example").stdout.split()
    assert lines[:5] == ["0", "1", "0", "1", "0"]


def test_switchboard(with_torch: Path):
    learnt = run("env", "OMP_NUM_THREADS=1", with_torch / "switchboard_example").stdout.splitlines()
    assert len(learnt) == 16  # all that apply to k of n
    assert [line for line in learnt if not line.endswith(": 3 of 3 entries right")] == []


def test_a_core_without_torch_says_so(prefix: Path, tmp_path: Path):
    core_only = tmp_path / "prefix"
    shutil.copytree(prefix, core_only)
    for file in core_only.rglob("aimle-torch*.cmake"):
        file.unlink()
    result = configure(core_only, tmp_path / "build", "-DWITH_TORCH=ON", check=False)
    assert result.returncode != 0
    assert "built without Torch" in result.stderr


def test_another_torch_is_refused(prefix: Path, tmp_path: Path):
    other = tmp_path / "torch/share/cmake/Torch"
    header = tmp_path / "torch/include/torch/headeronly/version.h"
    for folder in (other, header.parent):
        folder.mkdir(parents=True)
    numbers = {"MAJOR": 1, "MINOR": 13, "PATCH": 0}
    header.write_text("".join(f"#define TORCH_VERSION_{k} {v}\n" for k, v in numbers.items()))
    result = configure(
        prefix, tmp_path / "build", "-DWITH_TORCH=ON", f"-DTorch_DIR={other}", check=False
    )
    assert result.returncode != 0
    assert f"built for torch {torch.__version__.split('+')[0]}" in " ".join(result.stderr.split())
    assert "torch 1.13.0" in " ".join(result.stderr.split())


def test_no_torch_is_told_how_to_find_one(prefix: Path, tmp_path: Path):
    result = configure(prefix, tmp_path / "build", "-DWITH_TORCH=ON", check=False)
    assert result.returncode != 0
    assert "add to CMAKE_PREFIX_PATH" in " ".join(result.stderr.split())


def test_the_package_stands_alone(prefix: Path):
    assert (prefix / "include/aimle/map/topk.h").exists()
    for file in prefix.rglob("*.cmake"):
        assert str(ROOT) not in file.read_text(), file
